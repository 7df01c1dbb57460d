"""Symmetrisation, by hand and by a second, slower statement of its definition."""

import random

import pytest

from nmt.symmetrise import METHODS, symmetrise


def test_grow_diag_final_and_by_hand():
    forward = {(0, 0), (1, 1), (1, 2), (4, 4), (6, 0)}
    backward = {(0, 0), (2, 1), (5, 5), (0, 7)}
    # both have 0-0; it grows to 1-1, by a corner, and so on to 1-2 (word 2 is free) and 2-1 (word 2 is free);
    # 4-4 and 5-5 touch nothing: final-and takes 4-4 of forward, then 5-5 of backward; 6-0 and 0-7 have taken words
    assert symmetrise(forward, backward) == {(0, 0), (1, 1), (1, 2), (2, 1), (4, 4), (5, 5)}
    assert symmetrise(forward, backward, "intersection") == {(0, 0)}
    assert symmetrise(forward, backward, "union") == forward | backward


def test_a_neighbour_with_both_words_taken_is_not_added():
    assert symmetrise({(0, 0), (1, 1), (1, 0)}, {(0, 0), (1, 1)}) == {(0, 0), (1, 1)}


def test_no_intersection_leaves_final_and():
    assert symmetrise({(0, 1), (0, 2)}, {(0, 1 + 2)}) == {(0, 1)}


@pytest.mark.parametrize("seed", range(30))
def test_what_must_hold_of_any_links(seed):
    draw = random.Random(seed)
    first, second = ({(draw.randrange(6), draw.randrange(6)) for _ in range(8)} for _ in range(2))
    found = symmetrise(first, second)
    assert first & second <= found <= first | second
    sources, targets = {s for s, _ in found}, {t for _, t in found}
    both = first & second
    for s, t in (first | second) - found:
        assert s in sources or t in targets  # else final-and would have added it
        if any(max(abs(s - a), abs(t - b)) == 1 for a, b in both):
            assert s in sources and t in targets  # else grow-diag would have added it


def test_an_unknown_method_is_named():
    assert METHODS[0] == "grow-diag-final-and"
    with pytest.raises(ValueError, match="found 'grow', expected one of grow-diag-final-and"):
        symmetrise(set(), set(), "grow")
