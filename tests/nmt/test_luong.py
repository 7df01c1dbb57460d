"""The Luong family against a float64 numpy loop, finite differences, repeated steps and padding."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nmt.attention import AttentionConfig
from nmt.interface import Batch
from nmt.luong import LuongConfig, LuongModel, reading_order
from tests.nmt import reference
from tests.nmt.gradients import check_gradients

SCOPES = ["global", "local-m", "local-p"]
SCORES = ["dot", "general", "concat", "concat_identity", "location"]
ATTENTIONS = [None, *((scope, score) for scope in SCOPES for score in SCORES)]


def attention_id(attention):
    return "none" if attention is None else "-".join(attention)


def build(attention=None, dtype=torch.float64, seed=3, **changes):
    """A small model with large weights, so that every part matters."""
    if attention is not None:
        attention = AttentionConfig(*attention, window=2, longest=12)
    config = LuongConfig(
        source_vocabulary=11, target_vocabulary=9, layers=2, hidden=5, embedding=4, attention=attention
    )
    model = LuongModel(replace(config, initialisation=0.8, **changes))
    model.initialise(torch.Generator().manual_seed(seed))
    return model.to(dtype).eval()


def make_batch(pairs):
    """A padded batch; the padding value is deliberately a real word."""
    source_size, target_size = (max(len(side) for side in sides) for sides in zip(*pairs, strict=True))

    def pad(words, size):
        return [*words, *[5] * (size - len(words))]

    return Batch(
        torch.tensor([pad(s, source_size) for s, _ in pairs]),
        torch.tensor([len(s) for s, _ in pairs]),
        torch.tensor([pad([1, *t], target_size + 1) for _, t in pairs]),
        torch.tensor([pad([*t, 2], target_size + 1) for _, t in pairs]),
        torch.tensor([len(t) + 1 for _, t in pairs]),
    )


PAIRS = [([3, 4, 5, 6, 7, 8, 9], [3, 4, 5]), ([10, 3], [6, 7, 8, 3, 4]), ([4], [5]), ([7, 7, 8, 0], [8, 8, 0, 3])]


@pytest.mark.parametrize("feeding", [False, True], ids=["", "feed"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("attention", ATTENTIONS, ids=attention_id)
def test_equals_the_equations(attention, reverse, feeding):
    model = build(attention, reverse=reverse, input_feeding=feeding)
    parameters = {name: value.detach().numpy() for name, value in model.named_parameters()}
    forced = model(make_batch(PAIRS))
    for row, (source, target) in enumerate(PAIRS):
        scope, score = attention or (None, None)
        expected, weights = reference.log_likelihood(
            parameters, source, target, 2, reverse, feeding, scope, score, half_width=2
        )
        steps = len(target) + 1
        np.testing.assert_allclose(forced.log_likelihood[row, :steps].detach(), expected, atol=1e-12)
        assert not forced.log_likelihood[row, steps:].any()
        if attention is not None:
            found = forced.attention[row, :steps].detach().numpy()
            np.testing.assert_allclose(found[:, : len(source) + 1], weights, atol=1e-12)
            assert not found[:, len(source) + 1 :].any()


@pytest.mark.parametrize("feeding", [False, True], ids=["", "feed"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("attention", ATTENTIONS, ids=attention_id)
def test_gradients_against_finite_differences(attention, reverse, feeding):
    model = build(attention, reverse=reverse, input_feeding=feeding)
    batch = make_batch(PAIRS[:2])

    check_gradients(model, lambda: -model(batch).log_likelihood.sum())


@pytest.mark.parametrize("feeding", [False, True], ids=["", "feed"])
@pytest.mark.parametrize("attention", ATTENTIONS, ids=attention_id)
def test_forward_equals_repeated_step(attention, feeding):
    model = build(attention, input_feeding=feeding)
    batch = make_batch(PAIRS)
    forced = model(batch)
    memory = model.encode(batch.source, batch.source_length)
    state = model.start(memory)
    for t in range(batch.target_input.shape[1]):
        step = model.step(memory, state, batch.target_input[:, t])
        state = step.state
        real = t < batch.target_length
        likelihood = step.log_probability.gather(1, batch.target_output[:, t : t + 1]).squeeze(1)
        torch.testing.assert_close(likelihood[real], forced.log_likelihood[real, t])
        torch.testing.assert_close(step.log_probability.exp().sum(1), torch.ones(len(PAIRS), dtype=torch.float64))
        if attention is not None:
            torch.testing.assert_close(step.attention[real], forced.attention[real, t])


@pytest.mark.parametrize("attention", [None, ("global", "general"), ("local-p", "concat")], ids=attention_id)
def test_beams_share_one_memory(attention):
    """Hypotheses side by side give what each gives alone, and selecting rows reorders them."""
    model = build(attention, input_feeding=True)
    batch = make_batch(PAIRS[:2])
    memory = model.encode(batch.source, batch.source_length)
    state = model.start(memory).select(torch.tensor([0, 0, 0, 1, 1, 1]))
    first = model.step(memory, state, torch.tensor([1, 3, 4, 1, 3, 4]))
    second = model.step(memory, first.state.select(torch.tensor([2, 0, 1, 5, 3, 4])), torch.tensor([6, 7, 8, 6, 7, 8]))
    for row, (sentence, words) in enumerate([(0, [4, 6]), (0, [1, 7]), (0, [3, 8]), (1, [4, 6]), (1, [1, 7])]):
        alone = memory.select(torch.tensor([sentence]))
        state = model.start(alone)
        for word in words:
            step = model.step(alone, state, torch.tensor([word]))
            state = step.state
        torch.testing.assert_close(second.log_probability[row], step.log_probability[0])


@pytest.mark.parametrize("feeding", [False, True], ids=["", "feed"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("attention", ATTENTIONS, ids=attention_id)
def test_padding_changes_nothing(attention, reverse, feeding):
    model = build(attention, dtype=torch.float32, reverse=reverse, input_feeding=feeding)
    together = model(make_batch(PAIRS))
    for row, pair in enumerate(PAIRS):
        alone = model(make_batch([pair]))
        steps = len(pair[1]) + 1
        torch.testing.assert_close(together.log_likelihood[row, :steps], alone.log_likelihood[0], atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize("feeding", [False, True], ids=["", "feed"])
def test_fast_recurrence_equals_plain(feeding):
    """Same numbers, gradients and dropout."""
    results = []
    for fast in (True, False):
        model = build(("global", "general"), input_feeding=feeding, dropout=0.3, fast=fast).train()
        torch.manual_seed(7)
        likelihood = model(make_batch(PAIRS)).log_likelihood
        likelihood.sum().backward()
        results.append((likelihood.detach(), {name: p.grad for name, p in model.named_parameters()}))
    torch.testing.assert_close(results[0][0], results[1][0])
    for name, gradient in results[0][1].items():
        torch.testing.assert_close(gradient, results[1][1][name], msg=name)


def test_dropout_spares_recurrence_top_and_attention():
    """With everything dropped, each layer still runs its recurrence from the encoder's states."""
    model = build(("global", "dot"), layers=1, dropout=1.0).train()
    batch = make_batch([([3, 4], [5])])
    assert torch.isfinite(model(batch).log_likelihood).all()
    assert not model.encode(batch.source, batch.source_length).source.annotations.any()


