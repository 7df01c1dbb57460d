"""Text as memory-mapped word indices, and the order in which training reads it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from nmt.files import atomic_path
from nmt.vocab import Vocabulary, split_words

LINES_A_CHUNK = 8_192


def ids_path(prefix: str | os.PathLike[str]) -> Path:
    """Where the word indices of a binary text lie."""
    return Path(f"{os.fspath(prefix)}.ids.npy")


def offsets_path(prefix: str | os.PathLike[str]) -> Path:
    """Where the sentence boundaries of a binary text lie."""
    return Path(f"{os.fspath(prefix)}.offsets.npy")


def binarise(lines: Iterable[str], vocabulary: Vocabulary, prefix: str | os.PathLike[str]) -> None:
    """Write tokenised sentences (words parted by spaces) as PREFIX.ids.npy and PREFIX.offsets.npy.

    ids: int32, all words in order; offsets: int64, n + 1, sentence i being ids[offsets[i]:offsets[i + 1]]. An empty
    line is a sentence of no words. Read once and in chunks: of the text, memory holds one chunk and the lengths.
    """
    lengths: list[np.ndarray] = []
    with atomic_path(ids_path(prefix)) as ids_temporary, atomic_path(offsets_path(prefix)) as offsets_temporary:
        with ids_temporary.open("wb") as file:
            _write_header(file, 0)
            lines = iter(lines)
            while chunk := list(itertools.islice(lines, LINES_A_CHUNK)):
                sentences = [split_words(line) for line in chunk]
                lengths.append(np.fromiter(map(len, sentences), dtype=np.int32))
                file.write(vocabulary.encode(itertools.chain.from_iterable(sentences)).astype("<i4").tobytes())
            offsets = np.concatenate([[0], *lengths]).astype(np.int64).cumsum()
            file.seek(0)
            _write_header(file, int(offsets[-1]))
        with offsets_temporary.open("wb") as file:
            np.save(file, offsets)


def _write_header(file: IO[bytes], words: int) -> None:
    """The header of a one-dimensional int32 .npy file; numpy pads it so that a later, larger size fits its place."""
    np.lib.format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": (words,)})


class BinaryText:
    """Sentences as memory-mapped word indices (written by `binarise`); item i is (words,) int32."""

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        """Open PREFIX.ids.npy and PREFIX.offsets.npy; ValueError if they do not belong together."""
        self.prefix = os.fspath(prefix)
        self._ids = _open(ids_path(prefix), np.int32)
        self._offsets = _open(offsets_path(prefix), np.int64)
        if not len(self._offsets) or self._offsets[0] != 0 or self._offsets[-1] != len(self._ids):
            raise ValueError(
                f"{ids_path(prefix)}: found {len(self._ids)} words, expected "
                f"{self._offsets[-1] if len(self._offsets) else 'boundaries'} by {offsets_path(prefix).name}; "
                "delete both and binarise again"
            )

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        if not 0 <= index < len(self):
            raise IndexError(f"{self.prefix}: sentence {index} of {len(self)}")
        return np.array(self._ids[self._offsets[index] : self._offsets[index + 1]])  # (words,)

    @property
    def lengths(self) -> np.ndarray:
        """Words a sentence; (sentences,) int64."""
        return np.diff(self._offsets)


def _open(path: Path, dtype: type) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: not a binary text ({error}); delete it and binarise again") from error
    if array.ndim != 1 or array.dtype != dtype:
        raise ValueError(
            f"{path}: found {array.dtype} of shape {array.shape}, expected a row of {np.dtype(dtype)}; binarise again"
        )
    return array


@dataclass(frozen=True)
class ParallelCorpus:
    """Sentence pairs; source and target sentence i belong together."""

    source: BinaryText
    target: BinaryText

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"{self.source.prefix} has {len(self.source)} sentences, {self.target.prefix} has {len(self.target)}; "
                "expected equally many: prepare and binarise both sides of one corpus together"
            )

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        return self.source[index], self.target[index]


def plan_batches(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    batch_size: int,
    fetch: int,
    max_length: int,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """One epoch's batches of sentence indices, in the order in which to train on them.

    The pairs are shuffled, then read `fetch` at a time; each reading is sorted by target length, pairs of one target
    length by source length, and cut into batches of `batch_size`, and its batches are shuffled, so that a batch holds
    sentences of like length (Luong et al. 2015: fetch 12,800 = 100 batches of 128; Bahdanau et al. 2015, appendix
    B.2: 1,600 = 20 batches of 80; neither says what the second key is: ours spares source padding). Pairs with an
    empty side or a side over `max_length` words are left out. Every other pair occurs in exactly one batch; only the
    last batch cut from a reading may be smaller. All randomness comes from `rng`.
    """
    if batch_size < 1 or fetch < batch_size:
        raise ValueError(f"fetch: found {fetch}, expected at least batch_size = {batch_size}, itself at least 1")
    shorter, longer = np.minimum(source_lengths, target_lengths), np.maximum(source_lengths, target_lengths)
    order = rng.permutation(np.flatnonzero((shorter > 0) & (longer <= max_length)))
    batches: list[np.ndarray] = []
    for start in range(0, len(order), fetch):
        reading = order[start : start + fetch]
        reading = reading[np.lexsort((source_lengths[reading], target_lengths[reading]))]
        cut = [reading[first : first + batch_size] for first in range(0, len(reading), batch_size)]
        batches.extend(cut[index] for index in rng.permutation(len(cut)))
    return batches
