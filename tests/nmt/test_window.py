"""Local attention that takes its windows out of the source, against hiding the rest and against the equations."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nmt.attention import Attended, Attention, Global
from tests.nmt import reference
from tests.nmt.gradients import check_gradients
from tests.nmt.test_fused import run
from tests.nmt.test_luong import SCORES, attention_id, build, make_batch

WORDS = [3, 4, 5, 6, 7, 8, 9, 10]
# sources, `</s>` included, much longer than the window of 5, as long, longer by one, shorter; targets beyond their ends
PAIRS = [(WORDS * 2, [3, 4, 5]), (WORDS[:4], [6] * 9), (WORDS[:5], [7, 3, 4]), ([4], [5, 5, 8])]
LOCAL = [(scope, score) for scope in ("local-m", "local-p") for score in SCORES]
READINGS = [
    {"source_end": "absent"},
    {"centre": "plus_one"},
    {"gaussian": "renormalised"},
    {"gaussian": "before_softmax"},
    {"gaussian_gradient": "half"},
    {"location": "slots"},
]


def gathers(monkeypatch, always):
    """Have windows gathered always or never."""
    monkeypatch.setattr(Attention, "gathers", lambda self, *_: always and not isinstance(self.scope, Global))


def assert_same_as_hiding(monkeypatch, attention, pairs=PAIRS, fast=True, **changes):
    """Likelihood, alignment and gradients, at once and with feeding, plain and fast."""
    changes = {"pairs": pairs, "layers": 1, **changes}
    for feeding, paths in ((False, [False]), (True, [False, True] if fast else [False])):
        gathers(monkeypatch, False)
        likelihood, weights, gradients = run(False, attention, input_feeding=feeding, **changes)
        gathers(monkeypatch, True)
        for path in paths:
            found = run(path, attention, input_feeding=feeding, **changes)
            torch.testing.assert_close(found[0], likelihood, atol=1e-11, rtol=1e-11)
            torch.testing.assert_close(found[1], weights, atol=1e-11, rtol=1e-11)
            for name, gradient in gradients.items():
                assert gradient.any(), name
                torch.testing.assert_close(found[2][name], gradient, atol=1e-10, rtol=1e-10, msg=name)


@pytest.mark.parametrize("attention", LOCAL, ids=attention_id)
def test_gathering_is_the_same_as_hiding(monkeypatch, attention):
    assert_same_as_hiding(monkeypatch, attention)


@pytest.mark.parametrize("readings", READINGS, ids=lambda readings: "-".join(readings.values()))
@pytest.mark.parametrize("score", ["general", "concat", "location"])
def test_gathering_is_the_same_as_hiding_in_every_reading(monkeypatch, score, readings):
    assert_same_as_hiding(monkeypatch, ("local-p", score), readings=readings)
    if readings in ({"source_end": "absent"}, {"location": "slots"}):
        assert_same_as_hiding(monkeypatch, ("local-m", score), readings=readings)


@pytest.mark.parametrize("attention", LOCAL, ids=attention_id)
def test_no_sentence_longer_than_the_window(monkeypatch, attention):
    assert_same_as_hiding(monkeypatch, attention, pairs=PAIRS[1:2], fast=True)  # as long
    assert_same_as_hiding(monkeypatch, attention, pairs=PAIRS[3:], fast=False)  # the fast path's never is


@pytest.mark.parametrize("scope", ["local-m", "local-p"])
def test_windows_beyond_the_positions_that_the_location_score_knows(monkeypatch, scope):
    assert_same_as_hiding(monkeypatch, (scope, "location"), pairs=[(WORDS * 2, WORDS[:4] * 4)])  # it knows 12


def test_a_window_lies_around_every_centre():
    size, half_width = 9, 2
    annotations = torch.arange(2.0 * size).view(2, size, 1)
    source = Attended(annotations, -annotations, torch.tensor([size, 4]))
    centre = torch.arange(size + 2).expand(2, -1)  # 0 (floor(p_t) at its least) to S + 1 (p_t + 1 at its most)
    seen = source.around(centre, half_width)
    position, inside = (value.view(2, size + 2, 5) for value in (seen.position(), seen.inside()))
    for row, length in enumerate((size, 4)):
        for c in range(size + 2):
            expected = {s for s in range(1, length + 1) if abs(s - c) <= half_width}
            found = position[row, c][inside[row, c]].tolist()
            assert len(found) == len(set(found)) and expected <= set(found) <= set(range(1, length + 1))
    expected = torch.tensor([0.0, size]).view(2, 1, 1) + position - 1
    torch.testing.assert_close(seen.annotations.view_as(expected), expected)
    torch.testing.assert_close(seen.keys.view_as(expected), -expected)
    weights = torch.rand(2 * (size + 2), 3, 5)
    spread = seen.spread(weights, size)
    torch.testing.assert_close(spread.gather(2, (seen.position() - 1).unsqueeze(1).expand_as(weights)), weights)
    torch.testing.assert_close(spread.sum(2), weights.sum(2))


@torch.inference_mode()
@pytest.mark.parametrize("fast", [False, True], ids=["plain", "fast"])
@pytest.mark.parametrize("attention", LOCAL, ids=attention_id)
def test_a_beam_s_steps_give_what_teacher_forcing_gives(monkeypatch, attention, fast):
    """Three hypotheses a sentence, each of which reads the reference or other words."""
    model, batch, beam = build(attention, fast=fast, input_feeding=True, layers=1), make_batch(PAIRS), 3
    others = [(batch.target_input + shift) % 9 for shift in range(beam)]
    gathers(monkeypatch, False)
    forced = [model(replace(batch, target_input=words)) for words in others]
    gathers(monkeypatch, True)
    memory = model.encode(batch.source, batch.source_length)
    state = model.start(memory).select(torch.arange(len(PAIRS)).repeat_interleave(beam))
    for t in range(batch.target_input.shape[1]):
        step = model.step(memory, state, torch.stack([words[:, t] for words in others], 1).flatten())
        state = step.state
        for k in range(beam):
            real = t < batch.target_length
            torch.testing.assert_close(step.attention[k::beam][real], forced[k].attention[real, t])
            likelihood = step.log_probability[k::beam].gather(1, batch.target_output[:, t : t + 1]).squeeze(1)
            torch.testing.assert_close(likelihood[real], forced[k].log_likelihood[real, t])


@pytest.mark.parametrize("feeding", [False, True], ids=["", "feed"])
@pytest.mark.parametrize("fast", [False, True], ids=["plain", "fast"])
@pytest.mark.parametrize("attention", LOCAL, ids=attention_id)
def test_a_long_sentence_equals_the_equations(attention, fast, feeding):
    model, (source, target) = build(attention, fast=fast, input_feeding=feeding), (WORDS * 5, [3, 4, 5])
    if attention[1] == "location":
        source = source[:11]  # in the equations it knows every position
    else:
        assert model.attention.gathers(len(source) + 1, 1 if feeding else len(target) + 1)
    parameters = {name: value.detach().numpy() for name, value in model.named_parameters()}
    forced = model(make_batch([(source, target)]))
    likelihood, weights = reference.log_likelihood(parameters, source, target, 2, True, feeding, *attention, 2)
    np.testing.assert_allclose(forced.log_likelihood[0].detach(), likelihood, atol=1e-12)
    np.testing.assert_allclose(forced.attention[0].detach(), weights, atol=1e-12)


@pytest.mark.parametrize("attention", [("local-m", "general"), ("local-p", "concat")], ids=attention_id)
def test_gradients_against_finite_differences(monkeypatch, attention):
    gathers(monkeypatch, True)
    model, batch = build(attention, input_feeding=True), make_batch(PAIRS[:2])
    check_gradients(model, lambda: -model(batch).log_likelihood.sum())


@pytest.mark.parametrize("fast", [False, True], ids=["plain", "fast"])
@pytest.mark.parametrize("score", ["dot", "concat"])
def test_what_lies_outside_of_the_windows_is_not_read(score, fast):
    """A product over all of the source would make NaN of it."""
    model = build(("local-m", score), fast=fast, input_feeding=True)
    batch = make_batch([(WORDS * 5, [3, 4])])
    memory = model.encode(batch.source, batch.source_length)
    for values in {id(values): values for values in (memory.source.annotations, memory.source.keys)}.values():
        values.detach()[:, 3 + 2 :] = torch.nan  # three steps, D = 2
    embedded = model.target_embedding(batch.target_input)
    read = model.fast_path().read_fed if fast else lambda model, *given: model._read_fed(*given)
    attentional, weights = read(model, memory, embedded)
    assert torch.isfinite(attentional).all() and torch.isfinite(weights).all()


def test_short_sources_and_global_attention_are_not_gathered():
    narrow = build(("local-p", "general")).attention
    assert not narrow.gathers(20, 1) and narrow.gathers(21, 1)  # windows of 5
    assert not narrow.gathers(75, 12) and narrow.gathers(76, 12)
    assert build(("local-p", "concat")).attention.gathers(11, 12)
    assert not build(("global", "general")).attention.gathers(10**6, 1)
