"""Alignment scores on examples worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment import (
    aer,
    attention_entropy,
    attention_sharpness,
    error_rate,
    link_counts,
    precision_recall,
    read_pharaoh,
    read_talp,
    word_links,
    write_pharaoh,
)


def talp(folder: Path, text: str) -> Path:
    path = folder / "gold.talp"
    path.write_text(text, "utf-8")
    return path


def test_talp_links_become_zero_based(tmp_path: Path) -> None:
    path = talp(tmp_path, "1-2 3p1 2-2\n\n1-1 1p1\n")
    sure, possible = zip(*read_talp(path, source_lengths=[3, 5, 1], target_lengths=[2, 5, 1]), strict=True)
    assert sure == ({(0, 1), (1, 1)}, set(), {(0, 0)})
    assert possible == ({(0, 1), (1, 1), (2, 0)}, set(), {(0, 0)})
    assert read_talp(path, reversed=True)[0] == ({(1, 0), (1, 1)}, {(1, 0), (1, 1), (0, 2)})


@pytest.mark.parametrize("line", ["0-1", "1p0", "2-1 0-0"])
def test_zero_based_talp_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match=r"gold\.talp, line 2: .*0-based: add 1"):
        read_talp(talp(tmp_path, f"1-1\n{line}\n"))


@pytest.mark.parametrize("item", ["1:2", "1-", "a-b", "1-2-3", "1P2", "-1-2"])
def test_a_malformed_link_is_refused(tmp_path: Path, item: str) -> None:
    with pytest.raises(ValueError, match=r"gold\.talp, line 1: found"):
        read_talp(talp(tmp_path, f"1-1 {item}\n"))


def test_a_link_beyond_its_sentence_is_refused(tmp_path: Path) -> None:
    path = talp(tmp_path, "1-1\n2-3\n")
    assert len(read_talp(path, source_lengths=[1, 2], target_lengths=[1, 3])) == 2
    with pytest.raises(ValueError, match=r"line 2: found '2-3', expected a target position of at most 2"):
        read_talp(path, source_lengths=[1, 2], target_lengths=[1, 2])
    with pytest.raises(ValueError, match=r"line 2: .*source position of at most 1"):
        read_talp(path, source_lengths=[1, 1])
    with pytest.raises(ValueError, match=r"line 2: .*source position of at most 2"):
        read_talp(path, reversed=True, source_lengths=[1, 2])
    with pytest.raises(ValueError, match="2 lines for 3 sentences"):
        read_talp(path, source_lengths=[1, 2, 2])


def test_error_rate_by_hand() -> None:
    """Two sentences by the definition of Och and Ney: AER = 1 - (|A & S| + |A & P|) / (|A| + |S|).

    First: S = {00, 11}, P = S + {21}; A = {00, 12, 21}: |A & S| = 1, |A & P| = 2, |A| = 3, |S| = 2.
    Second: S = {00}, P = {00, 01}; A = {00, 01}: 1, 2, 2, 1.
    Together 1 - (2 + 4) / (5 + 3) = 1/4; precision 4/5, recall 2/3. The mean of the sentences (0.2) is not it.
    """
    sure = [{(0, 0), (1, 1)}, {(0, 0)}]
    possible = [{(0, 0), (1, 1), (2, 1)}, {(0, 0), (0, 1)}]
    links = [{(0, 0), (1, 2), (2, 1)}, {(0, 0), (0, 1)}]
    counts = link_counts(links, sure, possible)
    assert counts.tolist() == [[1, 2, 3, 2], [1, 2, 2, 1]]
    assert aer(links, sure, possible) == pytest.approx(0.25)
    assert error_rate(counts[:1]) == pytest.approx(1 - 3 / 5)
    assert precision_recall(counts) == pytest.approx((4 / 5, 2 / 3))


def test_possible_links_need_not_repeat_the_sure_ones() -> None:
    assert aer([{(0, 0)}], [{(0, 0)}], [set()]) == 0.0
    assert aer([{(1, 0)}], [{(0, 0)}], [{(1, 0)}]) == pytest.approx(0.5)
    assert aer([set()], [{(0, 0)}], [{(0, 0)}]) == 1.0


def test_scores_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="no link"):
        aer([set()], [set()], [{(0, 0)}])
    with pytest.raises(ValueError, match="2 aligned, 1 sure"):
        aer([set(), set()], [set()], [set()])
    assert all(math.isnan(value) for value in precision_recall(link_counts([set()], [set()], [set()])))


def test_pharaoh_files_come_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / "links.txt"
    sentences = [{(2, 0), (0, 1)}, set(), {(10, 3)}]
    write_pharaoh(path, sentences)
    assert path.read_text("utf-8") == "0-1 2-0\n\n10-3\n"
    assert read_pharaoh(path) == sentences
    path.write_text("0-1\n1p2\n", "utf-8")
    with pytest.raises(ValueError, match=r"links\.txt, line 2: found '1p2'"):
        read_pharaoh(path)


def test_each_target_word_has_one_link() -> None:
    assert word_links([2, 0, 0]) == {(2, 0), (0, 1), (0, 2)}


def test_entropy_and_sharpness_by_hand() -> None:
    """Over two columns: uniform ln 2, certain 0, and 1/4 + 3/4 of a mass of 0.4; the third column is `</s>`."""
    weights = np.array([[0.25, 0.25, 0.5], [1.0, 0.0, 0.0], [0.1, 0.3, 0.0], [0.0, 0.0, 1.0]])
    expected = [math.log(2), 0.0, math.log(4) / 4 + 3 * math.log(4 / 3) / 4, math.nan]
    np.testing.assert_allclose(attention_entropy(weights, 2), expected)
    np.testing.assert_allclose(attention_sharpness(weights, 2), [0.5, 1.0, 0.75, math.nan])
    np.testing.assert_allclose(attention_entropy(np.full((1, 8), 0.125, np.float16), 8), [math.log(8)])
    assert np.isnan(attention_entropy(np.zeros((1, 0)), 0)).tolist() == [True]
    assert np.isnan(attention_sharpness(np.zeros((1, 0)), 0)).tolist() == [True]
