"""The look of all figures: colour-blind-safe, readable at print size, text kept as text in SVG."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.figure import Figure

from nmt.files import atomic_path, write_json

INK = "#1b1b1f"  # text and axes; the report turns it into the page's text colour
PAPER = "#fefefe"  # background; the report takes it away
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]  # Okabe and Ito (2008)
MARKERS = ["o", "s", "^", "D", "v", "P"]
DASHES = ["-", "--", "-.", ":"]

pyplot.rcParams.update(
    {
        "figure.facecolor": PAPER,
        "axes.facecolor": "none",
        "savefig.facecolor": PAPER,
        "font.family": "sans-serif",
        "font.size": 9,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#8a8a94",
        "grid.alpha": 0.3,
        "grid.linewidth": 0.5,
        "legend.frameon": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "figure",  # the same input gives the same file
    }
)


def line_style(index: int) -> dict:
    """Colour, marker and dash of the series number `index`; all three differ, so that it reads in grey as well."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": DASHES[index % len(DASHES)],
        "markersize": 4,
        "linewidth": 1.4,
    }


def save(figure: Figure, output: Path, title: str, caption: str, lines: list[int] | None = None) -> None:
    """Write `output`.svg, `output`.png (200 dots an inch) and `output`.json (title and caption, for the report).

    lines: of the text, from 1, those that the figure shows; None where it shows none.
    """
    for ending, options in ((".svg", {"metadata": {"Date": None}}), (".png", {"dpi": 200})):
        with atomic_path(output.with_name(output.name + ending)) as path:
            figure.savefig(path, bbox_inches="tight", **options)
    pyplot.close(figure)
    about = {"kind": "figure", "name": output.name, "title": title, "caption": caption}
    about |= {} if lines is None else {"lines": lines}
    write_json(output.with_name(output.name + ".json"), about)
