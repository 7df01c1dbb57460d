"""Beam search against brute force and against a search written hypothesis by hypothesis."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from nmt.search import Decoding, Hypothesis, beam_search, force, translate, translate_best
from nmt.vocab import BOS, EOS, UNK
from tests.nmt.test_luong import build
from tests.nmt.toy import ToyMemory, ToyModel, ToyState

SOURCES = [np.array(words) for words in ([3, 4], [5], [6, 7, 8], [4, 4, 5, 3], [8, 3], [7])]


def limits(source_words: int, decoding: Decoding) -> tuple[int, int]:
    """Fewest and most words of an output, worked out with `math`."""
    fewest = math.ceil(decoding.shortest * (source_words + 1))
    return fewest, max(fewest, math.floor(decoding.longest * (source_words + 1)))


def memory_of(model: ToyModel, source: np.ndarray) -> ToyMemory:
    return model.encode(torch.tensor(source)[None], torch.tensor([len(source)]))


def score(model: ToyModel, source: np.ndarray, words: list[int]) -> tuple[float, np.ndarray | None]:
    """Log-probability of a translation and its attention, one step at a time."""
    memory = memory_of(model, source)
    state, total, attention = model.start(memory), 0.0, []
    for previous, word in itertools.pairwise([BOS, *words, EOS]):
        step = model.step(memory, state, torch.tensor([previous]))
        state = step.state
        total += step.log_probability[0, word].item()
        attention.append(step.attention)
    return total, None if attention[0] is None else torch.cat(attention).detach().numpy()


def brute_force(model: ToyModel, source: np.ndarray, vocabulary: int, decoding: Decoding) -> list[tuple[float, list]]:
    """Every translation of an allowed length, best first."""
    words_allowed = [word for word in range(vocabulary) if word not in (BOS, EOS)][int(decoding.forbid_unknown) :]
    fewest, most = limits(len(source), decoding)
    memory, everything = memory_of(model, source), []

    def extend(total: float, words: list[int], state: ToyState) -> None:
        step = model.step(memory, state, torch.tensor([[BOS, *words][-1]]))
        log_probability = step.log_probability[0].tolist()
        if len(words) >= fewest:
            everything.append((total + log_probability[EOS], words))
        if len(words) < most:
            for word in words_allowed:
                extend(total + log_probability[word], [*words, word], step.state)

    extend(0.0, [], model.start(memory))
    return sorted(everything, key=lambda item: -item[0] / (len(item[1]) + 1) ** decoding.length_normalisation)


def plain_search(model: ToyModel, source: np.ndarray, decoding: Decoding) -> list[tuple[float, list[int]]]:
    """Beam search over lists: the rule of the authors' code, read off one hypothesis at a time."""
    memory = memory_of(model, source)
    fewest, most = limits(len(source), decoding)
    live, finished = [(0.0, [], model.start(memory))], []
    for length in range(most + 1):
        continuations, endings = [], []
        for total, words, state in live:
            step = model.step(memory, state, torch.tensor([[BOS, *words][-1]]))
            for word, log_probability in enumerate(step.log_probability[0].tolist()):
                if word == EOS and length >= fewest:
                    endings.append((total + log_probability, words))
                elif word not in (BOS, EOS) and length < most:
                    continuations.append((total + log_probability, [*words, word], step.state))
        live = sorted(continuations, key=lambda item: -item[0])[: decoding.beam]
        bar = live[-1][0] if len(live) == decoding.beam else -math.inf
        finished += [ending for ending in endings if ending[0] >= bar]
        if len(finished) >= decoding.maximum_finished:
            break
    return sorted(finished, key=lambda item: -item[0] / (len(item[1]) + 1) ** decoding.length_normalisation)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("changes", [{}, {"forbid_unknown": True}, {"length_normalisation": 1.0}, {"shortest": 0.0}])
