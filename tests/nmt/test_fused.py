"""The fast path against the plain one: every variant, forward and every gradient, with padding and dropout."""

import pytest
import torch

from nmt import fused
from tests.nmt.test_luong import ATTENTIONS, PAIRS, attention_id, build, make_batch

LONG = [([3, 4, 5, 6, 7, 8, 9, 10, 3, 4, 5, 6, 7, 8], [3, 4, 5]), *PAIRS]  # longer than a location score knows


def run(fast, attention, pairs=PAIRS, **changes):
    """Likelihood, alignment and gradients of an unevenly weighted loss, by one path."""
    model = build(attention, fast=fast, **{"input_feeding": True, **changes}).train()
    torch.manual_seed(7)
    forced = model(make_batch(pairs))
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(forced.log_likelihood.shape, generator=generator, dtype=torch.float64)
    (forced.log_likelihood * weights.to(forced.log_likelihood.dtype)).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return forced.log_likelihood.detach(), forced.attention, gradients


def assert_same(attention, tolerance, **changes):
    fast, plain = (run(fast, attention, **changes) for fast in (True, False))
    close = {"atol": tolerance, "rtol": tolerance}
    torch.testing.assert_close(fast[0], plain[0], **close)
    if attention is not None:
        torch.testing.assert_close(fast[1], plain[1].detach(), **close)
    assert fast[2].keys() == plain[2].keys()
    for name, gradient in plain[2].items():
        assert gradient.any(), name
        torch.testing.assert_close(fast[2][name], gradient, **close, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("dropout", [0.0, 0.4], ids=["", "dropout"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("attention", ATTENTIONS, ids=attention_id)
def test_equals_the_plain_path(attention, layers, dropout):
    assert_same(attention, 1e-10, layers=layers, dropout=dropout)


@pytest.mark.parametrize("attention", ATTENTIONS, ids=attention_id)
def test_equals_the_plain_path_in_float32(attention):
    assert_same(attention, 1e-5, dtype=torch.float32, dropout=0.2)


READINGS = [
    {"padding": "unmasked"},
    {"centre": "plus_one"},
    {"gaussian": "renormalised"},
    {"gaussian_gradient": "half"},
    {"gaussian": "renormalised", "gaussian_gradient": "half", "centre": "plus_one"},
    {"source_end": "absent"},
]


@pytest.mark.parametrize("readings", READINGS, ids=lambda readings: "-".join(readings.values()))
@pytest.mark.parametrize("attention", ATTENTIONS, ids=attention_id)
def test_equals_the_plain_path_in_every_reading(attention, readings):
    assert_same(attention, 1e-10, readings=readings)


@pytest.mark.parametrize("scope", ["global", "local-m", "local-p"])
def test_source_longer_than_the_location_score_knows(scope):
    assert_same((scope, "location"), 1e-10, pairs=LONG)


def test_supports_all_but_two_readings():
    assert fused.supports(build(("local-p", "general")))
    assert fused.supports(build(None))
    for readings in ({"location": "slots"}, {"gaussian": "before_softmax"}):
        model = build(("local-p", "location"), input_feeding=True, readings=readings)
        assert not fused.supports(model)
        assert torch.isfinite(model(make_batch(PAIRS)).log_likelihood).all()
