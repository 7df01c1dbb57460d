"""Replacement of unknown words, on examples worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nmt.unk import aligned_source, load_dictionary, replace_unknown

ATTENTION = np.array(  # two output words and `</s>`; three source words and `</s>`
    [
        [0.1, 0.2, 0.3, 0.4],
        [0.6, 0.1, 0.1, 0.2],
        [0.1, 0.5, 0.2, 0.2],
    ]
)


def test_an_output_word_is_linked_by_the_step_asked_for_and_never_to_the_end() -> None:
    assert aligned_source(ATTENTION, 3) == [2, 0]
    assert aligned_source(ATTENTION, 3, "predicting") == [2, 0]
    assert aligned_source(ATTENTION, 3, "input") == [0, 1]
    assert aligned_source(ATTENTION.astype(np.float16), 2) == [1, 0]


def test_no_output_word_has_no_link() -> None:
    assert aligned_source(np.zeros((1, 0)), 0) == []
    assert aligned_source(ATTENTION[:1], 3) == []


def test_an_impossible_link_is_refused() -> None:
    with pytest.raises(ValueError, match="'next'"):
        aligned_source(ATTENTION, 3, "next")
    with pytest.raises(ValueError, match="2 output words and no source word"):
        aligned_source(ATTENTION, 0)


def test_unknown_words_are_translated_or_copied() -> None:
    tokens = ["<unk>", "trifft", "<unk>", "<unk>"]
    source = ["Kerr", "meets", "Orlando"]
    dictionary = {"meets": "begegnet", "Bloom": "Blume"}
    replaced, kinds = replace_unknown(tokens, [0, 1, 2, 1], source, dictionary)
    assert replaced == ["Kerr", "trifft", "Orlando", "begegnet"]
    assert kinds == ["copy", None, "copy", "dictionary"]
    assert replace_unknown([], [], [], {}) == ([], [])


def test_an_alignment_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="1 links for 2 tokens"):
        replace_unknown(["a", "b"], [0], ["A"], {})
    with pytest.raises(ValueError, match="source word 1, expected 0 to 0"):
        replace_unknown(["a", "<unk>"], [0, 1], ["A"], {})


def test_the_dictionary_keeps_the_most_frequent_translation(tmp_path: Path) -> None:
    path = tmp_path / "en-de.tsv"
    path.write_text("house\tHeim\t9\nhouse\tHaus\t12\ncat\tKatze\t10\ncat\tKater\t10\nrare\tselten\t3\n", "utf-8")
    assert load_dictionary(path) == {"house": "Haus", "cat": "Kater", "rare": "selten"}
    assert load_dictionary(path, minimum_count=10) == {"house": "Haus", "cat": "Kater"}
    assert load_dictionary(path, minimum_count=12) == {"house": "Haus"}


@pytest.mark.parametrize("line", ["house Haus 3", "house\tHaus", "house\tHaus\tmany", "house\tHaus\t-1", "\tHaus\t1"])
def test_a_broken_dictionary_is_named_by_file_and_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "en-de.tsv"
    path.write_text(f"cat\tKatze\t10\n{line}\n", "utf-8")
    with pytest.raises(ValueError, match=r"en-de\.tsv, line 2"):
        load_dictionary(path)
