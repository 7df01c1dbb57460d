"""Statuses for whoever runs several jobs, and TensorBoard's scalars; the log's lines are in test_training.py."""

import io
import os
import sys
from types import SimpleNamespace

import pytest

from nmt.commands.console import Sentences
from nmt.progress import STATUS_FOLDER, Progress, clock

RECORD = {
    "update": 20, "epoch": 1, "dev_perplexity": 9.0, "curve_perplexity": None, "train_perplexity": 8.0,
    "learning_rate": 1.0, "words_per_second": 100.0, "gradient_norm": 2.0, "seconds": 3.0,
}  # fmt: skip


@pytest.fixture
def passing(monkeypatch):
    """A clock that the test moves on."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr("nmt.progress.time.perf_counter", lambda: now.seconds)
    monkeypatch.setattr("nmt.commands.console.time.monotonic", lambda: now.seconds)
    return now


@pytest.fixture
def status(tmp_path, monkeypatch):
    """What this process says, None if it says nothing."""
    monkeypatch.setenv(STATUS_FOLDER, str(tmp_path))
    path = tmp_path / str(os.getpid())
    return lambda: path.read_text() if path.exists() else None


def test_training_says_what_it_does_every_second_and_nothing_when_done(passing, status):
    with Progress(total=40, done=10, label="base", stream=io.StringIO()) as report:
        assert status() == "base\tbegins\n"
        for update in range(11, 21):
            passing.seconds += 0.5
            report.trained(update, 30, lambda: 2.5)
        assert status() == "base\t 50%  update 20 of 40  0:10 left  60 words/s  cost 2.500\n"
        report.evaluated(RECORD, best=True)
        passing.seconds += 100  # as long as it took to evaluate
        report.evaluated(RECORD, best=True)
        passing.seconds += 2
        report.trained(21, 30, lambda: 2.25)
        assert status().endswith("  15 words/s  cost 2.250  dev perplexity 9.00\n")
    assert status() is None


def test_decoding_says_what_it_does(passing, status):
    with Sentences(shown=False, total=40, label="base, test") as count:
        passing.seconds += 5
        count(10)
        assert status() == "base, test\t 25%  10 of 40 sentences, 2.0/s, 0:15 left\n"
    assert status() is None


def test_no_status_without_a_label_or_where_the_folder_is_another_machines(status, monkeypatch, tmp_path):
    with Sentences(shown=False) as count:
        count(1)
        assert status() is None
    monkeypatch.setenv(STATUS_FOLDER, str(tmp_path / "elsewhere"))
    with Sentences(shown=False, label="base"):
        assert list(tmp_path.iterdir()) == []


def test_hours_are_shown_where_there_are_any():
    assert [clock(seconds) for seconds in (0.4, 41, 754, 3723)] == ["0:00", "0:41", "12:34", "1:02:03"]


class Writer:
    """As torch.utils.tensorboard's."""

    def __init__(self, folder, purge_step):
        self.found = {"folder": folder, "purge_step": purge_step}
        Writer.last = self.found

    def add_scalar(self, tag, value, step):
        self.found[tag] = value, step

    def flush(self):
        self.found["flushed"] = True

    def close(self):
        self.found["closed"] = True


def test_scalars_of_updates_and_evaluations(passing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", SimpleNamespace(SummaryWriter=Writer))
    with Progress(total=40, done=10, shown=False, scalars=tmp_path, stream=io.StringIO()) as report:
        passing.seconds += 31
        report.trained(20, 310, lambda: 2.5)
        report.evaluated(RECORD, best=True)
    assert Writer.last == {
        "folder": tmp_path, "purge_step": 11, "cost/train": (2.5, 20), "perplexity/dev": (9.0, 20),
        "perplexity/train": (8.0, 20), "optimiser/learning_rate": (1.0, 20), "optimiser/gradient_norm": (2.0, 20),
        "speed/words_per_second": (100.0, 20), "flushed": True, "closed": True,
    }  # fmt: skip


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match="pip install tensorboard"):
        Progress(total=40, done=0, shown=False, scalars=tmp_path)


def test_scalars_can_be_read_again(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Progress(total=40, done=0, shown=False, scalars=tmp_path) as report:
        report.evaluated(RECORD, best=True)
    found = events.EventAccumulator(str(tmp_path)).Reload()
    assert [(scalar.step, scalar.value) for scalar in found.Scalars("perplexity/dev")] == [(20, 9.0)]
