"""BLEU by source length with 95% intervals (Figure 6 of Luong et al. 2015)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.files import read_json
from workflow.cli import labelled_path, run
from workflow.plotting import line_style, pyplot, save

FEWEST = 10  # sentences of a bin worth drawing: of fewer, neither the score nor its interval says anything


def bin_name(row: dict) -> str:
    """ "11–20", or "71+" for the last bin."""
    return f"{row['from']}+" if row["to"] is None else f"{row['from']}–{row['to']}"


def read_series(path: Path, kind: str) -> list[dict]:
    """The bins of a score file; ValueError if it holds none for this kind of output."""
    score = read_json(path)
    if not score.get(kind):
        raise ValueError(f"{path}: found no scores of the {kind} output; score it again with that output")
    return score[kind]["by_length"]


def worth_drawing(rows: list[dict]) -> list[dict]:
    """The bins of at least `FEWEST` sentences; all, if none has so many."""
    return [row for row in rows if row["n"] >= FEWEST] or rows


def main(
    output: Annotated[Path, typer.Option(help="Path without ending; .svg, .png and .json are written.")],
    raw: Annotated[list[str] | None, typer.Option(help="LABEL=PATH of a score file: plain output.")] = None,
    replaced: Annotated[list[str] | None, typer.Option(help="LABEL=PATH: output after unk replacement.")] = None,
    title: Annotated[str, typer.Option(help="Title of the figure.")] = "BLEU by source length",
    caption: Annotated[str, typer.Option(help="Caption, for the report.")] = "",
) -> None:
    """Draw BLEU by source length for several systems."""
    chosen = [("raw", *labelled_path(text)) for text in raw or []]
    chosen += [("replaced", *labelled_path(text)) for text in replaced or []]
    if not chosen:
        raise ValueError("found no score files, expected at least one --raw or --replaced LABEL=PATH")
    series = {label: worth_drawing(read_series(path, kind)) for kind, label, path in chosen}
    sizes = {row["from"]: (bin_name(row), row["n"]) for rows in series.values() for row in rows}
    place = {first: index for index, first in enumerate(sorted(sizes))}
    figure, axes = pyplot.subplots(figsize=(6.3, 3.9))
    for index, (label, rows) in enumerate(series.items()):
        shift = 0.08 * (index - (len(series) - 1) / 2)  # keeps error bars of one bin apart
        at = [place[row["from"]] + shift for row in rows]
        bleu = [row["bleu"] for row in rows]
        # the bootstrap's interval need not hold the score itself where a bin is small
        below = [max(0.0, row["bleu"] - row["interval"][0]) for row in rows]
        above = [max(0.0, row["interval"][1] - row["bleu"]) for row in rows]
        axes.errorbar(at, bleu, [below, above], label=label, capsize=2, elinewidth=0.8, **line_style(index))
    names = [f"{name}\nn = {n}" for _, (name, n) in sorted(sizes.items())]
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set(xlabel="Source length (words)", ylabel="BLEU (tokenised)")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    save(figure, output, title, caption)


if __name__ == "__main__":
    run(main)
