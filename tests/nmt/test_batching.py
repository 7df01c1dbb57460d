"""Padded tensors."""

import numpy as np
import pytest

from nmt.batching import batches, evaluation_plan, make_batch, pad
from nmt.corpus import BinaryText, ParallelCorpus, binarise
from nmt.vocab import SPECIALS, Vocabulary


def test_pad():
    padded, lengths = pad([np.array([5, 6, 7], np.int32), np.array([], np.int32), np.array([8], np.int32)])
    assert padded.tolist() == [[5, 6, 7], [2, 2, 2], [8, 2, 2]]
    assert lengths.tolist() == [3, 0, 1]
    assert pad([])[0].shape == (0, 0)
    assert pad([np.array([], np.int32)])[0].shape == (1, 0)


def test_make_batch_puts_the_specials_around_the_target():
    batch = make_batch([np.array([5]), np.array([6, 7])], [np.array([8, 9]), np.array([], np.int32)])
    assert batch.source.tolist() == [[5, 2], [6, 7]]
    assert batch.source_length.tolist() == [1, 2]
    assert batch.target_input.tolist() == [[1, 8, 9], [1, 2, 2]]
    assert batch.target_output.tolist() == [[8, 9, 2], [2, 2, 2]]
    assert batch.target_length.tolist() == [3, 1]
    assert batch.target_words == 4
    with pytest.raises(ValueError, match="1 sources and 0 targets"):
        make_batch([np.array([5])], [])


def test_batches_follow_the_plan(tmp_path):
    vocabulary = Vocabulary([*SPECIALS, "a", "b"])
    binarise(["a", "b", "a b"], vocabulary, tmp_path / "s")
    binarise(["b", "a a", "b"], vocabulary, tmp_path / "t")
    corpus = ParallelCorpus(BinaryText(tmp_path / "s"), BinaryText(tmp_path / "t"))
    first, second = batches(corpus, [np.array([2, 0]), np.array([1])])
    assert first.source.tolist() == [[3, 4], [3, 2]]
    assert first.target_output.tolist() == [[4, 2], [4, 2]]
    assert second.source.tolist() == [[4]]
    assert second.target_output.tolist() == [[3, 3, 2]]


def test_evaluation_plan_covers_all_within_the_limit():
    lengths = np.random.default_rng(0).integers(1, 80, 300)
    plan = evaluation_plan(lengths, 64)
    assert sorted(np.concatenate(plan)) == list(range(300))
    assert all(len(batch) == 1 or lengths[batch].max() * len(batch) <= 64 for batch in plan)
    assert evaluation_plan(np.array([3, 1, 2]), 4)[0].tolist() == [1, 2]
    assert evaluation_plan(np.array([], np.int64), 4) == []
