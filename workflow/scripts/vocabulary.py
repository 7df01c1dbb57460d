"""The vocabulary of each language from the training text, and how much of each text it covers."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.files import iterate_lines, write_json
from nmt.vocab import Vocabulary, build_vocabulary, split_words
from workflow.cli import run


def count_words(path: Path) -> Counter[str]:
    """How often each word occurs; memory holds the words, not the text."""
    counts: Counter[str] = Counter()
    for line in iterate_lines(path):
        counts.update(split_words(line))
    return counts


def coverage(counts: Counter[str], vocabulary: Vocabulary) -> dict[str, Any]:
    """How many of a text's words (tokens, and types: different words) are in the vocabulary."""
    known = {word: count for word, count in counts.items() if word in vocabulary}
    tokens, known_tokens = counts.total(), sum(known.values())
    return {
        "types": len(counts),
        "known_types": len(known),
        "tokens": tokens,
        "known_tokens": known_tokens,
        "unknown_share": 1 - known_tokens / tokens if tokens else None,
    }


def language_size(text: str) -> tuple[str, int]:
    """Split "en=50000"."""
    language, _, number = text.partition("=")
    if not language or not number.isdecimal():
        raise ValueError(f"--size: expected LANGUAGE=WORDS, for instance en=50000, found {text!r}")
    return language, int(number)


def main(
    texts: Annotated[Path, typer.Option(help="folder of the prepared texts SET.LANGUAGE")],
    size: Annotated[list[str], typer.Option(help="LANGUAGE=WORDS, the three specials included; repeat")],
    output: Annotated[Path, typer.Option(help="folder for LANGUAGE.txt and coverage.json")],
    train: Annotated[str, typer.Option(help="the set whose words are counted")] = "train",
    cover: Annotated[list[str] | None, typer.Option(help="a further set to report coverage of; repeat")] = None,
) -> None:
    """Write each language's most frequent words, and the coverage of the training text and of further sets."""
    report: dict[str, dict[str, Any]] = {name: {} for name in [train, *(cover or [])]}
    for language, asked in map(language_size, size):
        counts = count_words(texts / f"{train}.{language}")
        if not counts:
            raise ValueError(f"{texts / f'{train}.{language}'}: expected words, found none; was everything filtered?")
        vocabulary = build_vocabulary(counts, asked)
        if len(vocabulary) < asked:
            print(
                f"warning: {language}: {asked} words asked for, {len(vocabulary)} found; all are taken", file=sys.stderr
            )
        vocabulary.save(output / f"{language}.txt")
        report[train][language] = coverage(counts, vocabulary)
        for name in cover or []:
            report[name][language] = coverage(count_words(texts / f"{name}.{language}"), vocabulary)
    write_json(output / "coverage.json", report)


if __name__ == "__main__":
    run(main)