def test_a_wide_beam_finds_the_best_of_all_translations(seed: int, changes: dict) -> None:
    model, decoding = ToyModel(seed=seed), Decoding(beam=90, best=4, maximum_finished=1000, **changes)
    for source, found in zip(SOURCES[:2], translate_best(model, SOURCES[:2], decoding), strict=True):
        expected = brute_force(model, source, 5, decoding)[:4]
        assert [hypothesis.words for hypothesis in found] == [words for _, words in expected]
        np.testing.assert_allclose([h.log_probability for h in found], [value for value, _ in expected], rtol=1e-5)


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
@pytest.mark.parametrize("best", [1, 3])
@pytest.mark.parametrize("end_bias", [-1.0, 1.5])
@pytest.mark.parametrize("power", [0.0, 2.0])
def test_the_search_is_that_of_the_plain_one(beam: int, best: int, end_bias: float, power: float) -> None:
    for seed in range(3):
        model = ToyModel(vocabulary=8, seed=seed, bias={EOS: end_bias})
        decoding = Decoding(beam=beam, best=best, length_normalisation=power)
        for source, found in zip(SOURCES, translate_best(model, SOURCES, decoding), strict=True):
            expected = plain_search(model, source, decoding)[:best]
            assert [hypothesis.words for hypothesis in found] == [words for _, words in expected]
            np.testing.assert_allclose([h.log_probability for h in found], [v for v, _ in expected], rtol=1e-5)


@pytest.mark.parametrize("attend_end", [False, True])
def test_score_and_attention_are_those_of_the_words_found(attend_end: bool) -> None:
    model = ToyModel(vocabulary=8, seed=5, attend_end=attend_end)
    for source, found in zip(SOURCES, translate_best(model, SOURCES, Decoding(beam=3, best=3)), strict=True):
        for hypothesis in found:
            total, attention = score(model, source, hypothesis.words)
            assert hypothesis.log_probability == pytest.approx(total, rel=1e-5)
            assert hypothesis.attention.shape == (len(hypothesis.words) + 1, len(source) + attend_end)
            np.testing.assert_allclose(hypothesis.attention, attention, rtol=1e-5)


def test_a_sentence_is_translated_as_if_alone_whatever_the_batch() -> None:
    model = ToyModel(vocabulary=9, seed=2)
    rng = np.random.default_rng(0)
    sources = [rng.integers(3, 9, size=length) for length in rng.integers(1, 14, size=40)]
    alone = [translate(model, [source], Decoding(beam=4))[0] for source in sources]
    for budget in (1, 300, 10**6):
        together = translate(model, sources, Decoding(beam=4, token_budget=budget))
        for one, other in zip(alone, together, strict=True):
            assert one.words == other.words
            assert one.log_probability == pytest.approx(other.log_probability, rel=1e-6)
            np.testing.assert_allclose(one.attention, other.attention, rtol=1e-6)


def test_bfloat16_comes_close_and_keeps_probabilities_in_float32() -> None:
    """Of the same words, as the two searches may end with different ones."""
    model = build(("local-p", "general"), input_feeding=True, dtype=torch.float32)
    sources = [np.array(words) for words in ([3, 4, 5, 6], [7, 10], [8])]
    found = translate(model, sources, Decoding(beam=3, precision="bfloat16"))
    exact = force(model, sources, [np.array(hypothesis.words) for hypothesis in found], Decoding())
    for one, other in zip(found, exact, strict=True):
        assert one.log_probability != other.log_probability
        assert one.log_probability == pytest.approx(other.log_probability, rel=0.02)
        np.testing.assert_allclose(one.attention, other.attention, atol=0.05)


def test_finished_sentences_leave_the_batch() -> None:
    model = ToyModel(vocabulary=8, seed=1, bias={EOS: 3.0})
    translate(model, [np.full(30, 3)] + [np.array([5])] * 20, Decoding(beam=2))
    assert model.rows[0] == 42
    assert model.rows[-1] == 2


@pytest.mark.parametrize("end_bias", [-50.0, 50.0])
def test_lengths_stay_within_their_bounds(end_bias: float) -> None:
    """A model that never wants to end is ended at the longest length, one that always wants to at the shortest."""
    decoding = Decoding(beam=3, shortest=0.5, longest=1.5)
    for source, found in zip(SOURCES, translate(ToyModel(bias={EOS: end_bias}), SOURCES, decoding), strict=True):
        assert len(found.words) == limits(len(source), decoding)[0 if end_bias > 0 else 1]
        assert not set(found.words) & {BOS, EOS}
        assert math.isfinite(found.log_probability)


def test_length_bounds_by_hand() -> None:
    fewest, most = Decoding().word_limits(np.array([1, 2, 3, 10]))
    assert fewest.tolist() == [1, 2, 2, 6]
    assert most.tolist() == [3, 4, 6, 16]
    fewest, most = Decoding(shortest=0.1, longest=0.1).word_limits(np.array([2, 29]))
    assert (fewest.tolist(), most.tolist()) == ([1, 3], [1, 3])


