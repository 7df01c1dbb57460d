"""The words a model knows, and their indices."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from nmt.files import read_lines, write_lines

UNK, BOS, EOS = 0, 1, 2
SPECIALS = ("<unk>", "<s>", "</s>")


def split_words(line: str) -> list[str]:
    """The words of a tokenised line: what stands between spaces, and nothing else parts words."""
    return [word for word in line.split(" ") if word]


class _Indices(dict[str, int]):
    """From words to indices, that of `<unk>` for any other word."""

    def __missing__(self, word: str) -> int:
        return UNK


class Vocabulary:
    """A list of words, the specials `<unk>` `<s>` `</s>` first; a word's index is its place in the list."""

    def __init__(self, words: Sequence[str], name: str = "vocabulary") -> None:
        """Check and keep the words; ValueError names `name` and the line of the word that is wrong."""
        self.words = list(words)
        self._index = _Indices()
        if tuple(self.words[: len(SPECIALS)]) != SPECIALS:
            raise ValueError(
                f"{name}, lines 1-3: expected {' '.join(SPECIALS)}, found {' '.join(self.words[: len(SPECIALS)])!r}; "
                "a vocabulary starts with the three special words, one a line"
            )
        for number, word in enumerate(self.words, start=1):
            if not word or " " in word or "\n" in word:
                raise ValueError(f"{name}, line {number}: expected one word, found {word!r}; keep one word a line")
            if word in self._index:
                raise ValueError(
                    f"{name}, line {number}: {word!r} is already in line {self._index[word] + 1}; keep one of them"
                )
            self._index[word] = number - 1

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Read one word a line; ValueError names file and line."""
        return cls(read_lines(path), name=str(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one word a line."""
        write_lines(path, self.words)

    def index(self, word: str) -> int:
        """The index of a word; that of `<unk>` if it is not known."""
        return self._index[word]

    def encode(self, words: Iterable[str]) -> np.ndarray:
        """Indices of the words; (words,) int32."""
        return np.fromiter(map(self._index.__getitem__, words), dtype=np.int32)

    def decode(self, indices: Iterable[int]) -> list[str]:
        """The words of the indices."""
        return [self.words[index] for index in indices]


def build_vocabulary(counts: Counter[str], size: int) -> Vocabulary:
    """The `size` most frequent words, the three specials among them; equally frequent words in order of their text.

    The paper keeps "the top 50K frequent words" (Luong et al. 2015, section 4.1); the authors' code counts the
    specials among them. Fewer words than `size` give a smaller vocabulary.
    """
    if size <= len(SPECIALS):
        raise ValueError(f"vocabulary size: found {size}, expected more than the {len(SPECIALS)} special words")
    words = sorted(word for word in counts if word not in SPECIALS)
    frequent = sorted(words, key=counts.__getitem__, reverse=True)  # stable
    return Vocabulary([*SPECIALS, *frequent[: size - len(SPECIALS)]])
