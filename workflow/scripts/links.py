"""A word aligner's links, `i-j` pairs a line, in the form in which forced decoding writes a model's (JSON)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.files import read_lines, write_json
from workflow.cli import run


def read_links(path: Path) -> list[list[list[int]]]:
    """The links of each line, 0-based; ValueError names the line that holds anything else."""
    found = []
    for number, line in enumerate(read_lines(path), start=1):
        parts = [link.partition("-") for link in line.split()]
        wrong = [i + dash + j for i, dash, j in parts if not (i.isdecimal() and j.isdecimal())]
        if wrong:
            raise ValueError(f"{path}, line {number}: expected links such as 3-4, found {wrong[0]!r}; align again")
        found.append([[int(i), int(j)] for i, _, j in parts])
    return found


def main(
    links: Annotated[Path, typer.Option(help="Links from 0, `source-target` pairs, a sentence a line.")],
    output: Annotated[Path, typer.Option(help="JSON: links under the one rule `symmetric`.")],
) -> None:
    """Turn an aligner's links into what align_score.py reads."""
    write_json(output, {"links": {"symmetric": read_links(links)}})


if __name__ == "__main__":
    run(main)
