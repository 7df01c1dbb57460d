"""sacremoses' Moses tokeniser, word for word but several times as fast: what stands between two spaces is done once.

Moses runs some dozen regular expressions over a line, though hardly one looks further than from one space to the next.
Call what stands between two spaces a chunk. By the rules of sacremoses 0.2.0, a cleaned line's chunks become the same
words wherever they stand, with these exceptions:

- Symbols are padded with spaces before all else, each by itself, and a comma before a space is always parted from its
  word. So a chunk may be cut round its symbols, and before a comma at its end, into smaller chunks.
- A rule for a comma or an apostrophe looks at the character before and the one after, which at a chunk's edge is a
  space, or else the line's edge. One match may take in the space that the next one needs: only in "' '".
- A full stop at a chunk's end is parted from it or not by the first character of the next chunk: whether it is a
  lower-case letter, a digit or something else; the line's end is to it as something else.

So a line that begins or ends with a comma or an apostrophe, or that has "' '" in it, goes to sacremoses as a whole. A
chunk that ends in a full stop is kept apart for each kind of what may follow, and every chunk's words are asked of
sacremoses, by giving it the chunk between two letters. No rule is written a second time here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sacremoses import MosesTokenizer

from workflow.cleaning import escape_specials

CHUNKS_KEPT = 200_000  # about 40 MB
WORD = "Wwww"  # stands for any word that is on no list of abbreviations
SMALL, DIGIT, OTHER = "a", "0", "A"  # what may follow a full stop: an example of each kind


class _Moses(MosesTokenizer):
    """sacremoses' tokeniser; the characters and abbreviations it searches for are sets, and not built on each call."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self.NONBREAKING_PREFIXES = frozenset(self.NONBREAKING_PREFIXES)
        self.NUMERIC_ONLY_PREFIXES = frozenset(self.NUMERIC_ONLY_PREFIXES)
        self.alpha, self.alnum, self.lower = frozenset(self.IsAlpha), frozenset(self.IsAlnum), frozenset(self.IsLower)

    def islower(self, text: str) -> bool:
        return self.lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        return not self.alpha.isdisjoint(text)


class MosesLines(dict[str, str]):
    """Tokenises cleaned lines, that is without control characters, their chunks parted by single spaces.

    As a dictionary: from a chunk, and if it ends in a full stop also " " and what follows, to the chunk's words.
    """

    def __init__(self, language: str, escape: bool, aggressive_hyphens: bool) -> None:
        super().__init__()
        self._moses = _Moses(language)
        self._options = {"escape": escape, "aggressive_dash_splits": aggressive_hyphens}
        self._pad = self._moses.PAD_NOT_ISALNUM[0].sub
        self._inert = self._moses.alnum | (set() if aggressive_hyphens else {"-"})  # no rule is about these alone
        self._abbreviations = self._moses.NONBREAKING_PREFIXES | self._moses.NUMERIC_ONLY_PREFIXES

    def tokenise(self, line: str) -> str:
        """The line's words, parted by single spaces."""
        if not line or line[0] in ",'" or line[-1] in ",'" or "' '" in line:
            return " ".join(self._moses.tokenize(line, **self._options))
        return self._join(line.split(" "), OTHER)

    def _join(self, chunks: list[str], follows: str) -> str:
        """The words of chunks, before one of the kind `follows`."""
        for index, chunk in enumerate(chunks):
            if chunk[-1] == ".":
                chunks[index] += " " + (self._kind(chunks[index + 1]) if index + 1 < len(chunks) else follows)
        return " ".join(map(self.__getitem__, chunks))

    def _kind(self, chunk: str) -> str:
        """What a chunk is to a full stop before it."""
        if chunk[0] in self._moses.lower:
            return SMALL
        return DIGIT if "0" <= chunk[0] <= "9" else OTHER

    def __missing__(self, key: str) -> str:
        words = self._words(*key.split(" "))
        if len(self) >= CHUNKS_KEPT:
            self.clear()
        self[key] = words
        return words

    def _words(self, chunk: str, follows: str = OTHER) -> str:
        word = chunk.removesuffix(".")
        plain = self._inert.issuperset(word) and "MULTI" not in word  # which is sacremoses' own for several dots
        if plain and word == chunk:
            return chunk
        if plain and word and word != WORD and word not in self._abbreviations:
            return self[f"{WORD}. {follows}"].replace(WORD, word)
        parts = self._pad(r" \1 ", chunk + " ").replace(", ", " , ").split()
        if len(parts) > 1:
            return self._join(parts, follows)
        return " ".join(self._moses.tokenize(f"A {chunk} {follows}", **self._options)[1:-1])


@dataclass(frozen=True)
class Tokeniser:
    """Cleaned lines to words parted by single spaces, in one language."""

    language: str
    kind: str = "moses"  # or "none": the text is tokenised already
    escape: bool = False
    aggressive_hyphens: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("moses", "none"):
            raise ValueError(f"tokeniser: expected moses or none, found {self.kind!r}")

    @cached_property
    def _moses(self) -> MosesLines:
        return MosesLines(self.language, self.escape, self.aggressive_hyphens)

    def __call__(self, line: str) -> str:
        """The words of a line that was cleaned; case is kept, and an empty line stays empty."""
        return escape_specials(self._moses.tokenise(line) if self.kind == "moses" else line)