def test_a_source_longer_than_the_location_score_knows():
    for scope in SCOPES:
        model = build((scope, "location"))
        long = make_batch([([3] * 40, [4] * 40)])
        assert torch.isfinite(model(long).log_likelihood).all()


def test_reading_order():
    length = torch.tensor([2, 3])
    assert reading_order(length, 4, reverse=False).tolist() == [[-1, -1, 0, 1], [-1, 0, 1, 2]]
    assert reading_order(length, 4, reverse=True).tolist() == [[-1, -1, 1, 0], [-1, 2, 1, 0]]


# ---------------------------------------------------------------- readings


def likelihoods(pairs, attention, readings, **changes):
    model = build(attention, readings=readings, **changes)
    return model(make_batch(pairs)).log_likelihood[0].detach()


def test_unmasked_padding_changes_with_the_batch():
    short, long = PAIRS[1], PAIRS[0]
    for padding, moves in [("masked", False), ("unmasked", True)]:
        alone = likelihoods([short], ("global", "dot"), {"padding": padding})
        beside = likelihoods([short, long], ("global", "dot"), {"padding": padding})[: len(alone)]
        assert torch.allclose(alone, beside) != moves


def test_unmasked_padding_adds_one_to_the_denominator_for_each_pad():
    model = build(("global", "dot"), readings={"padding": "unmasked"})
    masked = build(("global", "dot"))
    batch = make_batch([PAIRS[1], PAIRS[0]])
    pads = len(PAIRS[0][0]) - len(PAIRS[1][0])
    query = torch.randn(2, 1, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    source = model.encode(batch.source, batch.source_length).source
    time = torch.tensor([1])
    _, found = model.attention(query, source, time)
    scores = (query[0] @ source.annotations[0].T)[0, : len(PAIRS[1][0]) + 1]
    expected = scores.exp() / (scores.exp().sum() + pads)
    torch.testing.assert_close(found[0, 0, : len(scores)], expected)
    torch.testing.assert_close(masked.attention(query, source, time)[1][0, 0, : len(scores)], scores.softmax(0))


def test_source_end_absent_is_neither_read_nor_attended():
    model = build(("global", "dot"), readings={"source_end": "absent"})
    batch = make_batch([PAIRS[1]])
    assert model.encode(batch.source, batch.source_length).source.annotations.shape[1] == 2
    assert model(batch).attention.shape[2] == 2


def test_location_slots_share_the_weight_of_all_slots():
    model = build(("global", "location"), readings={"location": "slots"})
    weights = model(make_batch([PAIRS[1]])).attention[0]
    assert (weights.sum(1) < 0.95).all()
    sentence = build(("global", "location"))(make_batch([PAIRS[1]])).attention[0]
    torch.testing.assert_close(sentence.sum(1), torch.ones(len(sentence), dtype=torch.float64))
    torch.testing.assert_close(weights / weights.sum(1, keepdim=True), sentence)


def test_location_slots_count_from_the_end_when_not_reversed():
    """Right-aligned memory: the last word read has the last slot."""
    model = build(("global", "location"), readings={"location": "slots", "source_end": "absent"}, reverse=False)
    query = torch.randn(1, 1, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    memory = model.encode(torch.tensor([[3, 4]]), torch.tensor([2]))
    weights = model.attention(query, memory.source, torch.tensor([1]))[1][0, 0]
    torch.testing.assert_close(weights, model.attention.score.project(query)[0, 0].softmax(0)[-2:])


def local_p(readings):
    """The attention of one step and the gradient of v_p, with W_p and v_p the same in every reading."""
    model = build(("local-p", "general"), readings=readings)
    batch = make_batch([PAIRS[0]])
    memory = model.encode(batch.source, batch.source_length)
    query = torch.randn(1, 1, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    _, weights = model.attention(query, memory.source, torch.tensor([1]))
    (weights[0, 0] * torch.arange(8, dtype=torch.float64)).sum().backward()
    return weights[0, 0].detach(), model.attention.scope.weigh.weight.grad


def test_half_gaussian_gradient_is_half():
    full, half = local_p({}), local_p({"gaussian_gradient": "half"})
    torch.testing.assert_close(full[0], half[0])
    torch.testing.assert_close(full[1], 2 * half[1])
    assert full[1].any()


def test_gaussian_readings():
    paper = local_p({})[0]
    renormalised = local_p({"gaussian": "renormalised"})[0]
    before = local_p({"gaussian": "before_softmax"})[0]
    assert paper.sum() < 0.99
    torch.testing.assert_close(renormalised, paper / paper.sum())
    assert before.sum().item() == pytest.approx(1)
    assert not torch.allclose(before, renormalised)


def test_centre_plus_one():
    model, plain = build(("local-p", "dot"), readings={"centre": "plus_one"}), build(("local-p", "dot"))
    asked = torch.ones(1, 1, 5, dtype=torch.float64), torch.tensor([6]), torch.tensor([1])
    torch.testing.assert_close(model.attention.scope.centre(*asked), plain.attention.scope.centre(*asked) + 1)


def test_as_coded_runs_for_every_attention():
    for attention in ATTENTIONS:
        model = build(attention, reading="as_coded", input_feeding=True)
        assert torch.isfinite(model(make_batch(PAIRS)).log_likelihood).all()


def test_a_predicted_centre_is_not_rounded_to_bfloat16():
    scope = build(("local-p", "dot"), dtype=torch.float32).attention.scope
    query, length = torch.randn(1, 50, 5, generator=torch.Generator().manual_seed(1)), torch.tensor([1000])
    exact = scope.centre(query, length, None)
    with torch.autocast("cpu", torch.bfloat16):
        centre = scope.centre(query, length, None)
    assert centre.dtype == torch.float32
    assert len(centre.unique()) == 50
    torch.testing.assert_close(centre, exact, rtol=0.02, atol=0.1)
