"""The GPU path against the plain one: every variant, forward and every gradient, in float32 and bfloat16.

Where there is no GPU its kernels run in triton's interpreter.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is loaded
pytest.importorskip("triton", reason="triton is not installed (torch's builds for a GPU bring it)")

from nmt import fused_gpu
from tests.nmt.test_fused import run
from tests.nmt.test_luong import attention_id

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PAIRS = [([3, 4, 5, 6, 7, 8, 9], [3, 4]), ([10, 3], [6])]  # few: a launch takes the interpreter a hundredth of a second
PRODUCTS = [None, ("global", "general"), ("local-m", "dot"), ("local-p", "general")]  # None and what has a kernel


@pytest.fixture(autouse=True)
def on_this_device(monkeypatch):
    monkeypatch.setattr(fused_gpu, "available", lambda device: device.type == DEVICE)


def assert_same(attention, tolerance, autocast=False, **changes):
    changes = {"dtype": torch.float32, "pairs": PAIRS, "device": DEVICE, **changes}
    plain = run(False, attention, **changes)
    with torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
        fast = run(True, attention, **changes)
    close = {"atol": tolerance, "rtol": tolerance}
    torch.testing.assert_close(fast[0], plain[0], **close)
    if attention is not None:
        torch.testing.assert_close(fast[1].float(), plain[1].detach(), **close)
    for name, gradient in plain[2].items():
        assert gradient.any(), name
        assert fast[2][name].dtype == torch.float32
        torch.testing.assert_close(fast[2][name], gradient, **close, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("attention", PRODUCTS, ids=attention_id)
def test_equals_the_plain_path(attention):
    assert_same(attention, 1e-5, layers=2)


@pytest.mark.parametrize("attention", [None, ("local-p", "general")], ids=attention_id)
def test_draws_the_plain_path_s_dropout(attention):
    if DEVICE == "cuda":
        pytest.skip("a GPU draws all steps' dropout at once, the plain path step by step")
    assert_same(attention, 1e-5, layers=2, dropout=0.4)


@pytest.mark.parametrize("attention", [("local-p", "location"), ("global", "concat")], ids=attention_id)
def test_equals_the_plain_path_where_a_score_has_no_kernel(attention):
    assert_same(attention, 1e-5, layers=1)


READINGS = [
    {"padding": "unmasked"},
    {"centre": "plus_one", "gaussian": "renormalised"},
    {"gaussian_gradient": "half"},
]


@pytest.mark.parametrize("readings", READINGS, ids=lambda readings: "-".join(readings.values()))
def test_equals_the_plain_path_in_every_reading(readings):
    concerned = "global" if "padding" in readings else "local-p"
    assert_same((concerned, "general"), 1e-5, layers=1, readings=readings)


def test_equals_the_plain_path_without_feeding():
    assert_same(("global", "general"), 1e-5, layers=1, input_feeding=False)


@pytest.mark.parametrize("attention", [*PRODUCTS, ("local-m", "location")], ids=attention_id)
def test_bfloat16_comes_close(attention):
    """Products read 8 bits of mantissa: gradients of the size of 1 to a few hundredths."""
    assert_same(attention, 0.06, autocast=True, layers=1)


def test_bfloat16_comes_close_without_feeding():
    assert_same(("global", "general"), 0.06, autocast=True, layers=1, input_feeding=False)


def test_every_kernel_compiles_for_a_gpu():
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    script = Path(__file__).with_name("compile_kernels.py")
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for kernel in ("lstm_step", "lstm_back", "attend_step", "attend_back", "likelihood", "descend"):
        assert f"{kernel}_kernel" in done.stdout
