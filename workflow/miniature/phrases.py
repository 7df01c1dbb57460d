"""Pieces of a sentence pair: words of both languages and the links between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from workflow.miniature.morphology import CONTRACTIONS


@dataclass(eq=False, slots=True)
class Source:
    """An English word; links are to the object itself, so that its place may be settled later."""

    text: str


@dataclass(eq=False, slots=True)
class Target:
    """A German word and the English words it is linked to."""

    text: str
    sure: tuple[Source, ...] = ()
    possible: tuple[Source, ...] = ()


@dataclass
class Phrase:
    """Words of both languages, each in its own order."""

    source: list[Source] = field(default_factory=list)
    target: list[Target] = field(default_factory=list)

    def __add__(self, other: Phrase) -> Phrase:
        return Phrase(self.source + other.source, self.target + other.target)


@dataclass(frozen=True)
class SentencePair:
    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: tuple[tuple[int, int], ...]  # (source, target) positions from 0, sorted
    possible: tuple[tuple[int, int], ...]  # those which are not sure


def phrase(english: Iterable[str], german: Iterable[str]) -> Phrase:
    """Words linked one to one; if the numbers differ, each with each."""
    source = [Source(text) for text in english]
    german = list(german)
    if len(source) == len(german):
        return Phrase(source, [Target(text, (word,)) for text, word in zip(german, source, strict=True)])
    return Phrase(source, [Target(text, tuple(source)) for text in german])


def contract(preposition: Target, following: list[Target], article: bool) -> list[Target]:
    """The German words of a prepositional phrase; `in dem` becomes `im` if `article` says that `dem` is one."""
    short = CONTRACTIONS.get((preposition.text, following[0].text)) if article else None
    if short is None:
        return [preposition, *following]
    first = following[0]
    merged = Target(short, preposition.sure + first.sure, preposition.possible + first.possible)
    return [merged, *following[1:]]


def finish(whole: Phrase) -> SentencePair:
    """The pair with links as positions; chooses a or an and drops commas before a full stop or another comma."""
    source, target = whole.source, whole.target
    for word, following in pairwise(source):
        if word.text == "a" and following.text[0] in "aeiou":
            word.text = "an"
    kept = [
        word
        for word, following in zip(target, [*target[1:], None], strict=True)
        if not (word.text == "," and following is not None and following.text in {",", ".", "?"})
    ]
    place = {id(word): i for i, word in enumerate(source)}
    sure = {(place[id(word)], j) for j, item in enumerate(kept) for word in item.sure}
    possible = {(place[id(word)], j) for j, item in enumerate(kept) for word in item.possible} - sure
    return SentencePair(
        tuple(word.text for word in source),
        tuple(word.text for word in kept),
        tuple(sorted(sure)),
        tuple(sorted(possible)),
    )


def surface(words: Iterable[str]) -> str:
    """Running text: a comma, full stop or question mark follows its word without a space."""
    text = " ".join(words)
    for mark in (",", ".", "?"):
        text = text.replace(f" {mark}", mark)
    return text
