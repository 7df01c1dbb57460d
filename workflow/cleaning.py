"""Raw lines: what the characters between words are, which pairs are of use, where two texts seem to part."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nmt.files import iterate_lines
from nmt.vocab import SPECIALS

CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b]")
SPECIAL = re.compile("|".join(rf"(?<!\S){re.escape(word)}(?!\S)" for word in SPECIALS))


def clean(line: str) -> str:
    """Words parted by single spaces, as Moses does it first of all.

    Any run of white space becomes one space: tabs, "\\r", U+0085, U+00A0, U+2028 and the like, which other programs
    take for line breaks or not for spaces. Other control characters, NUL among them, are removed.
    """
    return " ".join(CONTROL.sub("", line).split())


def escape_specials(line: str) -> str:
    """The words `<unk>`, `<s>`, `</s>` of a text as `&lt;unk&gt;` and so on, for they mean something else here."""
    return SPECIAL.sub(lambda match: match[0].replace("<", "&lt;").replace(">", "&gt;"), line) if "<" in line else line


def unspaced(line: str) -> str:
    """A line without its spaces: the same for a sentence before and after it was tokenised."""
    return line.replace(" ", "")


@dataclass(frozen=True)
class Filter:
    """Which pairs of a training text are left out; the sides of a pair go together."""

    max_length: int | None = None  # words
    excluded: dict[str, frozenset[str]] = field(default_factory=dict)  # `unspaced` lines by language

    def reason_before(self, lines: Sequence[str], languages: Sequence[str]) -> str | None:
        """Why a pair of cleaned lines is left out, as far as can be said before it is tokenised.

        No tokeniser joins words, so that a line of too many words is too long already.
        """
        if not all(lines):
            return "empty"
        for line, language in zip(lines, languages, strict=True):
            if language in self.excluded and unspaced(line) in self.excluded[language]:
                return "excluded"
        return self.reason_after(lines)

    def reason_after(self, lines: Sequence[str]) -> str | None:
        """Why a pair of tokenised lines is left out, or None."""
        if not all(lines):
            return "empty"
        if self.max_length is not None and any(line.count(" ") >= self.max_length for line in lines):
            return "too_long"
        return None


def parting_line(first: np.ndarray, second: np.ndarray) -> int:
    """The 1-based line where two texts of unequal line count seem to part, by their lines' lengths.

    first, second: (lines,) lengths in characters. The one place is sought where, had the longer text its surplus lines
    exactly there, the lengths of the lines before and after would go together best (least sum of |log ratio|).
    """
    longer, shorter = (first, second) if len(first) > len(second) else (second, first)
    surplus, logs = len(longer) - len(shorter), (np.log1p(longer), np.log1p(shorter))
    offset = logs[0].mean() - logs[1].mean() if len(shorter) else 0.0
    before = np.abs(logs[0][: len(shorter)] - logs[1] - offset)  # (shorter,) if the surplus comes later
    after = np.abs(logs[0][surplus:] - logs[1] - offset)  # (shorter,) if it came earlier
    cost = np.concatenate([[0.0], np.cumsum(before)]) + np.concatenate([np.cumsum(after[::-1])[::-1], [0.0]])
    return int(np.argmin(cost)) + 1


def raw_lines(path: Path) -> Iterator[str]:
    """A file's lines without a byte order mark at its start."""
    for number, line in enumerate(iterate_lines(path)):
        yield line if number else line.removeprefix("\ufeff")


def check_parallel(paths: tuple[Path, ...]) -> int:
    """Read files that should be parallel to their ends; how many lines they have.

    Raises ValueError where one is not UTF-8, or with both counts and the line where the files seem to part.
    """
    lengths = [np.array(array("i", map(len, raw_lines(path)))) for path in paths]
    for path, length in zip(paths[1:], lengths[1:], strict=True):
        if len(length) != len(lengths[0]):
            raise ValueError(
                f"{paths[0]} has {len(lengths[0])} lines, {path} has {len(length)}; expected equally many. By the "
                f"lengths of their lines they seem to part near line {parting_line(lengths[0], length)}: look there"
            )
    return len(lengths[0])
