"""Recorded steps, by a recorder that needs no GPU: shapes, padding, what is kept, and training through them."""

import numpy as np
import pytest
import torch

from nmt import recorded
from nmt.batching import batches, batches_ahead
from nmt.interface import Batch
from nmt.optimiser import TrainingConfig, make_optimiser
from nmt.recorded import RecordedStep, padded_up
from nmt.training import _Run, step
from tests.nmt.small_run import outcome, random_corpus, small_run
from tests.nmt.test_luong import PAIRS, build, make_batch


class Replays:
    """A recorder whose recordings are the steps themselves; counts what was run and what recorded."""

    def __init__(self, device=None):
        self.ran = self.recorded = self.replayed = 0

    def run(self, step):
        self.ran += 1
        step()

    def record(self, step):
        self.recorded += 1
        return Recording(self, step)


class Recording:
    def __init__(self, recorder, step):
        self.recorder, self.step = recorder, step

    def replay(self):
        self.recorder.replayed += 1
        self.step()


def updates(steps_of, pairs, attention=("local-p", "general")):
    """The weights after a step for each pair, alone in its batch; steps_of: makes of a step what is called."""
    model = build(attention, input_feeding=True, dtype=torch.float32).train()
    config = TrainingConfig(batch_size=1)
    optimiser = make_optimiser(model, config)
    optimiser.learning_rate = 0.3
    go = steps_of(lambda batch: step(model, batch, config, optimiser, torch.tensor(False)))
    for pair in pairs:
        go(make_batch([pair]))
    return model.state_dict()


@pytest.mark.parametrize("limit, recordings", [(128, 3), (1, 4)])
def test_recorded_steps_are_the_steps_themselves(limit, recordings):
    """The first, second and last pair are of one padded shape."""
    pairs = [([3, 4, 5], [3, 4]), ([7, 8, 9, 10], [5, 5, 6]), *PAIRS[:2], ([4], [3, 8])]
    recorder = Replays()
    plain = updates(lambda go: go, pairs)
    replayed = updates(lambda go: RecordedStep(go, torch.device("cpu"), recorder, limit), pairs)
    for name, weight in plain.items():
        torch.testing.assert_close(replayed[name], weight, msg=name)
    assert recorder.recorded == recorder.ran == recordings
    assert recorder.replayed == len(pairs) - recordings


def test_padding_up_changes_no_likelihood():
    model, batch = build(("local-p", "general"), input_feeding=True), make_batch(PAIRS)
    wide = padded_up(batch)
    assert wide.source.shape[1] % recorded.SOURCE_STEP == wide.target_input.shape[1] % recorded.TARGET_STEP == 0
    assert wide.source.shape != batch.source.shape
    likelihood, width = model(wide).log_likelihood, batch.target_input.shape[1]
    torch.testing.assert_close(likelihood[:, :width], model(batch).log_likelihood)
    assert not likelihood[:, width:].any()


def test_training_by_recorded_steps_ends_with_the_same_weights(tmp_path, monkeypatch):
    """To the bit, as no length is padded here; batches come from the thread, and some steps are evaluated between."""
    expected = outcome(*small_run(tmp_path, "plain", evaluate_every=4))
    recorder = Replays()
    monkeypatch.setattr(recorded, "SOURCE_STEP", 1)
    monkeypatch.setattr(recorded, "TARGET_STEP", 1)
    monkeypatch.setattr(Batch, "pinned", lambda batch: batch)  # needs a GPU
    monkeypatch.setattr(
        _Run, "ways", lambda run: (batches_ahead, RecordedStep(run.step_on_device, torch.device("cpu"), recorder))
    )
    assert outcome(*small_run(tmp_path, "recorded", evaluate_every=4)) == expected
    assert recorder.replayed


def test_batches_made_ahead_are_those_of_the_plan_and_errors_come_in_their_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(Batch, "pinned", lambda batch: batch)
    corpus = random_corpus(tmp_path, 60, seed=1)
    plan = [np.arange(first, first + 2) for first in range(0, 60, 2)]
    for made, expected in zip(batches_ahead(corpus, plan), batches(corpus, plan), strict=True):
        assert all(torch.equal(value, getattr(expected, name)) for name, value in vars(made).items())
    made = []
    with pytest.raises(IndexError):
        for batch in batches_ahead(corpus, [*plan[:3], np.array([60]), *plan[3:]]):
            made.append(batch)
    assert len(made) == 3


def test_only_a_model_that_never_waits_for_the_host_is_recorded(monkeypatch):
    monkeypatch.setattr("nmt.fused_gpu.available", lambda device: True)
    assert build(("local-p", "general"), input_feeding=True).recordable
    assert not build(("local-p", "general"), input_feeding=True, fast=False).recordable
    assert not build(("global", "location"), readings={"location": "slots"}).recordable
