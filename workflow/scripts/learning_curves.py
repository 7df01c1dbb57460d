"""Learning curves: ln perplexity against mini-batches (Figure 5 of Luong et al. 2015)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from nmt.files import read_lines
from workflow.cli import labelled_path, run
from workflow.plotting import line_style, pyplot, save

SETS = {"test": "curve_perplexity", "dev": "dev_perplexity"}


def read_curve(path: Path, key: str) -> tuple[list[int], list[float]]:
    """Mini-batches and ln perplexity; lines without a finite value of `key` are passed over."""
    updates, costs = [], []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            point = json.loads(line)
            update, value = point["update"], point.get(key)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number}: expected a JSON object with update and {key}; train again"
            ) from error
        if value is not None and 0 < value < math.inf:
            updates.append(update)
            costs.append(math.log(value))
    return updates, costs


def main(
    curve: Annotated[list[str], typer.Option(help="LABEL=PATH of a curve.jsonl; one option a system.")],
    output: Annotated[Path, typer.Option(help="Path without ending; .svg, .png and .json are written.")],
    on: Annotated[str, typer.Option(help="The set to measure on: test or dev.")] = "test",
    title: Annotated[str, typer.Option(help="Title of the figure.")] = "Learning curves",
    caption: Annotated[str, typer.Option(help="Caption, for the report.")] = "",
) -> None:
    """Draw the learning curves of several systems."""
    if on not in SETS:
        raise ValueError(f"--on: found {on!r}, expected test or dev")
    figure, axes = pyplot.subplots(figsize=(6.3, 3.9))
    for index, (label, path) in enumerate(labelled_path(text) for text in curve):
        updates, costs = read_curve(path, SETS[on])
        if not updates:
            raise ValueError(f"{path}: no line holds a finite {SETS[on]}, so there is no curve for {label!r}; "
                             "train it with the curve's set, or draw --on dev")  # fmt: skip
        axes.plot(updates, costs, label=label, markevery=max(1, len(updates) // 12), **line_style(index))
    axes.set(xlabel="Mini-batches", ylabel=f"ln perplexity ({on})")
    axes.set_xlim(left=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(fontsize=8)
    save(figure, output, title, caption)


if __name__ == "__main__":
    run(main)
