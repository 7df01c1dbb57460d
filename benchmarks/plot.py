"""The figures of benchmarks/results: one SVG beside each CSV file that `FIGURES` names."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import typer
from common import RESULTS
from matplotlib.axes import Axes

from nmt.files import atomic_path
from workflow.plotting import COLOURS, pyplot


@dataclass(frozen=True)
class Figure:
    """How to draw a CSV file's rows: bars of `value` over `x`, one colour each `series`."""

    x: str
    series: str
    value: str
    title: str


FIGURES = {
    "training_cpu": Figure("size", "system", "words_per_second", "Training on a CPU: target words a second"),
    "decoding_cpu": Figure("what", "system", "sentences_per_second", "Beam search on a CPU: sentences a second"),
}


def draw(rows: list[dict[str, str]], figure: Figure, axes: Axes) -> None:
    """Draw the rows; a series has at most one value at each x."""
    places = list(dict.fromkeys(row[figure.x] for row in rows))
    names = list(dict.fromkeys(row[figure.series] for row in rows))
    for number, name in enumerate(names):
        points = {row[figure.x]: float(row[figure.value]) for row in rows if row[figure.series] == name}
        width = 0.8 / len(names)
        offsets = [places.index(x) + (number - (len(names) - 1) / 2) * width for x in points]
        bars = axes.bar(offsets, list(points.values()), width * 0.95, label=name, color=COLOURS[number])
        axes.bar_label(bars, fmt="{:,.0f}", fontsize=8)
    axes.set_xticks(range(len(places)), places)
    axes.grid(visible=False, axis="x")
    axes.set_title(figure.title, loc="left", fontsize=10)
    axes.legend()


def main(results: Path = RESULTS) -> None:
    """Draw every figure whose CSV file is there."""
    for name, figure in FIGURES.items():
        path = results / f"{name}.csv"
        if not path.exists():
            continue
        canvas, axes = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
        with path.open(encoding="utf-8") as file:
            draw(list(csv.DictReader(file)), figure, axes)
        with atomic_path(path.with_suffix(".svg")) as temporary:
            canvas.savefig(temporary, format="svg", metadata={"Date": None})
        pyplot.close(canvas)


if __name__ == "__main__":
    typer.run(main)
