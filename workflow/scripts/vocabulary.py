"""The vocabulary of each language from the training text, and how much of each text it covers."""

from __future__ import annotations

import itertools
import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.files import iterate_lines, write_json
from nmt.vocab import Vocabulary, build_vocabulary, split_words
from workflow.cli import run


def count_words(path: Path) -> Counter[str]:
    """How often each word occurs; memory holds the words, not the text."""
    counts: Counter[str] = Counter()
    counts.update(itertools.chain.from_iterable(map(split_words, iterate_lines(path))))
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


def make_vocabulary(texts: Path, sets: list[str], output: Path, language: str, size: int) -> dict[str, dict[str, Any]]:
    """Write a language's most frequent words of the first set; the coverage of each set."""
    train, *further = [texts / f"{name}.{language}" for name in sets]
    counts = count_words(train)
    if not counts:
        raise ValueError(f"{train}: expected words, found none; was everything filtered?")
    vocabulary = build_vocabulary(counts, size)
    if len(vocabulary) < size:
        print(f"warning: {language}: {size} words asked for, {len(vocabulary)} found; all are taken", file=sys.stderr)
    vocabulary.save(output / f"{language}.txt")
    covered = [coverage(counts, vocabulary), *(coverage(count_words(path), vocabulary) for path in further)]
    return dict(zip(sets, covered, strict=True))


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
    threads: Annotated[int, typer.Option(help="processes, a language each")] = os.cpu_count() or 1,
) -> None:
    """Write each language's most frequent words, and the coverage of the training text and of further sets."""
    sizes, sets = dict(map(language_size, size)), [train, *(cover or [])]
    each = partial(make_vocabulary, texts, sets, output)
    if min(threads, len(sizes)) > 1:
        with ProcessPoolExecutor(min(threads, len(sizes))) as pool:
            coverages = list(pool.map(each, sizes, sizes.values()))
    else:
        coverages = list(map(each, sizes, sizes.values()))
    report = {
        name: {language: covered[name] for language, covered in zip(sizes, coverages, strict=True)} for name in sets
    }
    write_json(output / "coverage.json", report)


if __name__ == "__main__":
    run(main)
