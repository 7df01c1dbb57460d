"""Binary text, and the plan of an epoch."""

import itertools

import numpy as np
import pytest

from nmt import corpus
from nmt.corpus import BinaryText, ParallelCorpus, binarise, ids_path, offsets_path, plan_batches
from nmt.vocab import SPECIALS, Vocabulary

VOCABULARY = Vocabulary([*SPECIALS, "a", "b", "c"])


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_binarise_writes_plain_npy_whatever_the_chunk(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(corpus, "LINES_A_CHUNK", chunk)
    prefix = tmp_path / "train.en"
    binarise(iter(["a b", "", "c x  a", ""]), VOCABULARY, prefix)
    ids, offsets = np.load(ids_path(prefix)), np.load(offsets_path(prefix))
    assert ids.tolist() == [3, 4, 5, 0, 3] and ids.dtype == np.int32
    assert offsets.tolist() == [0, 2, 2, 5, 5] and offsets.dtype == np.int64
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.en.ids.npy", "train.en.offsets.npy"]
    text = BinaryText(prefix)
    assert len(text) == 4
    assert [text[i].tolist() for i in range(4)] == [[3, 4], [], [5, 0, 3], []]
    assert text.lengths.tolist() == [2, 0, 3, 0]
    with pytest.raises(IndexError):
        text[4]


def test_an_empty_text_is_a_text(tmp_path):
    binarise([], VOCABULARY, tmp_path / "none")
    assert len(BinaryText(tmp_path / "none")) == 0
    binarise(["", ""], VOCABULARY, tmp_path / "blank")
    assert BinaryText(tmp_path / "blank").lengths.tolist() == [0, 0]


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    binarise(["a b c"], VOCABULARY, tmp_path / "one")
    binarise(["a", "b"], VOCABULARY, tmp_path / "two")
    with pytest.raises(ValueError, match=r"one has 1 sentences.*two has 2"):
        ParallelCorpus(BinaryText(tmp_path / "one"), BinaryText(tmp_path / "two"))
    offsets_path(tmp_path / "two").replace(offsets_path(tmp_path / "one"))
    with pytest.raises(ValueError, match=r"one\.ids\.npy: found 3 words, expected 2"):
        BinaryText(tmp_path / "one")
    ids_path(tmp_path / "two").write_bytes(b"")
    with pytest.raises(ValueError, match=r"two\.ids\.npy: not a binary text"):
        BinaryText(tmp_path / "two")


def test_parallel_corpus_pairs_sentences(tmp_path):
    binarise(["a", "b c"], VOCABULARY, tmp_path / "x")
    binarise(["c c", ""], VOCABULARY, tmp_path / "y")
    pairs = ParallelCorpus(BinaryText(tmp_path / "x"), BinaryText(tmp_path / "y"))
    assert len(pairs) == 2
    assert [side.tolist() for side in pairs[1]] == [[4, 5], []]


def lengths_of_pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 60, count), rng.integers(0, 60, count)


def test_a_plan_holds_each_fitting_pair_once():
    source, target = lengths_of_pairs(1000)
    plan = plan_batches(source, target, 16, 160, 50, np.random.default_rng(1))
    fitting = {i for i in range(1000) if 1 <= source[i] <= 50 and 1 <= target[i] <= 50}
    assert sorted(np.concatenate(plan)) == sorted(fitting)
    assert len(fitting) < 1000
    readings, rest = divmod(len(fitting), 160)
    assert sum(len(batch) < 16 for batch in plan) == (rest % 16 > 0)
    assert len(plan) == readings * 10 + -(-rest // 16)


def test_each_reading_is_cut_by_target_length_and_shuffled():
    source, target = lengths_of_pairs(2000)
    plan = plan_batches(source, target, 16, 160, 60, np.random.default_rng(1))
    out_of_order = 0
    for start in range(0, len(plan) - 10, 10):
        spans = [(target[batch].min(), target[batch].max()) for batch in plan[start : start + 10]]
        in_order = sorted(spans)
        assert all(left[1] <= right[0] for left, right in itertools.pairwise(in_order))
        out_of_order += spans != in_order
    assert out_of_order >= 5


def test_the_generator_alone_decides_the_plan():
    source, target = lengths_of_pairs(500)

    def plan(seed: int) -> list[list[int]]:
        return [b.tolist() for b in plan_batches(source, target, 8, 80, 50, np.random.default_rng(seed))]

    assert plan(1) == plan(1)
    assert plan(1) != plan(2)


def test_a_fetch_below_a_batch_is_refused():
    with pytest.raises(ValueError, match="found 4, expected at least batch_size = 8"):
        plan_batches(np.ones(3), np.ones(3), 8, 4, 50, np.random.default_rng(0))
