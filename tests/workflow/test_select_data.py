"""Choosing training text by domain: the language model against hand-worked numbers, and what is chosen."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from nmt.files import read_json, read_lines
from workflow.language_model import END, START, UNKNOWN, KneserNey, Words
from workflow.scripts import select_data


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def model(sentences: list[str], order: int) -> tuple[Words, KneserNey]:
    split = [line.split() for line in sentences]
    words = Words(split)
    return words, KneserNey(*words.encode(split, order), len(words), order)


def test_words_that_the_domain_has_once_are_unknown() -> None:
    words = Words([["b", "a", "b"], ["a", "c"]])
    assert words.index == {"a": 3, "b": 4} and len(words) == 5
    stream, offsets = words.encode([["b", "c"], []], 3)
    assert stream.tolist() == [START, START, 4, UNKNOWN, END, START, START, END]
    assert offsets.tolist() == [0, 5, 8]


def test_unigrams_by_hand() -> None:
    # a 3 times, b twice, unknown (c) once, end twice; n1 = 1, n2 = 2: D = 1/5; 4 of 8 left over for 4 words alike
    words, unigram = model(["a b a", "a b c"], 1)
    stream, offsets = words.encode([["a", "z"]], 1)
    a, unknown, end = (2.8 / 8 + 0.1 / 4), (0.8 / 8 + 0.1 / 4), (1.8 / 8 + 0.1 / 4)
    assert unigram.probabilities(stream, np.arange(3)) == pytest.approx([a, unknown, end])
    cost = -(math.log(a) + math.log(unknown) + math.log(end)) / 3
    assert unigram.cross_entropies(stream, offsets) == pytest.approx([cost])


def test_bigrams_by_hand() -> None:
    # bigrams: <s> a 2, a b 2, b a 1, a </s> 1, b </s> 1: n1 = 3, n2 = 2, D = 3/7
    # words before: a {<s>, b}, b {a}, </s> {a, b}: 5 in all, n1 = 1, n2 = 2, D = 1/5; 3 words followed by 4 alike
    words, bigram = model(["a b a", "a b"], 2)
    left = 0.2 * 3 / 5 / 4
    unigram = {"a": 1.8 / 5 + left, "b": 0.8 / 5 + left, "</s>": 1.8 / 5 + left, "?": left}
    stream, _ = words.encode([["a", "b", "b", "z", "a"]], 2)
    d = 3 / 7
    expected = [
        (2 - d) / 2 + d / 2 * unigram["a"],  # after <s>, which a alone follows
        (2 - d) / 3 + d * 2 / 3 * unigram["b"],  # after a: b twice, </s> once
        d * 2 / 2 * unigram["b"],  # after b: a and </s>, b never
        d * 2 / 2 * unigram["?"],
        unigram["a"],  # after an unknown word, of which nothing is known
        (1 - d) / 3 + d * 2 / 3 * unigram["</s>"],
    ]
    assert bigram.probabilities(stream, np.arange(1, 7)) == pytest.approx(expected)


def test_probabilities_of_all_words_sum_to_one() -> None:
    words, trigram = model(["a b a c a", "a b c", "c b a a b", "b", "d d"], 3)
    for history in itertools.product(range(len(words)), repeat=2):
        following = [number for number in range(len(words)) if number != START]
        stream = np.array([number for last in following for number in (*history, last)])
        assert trigram.probabilities(stream, np.arange(2, len(stream), 3)).sum() == pytest.approx(1)


def test_the_lowest_pairs_are_taken_up_to_the_limit() -> None:
    rank, words = np.array([3.0, 1.0, 2.0, 1.0]), np.array([5, 4, 3, 2])
    assert select_data.choose(rank, words, 8).tolist() == [False, True, False, True]
    assert select_data.choose(rank, words, 9).tolist() == [False, True, True, True]
    assert select_data.choose(rank, words, 3).tolist() == [False, False, False, False]
    assert select_data.choose(rank, words, 99).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_like_the_domain_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(select_data, "LINES_A_CHUNK", 7)
    news = [f"the minister said on {day} that taxes rise" for day in ("monday", "friday")] * 5
    law = [f"article {word} of the said annex shall apply" for word in ("one", "two")] * 10
    pool = [*law[:10], *news[:4], *law[10:]]
    paths = {f"{name}.{side}": write(tmp_path / f"{name}.{side}", lines)
             for name, lines in (("pool", pool), ("news", news)) for side in ("en", "fr")}  # fmt: skip
    select_data.main(
        pool=[f"{side}={paths[f'pool.{side}']}" for side in ("en", "fr")],
        domain=[f"{side}={paths[f'news.{side}']}" for side in ("en", "fr")],
        output=[f"{side}={tmp_path / f'train.{side}'}" for side in ("en", "fr")],
        report=tmp_path / "train.json", words=4 * 8 + 3, threads=threads,
    )  # fmt: skip
    assert read_lines(tmp_path / "train.en") == read_lines(tmp_path / "train.fr") == news[:4]
    found = read_json(tmp_path / "train.json")
    assert (found["lines_in"], found["lines_out"], found["words_out"]) == (24, 4, 32)
    assert found["counted_language"] == "fr" and found["words"] == {"en": 32, "fr": 32}


def test_languages_must_agree(tmp_path: Path) -> None:
    path = write(tmp_path / "x", ["a"])
    with pytest.raises(ValueError, match="same languages"):
        select_data.main([f"en={path}"], [f"fr={path}"], [f"en={path}"], tmp_path / "r", 5)
