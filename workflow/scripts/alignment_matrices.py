"""Alignment matrices of several systems beside the gold one (Figure 7 of Luong et al. 2015)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from nmt.alignment import Link, read_talp
from nmt.attention_file import read_attention
from nmt.files import read_lines
from workflow.cli import labelled_path, run
from workflow.plotting import COLOURS, INK, pyplot, save
from workflow.scoring import read_parallel

FEWEST, MOST = 7, 15  # words of a sentence that can be read at print size


def crossings(links: set[Link]) -> int:
    """How many pairs of links cross: the less monotone a sentence, the more there is to see."""
    ordered = sorted(links)
    return sum(a[0] < b[0] and a[1] > b[1] for i, a in enumerate(ordered) for b in ordered[i + 1 :])


def choose_sentence(source: list[list[str]], target: list[list[str]], sure: list[set[Link]]) -> int:
    """The sentence of 7 to 15 words a side whose sure links cross most often; the first of equals."""
    fitting = [
        i
        for i, pair in enumerate(zip(source, target, strict=True))
        if all(FEWEST <= len(words) <= MOST for words in pair)
    ]
    if not fitting:
        raise ValueError(f"found no sentence of {FEWEST} to {MOST} words on both sides; choose one by --line")
    return max(fitting, key=lambda i: (crossings(sure[i]), -i))


def draw_gold(axes, sure: set[Link], possible: set[Link]) -> None:
    """Sure links as filled squares, possible ones as open squares."""
    for source, target in possible - sure:
        axes.add_patch(pyplot.Rectangle((source - 0.36, target - 0.36), 0.72, 0.72, fill=False, edgecolor=COLOURS[0]))
    for source, target in sure:
        axes.add_patch(pyplot.Rectangle((source - 0.36, target - 0.36), 0.72, 0.72, color=COLOURS[0]))


def draw_weights(axes, weights: np.ndarray) -> None:
    """Squares whose area is the weight, as a Hinton diagram: it reads on light and dark paper alike."""
    for target, source in np.argwhere(weights > 0.01):
        side = 0.94 * math.sqrt(weights[target, source])
        axes.add_patch(pyplot.Rectangle((source - side / 2, target - side / 2), side, side, color=INK))


def frame(axes, title: str, source: list[str], target: list[str]) -> None:
    """Words on both axes, the source above, the target down the side, a thin line between words."""
    axes.set_xticks(range(len(source)), source, rotation=90, fontsize=8)
    axes.set_yticks(range(len(target)), target, fontsize=8)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_axisbelow(True)
    axes.set(xlim=(-0.5, len(source) - 0.5), ylim=(len(target) - 0.5, -0.5), aspect="equal")
    axes.spines[:].set_visible(True)
    axes.set_title(title, y=-0.09, fontsize=9)


def main(
    attention: Annotated[list[str], typer.Option(help="LABEL=PATH of forced attention (.npz); one option a system.")],
    source: Annotated[Path, typer.Option(help="Tokenised source.")],
    target: Annotated[Path, typer.Option(help="Tokenised reference, which was forced.")],
    gold: Annotated[Path, typer.Option(help="Gold links in talp format.")],
    output: Annotated[Path, typer.Option(help="Path without ending; .svg, .png and .json are written.")],
    line: Annotated[int | None, typer.Option(min=1, help="Line of the sentence, from 1; default: the rule.")] = None,
    title: Annotated[str, typer.Option(help="Title of the figure.")] = "Alignments",
    caption: Annotated[str, typer.Option(help="Caption, for the report.")] = "",
) -> None:
    """Draw one sentence's alignment by several systems, and the gold one."""
    sources = [text.split() for text in read_lines(source)]
    targets = [text.split() for text in read_parallel(target, len(sources), source)]
    links = read_talp(gold, source_lengths=[*map(len, sources)], target_lengths=[*map(len, targets)])
    index = line - 1 if line else choose_sentence(sources, targets, [sure for sure, _ in links])
    if index >= len(sources):
        raise ValueError(f"--line {line}: {source} has only {len(sources)} lines")
    panels = [labelled_path(text) for text in attention]
    columns = min(2, len(panels) + 1)
    rows = math.ceil((len(panels) + 1) / columns)
    # 0.19 inches a word keeps 8-point words apart; the labels take about 1.1 inches
    size = [columns * (1.3 + 0.19 * (len(sources[index]) + 1)), rows * (1.5 + 0.19 * len(targets[index]))]
    figure, grid = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axes, (label, path) in zip(grid.flat, panels, strict=False):
        weights = read_attention(path)[index][: len(targets[index])]
        columns_read = sources[index] + ["</s>"] * (weights.shape[1] - len(sources[index]))
        frame(axes, label, columns_read, targets[index])
        draw_weights(axes, weights)
    axes = grid.flat[len(panels)]
    frame(axes, "gold (filled: sure, open: possible)", columns_read, targets[index])
    draw_gold(axes, *links[index])
    for axes in grid.flat[len(panels) + 1 :]:
        axes.remove()
    rule = "" if line else f" Of the sentences of {FEWEST} to {MOST} words, the one whose sure links cross most often."
    note = f"Sentence {index + 1}; the area of a square is its weight."
    save(figure, output, title, f"{caption.rstrip('. ')}. {note}{rule}".removeprefix(". "), [index + 1])


if __name__ == "__main__":
    run(main)
