"""Ensembles against their members and against averages worked out with numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmt.batching import make_batch
from nmt.ensemble import Ensemble, Member
from nmt.interface import TranslationModel
from nmt.search import Decoding, translate, translate_best
from tests.nmt.toy import ToyModel

SOURCES = [np.array(words) for words in ([3, 4], [5], [6, 7, 8], [4, 4, 5, 3])]
TARGETS = [np.array(words) for words in ([3], [4, 5, 6, 7], [0, 3], [7, 7])]
SOURCE_WORDS, TARGET_WORDS = list("abcdefghi"), list("ABCDEFGH")


def ensemble(*models: TranslationModel, average: str = "logits") -> Ensemble:
    members = [Member(f"member{i}", model, SOURCE_WORDS, TARGET_WORDS) for i, model in enumerate(models)]
    return Ensemble(members, average)


def first_step(model: TranslationModel) -> np.ndarray:
    """Log-probabilities of the first word of each sentence."""
    batch = make_batch(SOURCES, TARGETS)
    memory = model.encode(batch.source, batch.source_length)
    return model.step(memory, model.start(memory), batch.target_input[:, 0]).log_probability.detach().numpy()


@pytest.mark.parametrize("average", ["logits", "probabilities"])
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("attend_end", [False, True])
def test_equal_members_are_the_model(average: str, copies: int, attend_end: bool) -> None:
    model = ToyModel(vocabulary=8, seed=1, attend_end=attend_end)
    several = ensemble(*[model] * copies, average=average)
    batch = make_batch(SOURCES, TARGETS)
    one, many = model(batch), several(batch)
    torch.testing.assert_close(many.log_likelihood, one.log_likelihood)
    torch.testing.assert_close(many.attention, one.attention)
    assert (many.log_likelihood[~batch.target_mask()] == 0).all()
    decoding = Decoding(beam=3, best=2)
    expected = translate_best(model, SOURCES, decoding)
    for found, wanted in zip(translate_best(several, SOURCES, decoding), expected, strict=True):
        assert [hypothesis.words for hypothesis in found] == [hypothesis.words for hypothesis in wanted]
        np.testing.assert_allclose(found[0].attention, wanted[0].attention, rtol=1e-6)


def test_averages_of_two_members_by_numpy() -> None:
    models = ToyModel(vocabulary=8, seed=1), ToyModel(vocabulary=8, seed=2)
    probabilities = [np.exp(first_step(model)) for model in models]
    arithmetic = (probabilities[0] + probabilities[1]) / 2
    geometric = np.sqrt(probabilities[0] * probabilities[1])
    geometric /= geometric.sum(axis=1, keepdims=True)
    assert np.abs(arithmetic - geometric).max() > 0.01
    np.testing.assert_allclose(np.exp(first_step(ensemble(*models, average="probabilities"))), arithmetic)
    np.testing.assert_allclose(np.exp(first_step(ensemble(*models, average="logits"))), geometric)


def test_mean_log_probability_is_mean_logit() -> None:
    """softmax of the mean of two rows of logits, by hand: the constants of the two softmaxes do not matter."""
    logits = np.array([[2.0, 0.0, -1.0], [0.0, 3.0, 1.0]])
    members = [torch.tensor(row)[None].log_softmax(1) for row in logits]
    expected = np.exp(logits.mean(0)) / np.exp(logits.mean(0)).sum()
    found = ensemble(ToyModel(), ToyModel())._average(members)
    np.testing.assert_allclose(found.exp()[0].numpy(), expected)


def test_the_search_over_an_ensemble_scores_as_its_forward() -> None:
    model = ensemble(ToyModel(vocabulary=8, seed=1), ToyModel(vocabulary=8, seed=2), average="probabilities")
    found = translate(model, SOURCES, Decoding(beam=4))
    forced = model(make_batch(SOURCES, [np.array(hypothesis.words) for hypothesis in found]))
    scores = [hypothesis.log_probability for hypothesis in found]
    np.testing.assert_allclose(scores, forced.log_likelihood.sum(1).detach().numpy(), rtol=1e-5)


def test_attention_is_the_mean_over_the_words_that_every_attending_member_sees() -> None:
    plain, ending = ToyModel(vocabulary=8, seed=1), ToyModel(vocabulary=8, seed=2, attend_end=True)
    batch = make_batch(SOURCES, TARGETS)
    found = ensemble(plain, ending, ToyModel(vocabulary=8, seed=3, attention=False))(batch).attention
    assert found.shape == (4, 5, 4)
    for i, source in enumerate(SOURCES):
        words = len(source)
        expected = (plain(batch).attention[i, :, :words] + ending(batch).attention[i, :, :words]) / 2
        torch.testing.assert_close(found[i, :, :words], expected)
        assert (found[i, :, words:] == 0).all()
        assert (found[i].sum(1) < 1).all()


def test_members_without_attention_have_none() -> None:
    model = ToyModel(vocabulary=8, attention=False)
    assert ensemble(model, model)(make_batch(SOURCES, TARGETS)).attention is None


def test_each_member_encodes_a_sentence_once() -> None:
    models = [ToyModel(vocabulary=8, seed=seed) for seed in range(2)]
    read: list[int] = []
    for model in models:
        encode = model.encode
        model.encode = lambda source, length, encode=encode: (read.append(len(source)), encode(source, length))[1]
    translate(ensemble(*models), SOURCES, Decoding(beam=3))
    assert read == [4, 4]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_member_with_another_vocabulary_is_refused_by_name(side: str) -> None:
    first = Member("first", ToyModel(), SOURCE_WORDS, TARGET_WORDS)
    words = {"source": SOURCE_WORDS, "target": TARGET_WORDS}
    changed = words | {side: [*words[side][:2], "other", *words[side][3:]]}
    with pytest.raises(ValueError, match=rf"{side} vocabulary of member 'odd'.*'other' in line 3"):
        Ensemble([first, Member("odd", ToyModel(), changed["source"], changed["target"])])
    longer = words | {side: [*words[side], "more"]}
    with pytest.raises(ValueError, match=rf"{side} vocabulary of member 'odd'.*found {len(longer[side])} words"):
        Ensemble([first, Member("odd", ToyModel(), longer["source"], longer["target"])])


def test_an_impossible_ensemble_is_refused() -> None:
    with pytest.raises(ValueError, match="no members"):
        Ensemble([])
    with pytest.raises(ValueError, match="average is 'median'"):
        ensemble(ToyModel(), average="median")