def test_unknown_words_may_be_generated_unless_forbidden() -> None:
    model, decoding = ToyModel(bias={UNK: 9.0}), Decoding(beam=3, best=3)
    assert all(hypotheses[0].words.count(UNK) > 0 for hypotheses in translate_best(model, SOURCES, decoding))
    for hypotheses in translate_best(model, SOURCES, replace(decoding, forbid_unknown=True)):
        assert len(hypotheses) == 3
        assert not any(UNK in hypothesis.words for hypothesis in hypotheses)


def test_at_most_so_many_hypotheses_finish() -> None:
    """A sentence stops at that many: what would finish later, and rank higher, is never seen."""
    model = ToyModel(vocabulary=8, seed=4, bias={EOS: 1.0})
    decoding = Decoding(beam=4, best=10, maximum_finished=3, length_normalisation=2.0)
    for source, found in zip(SOURCES, translate_best(model, SOURCES, decoding), strict=True):
        expected = plain_search(model, source, decoding)[:3]
        assert [hypothesis.words for hypothesis in found] == [words for _, words in expected]


def test_order_is_kept_and_empty_sentences_never_reach_the_model() -> None:
    model = ToyModel(vocabulary=8, seed=6)
    empty, done = np.array([], dtype=np.int64), []
    sources = [empty, *SOURCES, empty]
    found = translate(model, sources, Decoding(beam=2, token_budget=64), progress=done.append)
    assert sum(done) == len(sources)
    assert found[0] == found[-1]
    assert (found[0].words, found[0].log_probability, found[0].attention.shape) == ([], 0.0, (1, 0))
    for source, hypothesis in zip(SOURCES, found[1:-1], strict=True):
        assert hypothesis.words == translate(model, [source], Decoding(beam=2))[0].words
    steps = model.calls
    assert translate(model, [empty], Decoding()) == [Hypothesis([], 0.0, None)]
    assert translate(model, [], Decoding()) == []
    assert model.calls == steps


def test_a_model_without_attention_gives_none() -> None:
    model = ToyModel(vocabulary=9, attention=False)
    found = translate(model, [*SOURCES, np.array([], dtype=np.int64)], Decoding(beam=2))
    assert {hypothesis.attention is None for hypothesis in found} == {True}
    assert {hypothesis.attention is None for hypothesis in force(model, SOURCES, SOURCES, Decoding())} == {True}


def test_the_model_keeps_its_mode_and_the_search_its_dropout_off() -> None:
    model = ToyModel().train()
    model.register_forward_pre_hook(lambda module, _: pytest.fail("dropout on") if module.training else None)
    force(model, SOURCES, [np.array([3])] * len(SOURCES), Decoding())
    translate(model, SOURCES, Decoding(beam=2))
    assert model.training


def test_a_diverged_model_is_named_as_such() -> None:
    model = ToyModel()
    model.output.data[:] = torch.nan
    with pytest.raises(ValueError, match="diverged"):
        beam_search(model, torch.tensor([[3, 4]]), torch.tensor([2]), Decoding(beam=2))


@pytest.mark.parametrize("attend_end", [False, True])
@pytest.mark.parametrize("budget", [1, 10**5])
def test_forced_decoding_scores_each_pair_in_order(attend_end: bool, budget: int) -> None:
    model = ToyModel(vocabulary=8, seed=7, attend_end=attend_end)
    targets = [np.array(words, dtype=np.int64) for words in ([3], [4, 5, 6, 7], [], [0, 3], [7, 7], [6])]
    done: list[int] = []
    found = force(model, SOURCES, targets, Decoding(token_budget=budget), progress=done.append)
    assert sum(done) == len(SOURCES)
    for source, target, hypothesis in zip(SOURCES, targets, found, strict=True):
        total, attention = score(model, source, target.tolist())
        assert hypothesis.words == target.tolist()
        assert hypothesis.log_probability == pytest.approx(total, rel=1e-6)
        np.testing.assert_allclose(hypothesis.attention, attention, rtol=1e-5)


def test_forced_decoding_refuses_what_it_cannot_score() -> None:
    with pytest.raises(ValueError, match="source sentence 2 is empty"):
        force(ToyModel(), [SOURCES[0], np.array([], dtype=np.int64)], SOURCES[:2], Decoding())
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        force(ToyModel(), SOURCES[:2], SOURCES[:1], Decoding())


@pytest.mark.parametrize("changes", [{"beam": 0}, {"shortest": 2.0}, {"alignment_step": "next"}, {"best": 0}])
def test_impossible_decoding_is_refused(changes: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        Decoding(**changes)
