"""Word alignments: gold links, alignment error rate, and how spread the attention is. Numpy only."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from nmt.files import iterate_lines, write_lines

Link = tuple[int, int]  # (source, target), 0-based

_TALP = re.compile(r"([0-9]+)([-p])([0-9]+)")
_PHARAOH = re.compile(r"([0-9]+)-([0-9]+)")


def read_talp(
    path: str | os.PathLike[str],
    reversed: bool = False,
    source_lengths: Sequence[int] | None = None,
    target_lengths: Sequence[int] | None = None,
) -> list[tuple[set[Link], set[Link]]]:
    """Sure and possible links of each sentence from a file in talp format.

    A line holds the links of a sentence, 1-based: `3-4` is sure, `3p4` possible. reversed: the file names the target
    word first. Returns (sure, possible) of 0-based (source, target); sure links are among the possible ones.
    Raises ValueError naming file and line for a malformed link, a position 0 (a 0-based file), a position beyond the
    sentence, and another number of lines than sentences, the last two where lengths (in words) are given.
    """
    gold = []
    for number, line in enumerate(iterate_lines(path), start=1):
        sure: set[Link] = set()
        possible: set[Link] = set()
        for item in line.split():
            match = _TALP.fullmatch(item)
            if match is None:
                raise ValueError(f"{path}, line {number}: found {item!r}, expected 1-based links like 3-4 or 3p4")
            first, kind, second = int(match[1]), match[2], int(match[3])
            if first == 0 or second == 0:
                raise ValueError(
                    f"{path}, line {number}: found {item!r}, expected positions from 1; the file is 0-based: add 1 to "
                    "every position"
                )
            link = (second - 1, first - 1) if reversed else (first - 1, second - 1)
            _check_within(path, number, item, "source", link[0], source_lengths)
            _check_within(path, number, item, "target", link[1], target_lengths)
            possible.add(link)
            if kind == "-":
                sure.add(link)
        gold.append((sure, possible))
    for lengths in (source_lengths, target_lengths):
        if lengths is not None and len(lengths) != len(gold):
            raise ValueError(
                f"{path}: found {len(gold)} lines for {len(lengths)} sentences; expected a line a sentence"
            )
    return gold


def _check_within(
    path: str | os.PathLike[str], number: int, item: str, side: str, position: int, lengths: Sequence[int] | None
) -> None:
    if lengths is None or number > len(lengths) or position < lengths[number - 1]:
        return
    raise ValueError(
        f"{path}, line {number}: found {item!r}, expected a {side} position of at most {lengths[number - 1]}, the "
        "sentence's length; are source and target swapped, or is this another tokenisation?"
    )


def word_links(alignment: Iterable[int]) -> set[Link]:
    """The links of a sentence from the source position of each target word."""
    return {(source, target) for target, source in enumerate(alignment)}


def read_pharaoh(path: str | os.PathLike[str]) -> list[set[Link]]:
    """The links of each sentence from lines of 0-based `source-target` pairs; ValueError names file and line."""
    sentences = []
    for number, line in enumerate(iterate_lines(path), start=1):
        links = set()
        for item in line.split():
            match = _PHARAOH.fullmatch(item)
            if match is None:
                raise ValueError(f"{path}, line {number}: found {item!r}, expected 0-based links like 2-3")
            links.add((int(match[1]), int(match[2])))
        sentences.append(links)
    return sentences


def write_pharaoh(path: str | os.PathLike[str], sentences: Iterable[Collection[Link]]) -> None:
    """Write a line a sentence of 0-based `source-target` links, sorted."""
    write_lines(path, [" ".join(f"{source}-{target}" for source, target in sorted(links)) for links in sentences])


def link_counts(
    links: Sequence[Collection[Link]], sure: Sequence[Collection[Link]], possible: Sequence[Collection[Link]]
) -> np.ndarray:
    """What the alignment scores are made of, a row a sentence: |A & S|, |A & P|, |A|, |S|; (sentences, 4) int64.

    P holds S, whether `possible` lists the sure links or not. Raises ValueError for unequal numbers of sentences.
    """
    if not len(links) == len(sure) == len(possible):
        raise ValueError(
            f"alignment: found {len(links)} aligned, {len(sure)} sure and {len(possible)} possible sentences, "
            "expected equally many"
        )
    counts = np.zeros((len(links), 4), dtype=np.int64)
    for row, found, certain, allowed in zip(counts, map(set, links), map(set, sure), map(set, possible), strict=True):
        row[:] = len(found & certain), len(found & (allowed | certain)), len(found), len(certain)
    return counts


def error_rate(counts: np.ndarray) -> float:
    """Alignment error rate of the sentences of `link_counts` taken together (Och and Ney 2003).

    1 - (|A & S| + |A & P|) / (|A| + |S|), from 0 (best) to 1. Raises ValueError if there is no link at all.
    """
    found_sure, found_possible, links, sure = (int(total) for total in counts.sum(axis=0))
    if links + sure == 0:
        raise ValueError("alignment: found no link in the alignment nor a sure one in the gold, expected some")
    return 1.0 - (found_sure + found_possible) / (links + sure)


def aer(
    links: Sequence[Collection[Link]], sure: Sequence[Collection[Link]], possible: Sequence[Collection[Link]]
) -> float:
    """Alignment error rate of a corpus; see `link_counts` and `error_rate`."""
    return error_rate(link_counts(links, sure, possible))


def precision_recall(counts: np.ndarray) -> tuple[float, float]:
    """Precision |A & P| / |A| and recall |A & S| / |S| of `link_counts` (Och and Ney 2003); nan without links."""
    found_sure, found_possible, links, sure = (int(total) for total in counts.sum(axis=0))
    return (found_possible / links if links else float("nan"), found_sure / sure if sure else float("nan"))


def attention_entropy(weights: np.ndarray, length: int) -> np.ndarray:
    """Entropy in nats of each row of weights over its first `length` columns; (rows,) float64.

    Each row is divided by its own sum, so that local attention, which sums to less than 1, compares with global
    attention; uniform attention gives log(length). A row without any weight gives nan.
    """
    share = _shares(weights, length)  # (rows, length)
    logarithm = np.log(share, out=np.zeros_like(share), where=share > 0)
    return -(share * logarithm).sum(axis=1)


def attention_sharpness(weights: np.ndarray, length: int) -> np.ndarray:
    """Largest weight of each row, as a share of the row's sum over its first `length` columns; (rows,) float64."""
    return _shares(weights, length).max(axis=1)


def _shares(weights: np.ndarray, length: int) -> np.ndarray:
    """Rows divided by their sums over the first `length` columns (at least one); nan where a row has no weight."""
    inside = np.asarray(weights, dtype=np.float64)[:, :length]
    if inside.shape[1] == 0:  # an empty sentence
        return np.full((len(inside), 1), np.nan)
    mass = inside.sum(axis=1, keepdims=True)
    return np.divide(inside, mass, out=np.full_like(inside, np.nan), where=mass > 0)
