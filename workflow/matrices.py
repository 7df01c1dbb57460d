"""Attention and alignment matrices as pictures: words on both axes, a square for each weight or link."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from nmt.alignment import Link
from workflow.plotting import COLOURS, INK, pyplot


@dataclass(frozen=True)
class Panel:
    """One matrix: weights (target words, source words, perhaps `</s>`), or gold links, sure and possible."""

    title: str
    source: list[str]
    target: list[str]
    weights: np.ndarray | None = None
    links: tuple[set[Link], set[Link]] = (set(), set())


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


def draw_panels(panels: list[Panel]) -> Figure:
    """All the matrices, two a row."""
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    # 0.19 inches a word keeps 8-point words apart; the labels take about 1.1 inches
    width = 1.3 + 0.19 * max(len(panel.source) for panel in panels)
    height = 1.5 + 0.19 * max(len(panel.target) for panel in panels)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=[columns * width, rows * height], squeeze=False, layout="constrained"
    )
    for axes, panel in zip(grid.flat, panels, strict=False):
        frame(axes, panel.title, panel.source, panel.target)
        if panel.weights is None:
            draw_gold(axes, *panel.links)
        else:
            draw_weights(axes, panel.weights)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    return figure
