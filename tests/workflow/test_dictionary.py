"""The word aligner on a language that is its own translation turned round."""

import random
from collections import Counter

import pytest

from nmt.files import read_lines, write_lines
from workflow.aligning import WordAligner, best_translations, count_links
from workflow.scripts.dictionary import main

WORDS = [f"w{number}" for number in range(30)]


def turned_corpus(count, seed=0):
    """Sentences and their word-by-word translations (w3 -> W3) in reversed order."""
    words = random.Random(seed)
    sources = [words.choices(WORDS, k=words.randrange(2, 8)) for _ in range(count)]
    return [(source, [word.upper() for word in reversed(source)]) for source in sources]


@pytest.mark.parametrize("aligner", ["ibm1", "ibm2", "hmm", "fast_align", "eflomal"])
def test_finds_the_words_of_a_turned_language(aligner):
    pairs = turned_corpus(400)
    counts = count_links(pairs, WordAligner(pairs, aligner).align(pairs))
    assert [(source, target) for source, target, _ in best_translations(counts, 10)] == [
        (word, word.upper()) for word in sorted(WORDS)
    ]


def test_links_of_unseen_pairs_and_of_empty_sides():
    model = WordAligner([*turned_corpus(400), ([], ["W1"]), (["w1"], [])])
    pairs = [(["w1", "w2", "w3"], ["W3", "W2", "W1"]), ([], ["W1"]), (["w1"], []), (["new"], ["W1", "W2"])]
    links = list(model.align(pairs))
    assert set(links[0]) == {(0, 2), (1, 1), (2, 0)}
    assert links[1:3] == [[], []]
    assert all(0 <= i < 1 and 0 <= j < 2 for i, j in links[3])
    assert list(model.align([])) == []


def test_the_most_frequent_translation_with_enough_links_ties_by_text():
    counts = {"b": Counter(y=2, x=2, z=1), "a": Counter(q=3), "c": Counter(q=1)}
    assert best_translations(counts, 2) == [("a", "q", 3), ("b", "x", 2)]
    assert best_translations(counts, 3) == [("a", "q", 3)]


def test_by_hand_twice_the_same_in_both_directions(tmp_path):
    pairs = turned_corpus(200)
    for side, name in enumerate(("s", "t")):
        write_lines(tmp_path / name, [" ".join(pair[side]) for pair in pairs])
        write_lines(tmp_path / f"gold.{name}", [" ".join(pair[side]) for pair in turned_corpus(5, seed=1)])
    for run in ("1", "2"):
        main(
            source=tmp_path / "s",
            target=tmp_path / "t",
            output=tmp_path / f"{run}.tsv",
            inverse=tmp_path / f"{run}.inverse.tsv",
            align_source=tmp_path / "gold.s",
            align_target=tmp_path / "gold.t",
            alignments=tmp_path / f"{run}.links",
        )
    for name in ("tsv", "inverse.tsv", "links"):
        assert (tmp_path / f"1.{name}").read_bytes() == (tmp_path / f"2.{name}").read_bytes()
    rows = [line.split("\t") for line in read_lines(tmp_path / "1.tsv")]
    turned = [line.split("\t") for line in read_lines(tmp_path / "1.inverse.tsv")]
    assert [row[:2] for row in rows] == [[word, word.upper()] for word in sorted(WORDS)]
    assert sorted([b, a, n] for a, b, n in turned) == rows
    for line, (source, _) in zip(read_lines(tmp_path / "1.links"), turned_corpus(5, seed=1), strict=True):
        assert set(line.split()) >= {f"{i}-{len(source) - 1 - i}" for i in range(len(source))}


def test_bad_input_is_named(tmp_path):
    write_lines(tmp_path / "s", ["a", "b"])
    write_lines(tmp_path / "t", ["x"])
    with pytest.raises(ValueError, match="unequally many lines"):
        main(source=tmp_path / "s", target=tmp_path / "t", output=tmp_path / "d")
    with pytest.raises(ValueError, match=r"aligner: expected one of ibm1, .*found 'magic'"):
        WordAligner([], "magic")
