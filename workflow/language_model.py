"""An n-gram model with interpolated Kneser-Ney smoothing, to tell which sentences are like a domain.

Bahdanau et al. (2015) chose 348M of 850M words "with the data selection method of Axelrod et al. (2011)" and say no
more; what stands here and in workflow/scripts/select_data.py is our reading: trigrams where Axelrod et al. have
4-grams, one discount an order, and as vocabulary the words that the domain has at least twice (Moore and Lewis 2010).
No package serves: KenLM, which does, compiles from source at installation and has no wheels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

START, END, UNKNOWN = 0, 1, 2  # indices; further words follow
MARKS = 3


class Words:
    """The words of the domain that occur at least `minimum` times in it; all others are one unknown word."""

    def __init__(self, sentences: Iterable[Sequence[str]], minimum: int = 2) -> None:
        counts = Counter(word for sentence in sentences for word in sentence)
        kept = sorted(word for word, count in counts.items() if count >= minimum)
        self.index = {word: number for number, word in enumerate(kept, MARKS)}

    def __len__(self) -> int:
        return MARKS + len(self.index)

    def encode(self, sentences: Iterable[Sequence[str]], order: int) -> tuple[np.ndarray, np.ndarray]:
        """The sentences one after the other, `order` - 1 start marks before and an end mark after each.

        Returns (words,) int64 and the position of the first mark of each sentence, and one more at the end.
        """
        get, before = self.index.get, [START] * (order - 1)
        stream: list[int] = []
        offsets = [0]
        for sentence in sentences:
            stream += before
            stream += [get(word, UNKNOWN) for word in sentence]
            stream.append(END)
            offsets.append(len(stream))
        return np.array(stream, dtype=np.int64), np.array(offsets, dtype=np.int64)


class Table:
    """Numbers by key; keys sorted."""

    def __init__(self, keys: np.ndarray, values: np.ndarray) -> None:
        self.keys, self.values = keys, values

    def __getitem__(self, keys: np.ndarray) -> np.ndarray:
        """The number of each key, 0 for those that are not there."""
        if not len(self.keys):
            return np.zeros(len(keys))
        place = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.values[place], 0.0)


def tally(keys: np.ndarray, weights: np.ndarray | None = None) -> Table:
    """How often each key occurs, or the sum of its weights."""
    found, inverse = np.unique(keys, return_inverse=True)
    return Table(found, np.bincount(inverse, weights=weights, minlength=len(found)).astype(np.float64))


class KneserNey:
    """p(w | h) = max(c(hw) - D, 0) / c(h) + D N(h) / c(h) p(w | h'), h' being h without its first word.

    c counts at the highest order; below, it is the number of different words before an n-gram. N(h) is the number of
    different words after h; D = n1 / (n1 + 2 n2) of each order, n1 and n2 being how many n-grams have c of 1 and 2 (Ney
    et al. 1994), or 1/2 without any c of 1. Below the unigrams all words but the start mark are alike. A history that
    was never seen says nothing.
    """

    def __init__(self, stream: np.ndarray, offsets: np.ndarray, words: int, order: int) -> None:
        """Count the sentences of `Words.encode`, made with the same order; words: how many there are."""
        if words**order >= 2**63:
            raise ValueError(f"{words} words are too many for n-grams of {order}; lower prepare.select.order")
        self.order, self.words = order, words
        self.levels: list[tuple[Table, Table, Table, float]] = []  # from unigrams on: c(hw), c(h), N(h), D
        grams = self._grams(stream, self._predicted(offsets, len(stream)), order)
        counted = tally(grams)
        for length in range(order, 0, -1):
            ones, twos = ((counted.values == times).sum() for times in (1, 2))
            discount = float(ones / (ones + 2 * twos)) if ones else 0.5
            histories = counted.keys // words
            self.levels.insert(0, (counted, tally(histories, counted.values), tally(histories), discount))
            counted = tally(counted.keys % words ** (length - 1))

    def cross_entropies(self, stream: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Nats a word of each sentence of `Words.encode`, its end mark counted; (sentences,)."""
        at = self._predicted(offsets, len(stream))
        cost = np.zeros(len(stream))
        cost[at] = -np.log(self.probabilities(stream, at))
        predicted = np.diff(offsets) - (self.order - 1)
        return np.add.reduceat(cost, offsets[:-1]) / predicted if len(predicted) else np.zeros(0)

    def probabilities(self, stream: np.ndarray, at: np.ndarray) -> np.ndarray:
        """p of the words at these positions, given those before."""
        probability = np.full(len(at), 1 / (self.words - 1))
        for length, (counts, histories, followers, discount) in enumerate(self.levels, 1):
            grams = self._grams(stream, at, length)
            total = histories[grams // self.words]
            seen = total > 0
            total = np.where(seen, total, 1.0)
            direct = np.maximum(counts[grams] - discount, 0) / total
            left = discount * followers[grams // self.words] / total
            probability = np.where(seen, direct + left * probability, probability)
        return probability

    def _grams(self, stream: np.ndarray, at: np.ndarray, length: int) -> np.ndarray:
        """The n-gram that ends at each position, as one number."""
        grams = np.zeros(len(at), dtype=np.int64)
        for before in range(length - 1, -1, -1):
            grams = grams * self.words + stream[at - before]
        return grams

    def _predicted(self, offsets: np.ndarray, size: int) -> np.ndarray:
        """The positions of all words but the start marks."""
        marks = (offsets[:-1, None] + np.arange(self.order - 1)).ravel()
        predicted = np.ones(size, dtype=bool)
        predicted[marks] = False
        return np.flatnonzero(predicted)
