"""Attention over a few dozen sentences of a text, small enough for the report's alignment explorer."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from nmt.alignment import read_talp
from nmt.attention_file import read_attention
from nmt.files import read_lines, write_json
from nmt.vocab import SPECIALS, UNK
from workflow.cli import labelled_path, run
from workflow.scoring import read_parallel

DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"  # 64 levels, a character a weight
UNKNOWN = SPECIALS[UNK]


def quantise(weights: np.ndarray) -> str:
    """Weights from 0 to 1 in steps of 1/63, row after row."""
    levels = np.rint(np.clip(weights, 0, 1) * (len(DIGITS) - 1)).astype(int)
    return "".join(DIGITS[level] for level in levels.ravel())


def choose(sources: list[list[str]], attention: list[list[np.ndarray]], count: int, longest: int) -> list[int]:
    """The first `count` sentences of 3 to `longest` words a side that every system has weights for."""
    fitting = [
        i
        for i, words in enumerate(sources)
        if 3 <= len(words) <= longest and all(1 < len(matrices[i]) <= longest + 1 for matrices in attention)
    ]
    return fitting[:count]


def check_shape(matrix: np.ndarray, words: int, source: int, path: Path, line: int) -> None:
    """ValueError unless there is a row a target word and one for the end, a column a source word, perhaps one more."""
    if len(matrix) != words + 1 or matrix.shape[1] not in (source, source + 1):
        raise ValueError(
            f"{path}, sentence {line}: found {matrix.shape[0]} by {matrix.shape[1]} weights, expected {words + 1} by "
            f"{source} or {source + 1}; translate or force again"
        )


def output_words(raw: list[str], replaced: list[str] | None) -> dict:
    """The words of an output as printed, and which of them (from 0) stand for an unknown word."""
    return {"words": replaced or raw, "unknown": [i for i, word in enumerate(raw) if word == UNKNOWN]}


def main(
    attention: Annotated[list[str], typer.Option(help="SYSTEM=PATH of an attention file; one option a system.")],
    source: Annotated[Path, typer.Option(help="Tokenised source.")],
    output: Annotated[Path, typer.Option(help="The JSON file.")],
    target: Annotated[Path | None, typer.Option(help="The reference, where it was decoded by force.")] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold links (talp) between source and reference.")] = None,
    words: Annotated[list[str] | None, typer.Option(help="SYSTEM=PATH of its output, where it translated.")] = None,
    replaced: Annotated[list[str] | None, typer.Option(help="SYSTEM=PATH of that, unknown words replaced.")] = None,
    sentences: Annotated[int, typer.Option(min=1, help="How many sentences to take at most.")] = 24,
    longest: Annotated[int, typer.Option(help="Most words of a sentence.")] = 30,
) -> None:
    """Collect sentences, outputs and quantised weights for the explorer."""
    if (target is None) == (not words):
        raise ValueError("expected either --target (decoded by force) or --words for every system (translated)")
    sources = [line.split() for line in read_lines(source)]

    def parallel(path: Path) -> list[list[str]]:
        return [line.split() for line in read_parallel(path, len(sources), source)]

    paths = dict(labelled_path(text) for text in attention)
    matrices = {system: read_attention(path) for system, path in paths.items()}
    for system, found in matrices.items():
        if len(found) != len(sources):
            raise ValueError(f"{paths[system]}: found {len(found)} sentences, expected {len(sources)} as in {source}")
    outputs = {system: parallel(path) for system, path in map(labelled_path, words or [])}
    printed = {system: parallel(path) for system, path in map(labelled_path, replaced or [])}
    references = parallel(target) if target else None
    if missing := [system for system in matrices if references is None and system not in outputs]:
        raise ValueError(f"--words: found none of {missing[0]!r}, expected one for every --attention")
    chosen = choose(sources, list(matrices.values()), sentences, longest)
    systems = {}
    for system, found in matrices.items():
        own = references or outputs[system]
        for i in chosen:
            check_shape(found[i], len(own[i]), len(sources[i]), paths[system], i + 1)
        systems[system] = [
            {"weights": quantise(found[i])}
            | ({} if references else output_words(own[i], printed[system][i] if system in printed else None))
            for i in chosen
        ]
    about: dict = {
        "text": output.stem,
        "forced": references is not None,
        "lines": [i + 1 for i in chosen],
        "sources": [sources[i] for i in chosen],
        "systems": systems,
    }
    if references:
        about["references"] = [references[i] for i in chosen]
    if gold:
        links = read_talp(gold, source_lengths=[*map(len, sources)])
        about["gold"] = [
            sorted([*link, int(link in links[i][0])] for link in links[i][0] | links[i][1]) for i in chosen
        ]
    write_json(output, about)


if __name__ == "__main__":
    run(main)
