"""Of a test set, the sentences without unknown words: every word of source and reference is in the vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from nmt.files import read_lines, write_lines
from nmt.vocab import Vocabulary, split_words
from workflow.cli import labelled_path, run
from workflow.scoring import read_parallel


def known_lines(texts: Sequence[Sequence[str]], vocabularies: Sequence[Vocabulary]) -> list[int]:
    """The lines, from 0, that hold words and only known ones in each language; texts: the lines of each language."""

    def known(line: str, vocabulary: Vocabulary) -> bool:
        words = split_words(line)
        return bool(words) and all(word in vocabulary for word in words)

    rows = enumerate(zip(*texts, strict=True))
    return [i for i, row in rows if all(map(known, row, vocabularies))]


def main(
    text: Annotated[list[str], typer.Option(help="LANGUAGE=PATH of a tokenised text; once a language")],
    raw: Annotated[list[str], typer.Option(help="LANGUAGE=PATH of the same text as it came")],
    vocabulary: Annotated[list[str], typer.Option(help="LANGUAGE=PATH of a vocabulary, a word a line")],
    text_output: Annotated[list[str], typer.Option(help="LANGUAGE=PATH for the sentences, tokenised")],
    raw_output: Annotated[list[str], typer.Option(help="LANGUAGE=PATH for the sentences as they came")],
) -> None:
    """Write the sentences of a test set that hold no unknown word."""
    paths = [dict(map(labelled_path, option)) for option in (text, raw, vocabulary, text_output, raw_output)]
    if any(set(each) != set(paths[0]) for each in paths):
        raise ValueError(f"expected each option for the same languages, found {[sorted(each) for each in paths]}")
    languages = list(paths[0])
    first = paths[0][languages[0]]
    lines = len(read_lines(first))
    whole = [{language: read_parallel(each[language], lines, first) for language in languages} for each in paths[:2]]
    vocabularies = [Vocabulary.load(paths[2][language]) for language in languages]
    chosen = known_lines([whole[0][language] for language in languages], vocabularies)
    if not chosen:
        raise ValueError(
            f"{first}: of {lines} sentences found none without an unknown word; enlarge `vocabulary`, or leave the "
            "column for such sentences out of the table"
        )
    print(f"{len(chosen)} of {lines} sentences hold no unknown word")
    for texts, outputs in zip(whole, paths[3:], strict=True):
        for language in languages:
            write_lines(outputs[language], [texts[language][i] for i in chosen])


if __name__ == "__main__":
    run(main)
