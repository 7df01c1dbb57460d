"""`nmt show`: the attention matrix of one sentence, in the terminal or as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from nmt.commands.options import Average, Device, Models
from nmt.files import atomic_path

if TYPE_CHECKING:
    from rich.text import Text

EXAMPLES = (
    'nmt show "the house is small" --model MODEL',
    'nmt show "the house is small" --model MODEL --target "das Haus ist klein"',
    'nmt show "the house is small" --model MODEL --output attention.svg',
)
END = "</s>"


def show(
    sentence: Annotated[str, typer.Argument(help="The tokenised source sentence.")],
    model: Models,
    target: Annotated[str | None, typer.Option(help="Its translation; else the model's own.")] = None,
    output: Annotated[Path | None, typer.Option(help="A picture (.svg, .png, .pdf) instead of the terminal.")] = None,
    average: Average = "probabilities",
    device: Device = "auto",
) -> None:
    """Show where a model looks in the source (across) for each word of the translation (down)."""
    if not sentence.strip(" "):
        raise ValueError("the sentence is empty: give its words between quotation marks")
    from nmt.api import load
    from nmt.vocab import split_words

    reader = load(model, device=device, average=average)
    if not reader.attends:
        raise ValueError(f"{reader.name}: the model has no attention to show; choose a model with attention")
    source = split_words(sentence)
    if target is None:
        translation = reader.translate([sentence])[0]
        words, weights = translation.words, translation.attention
    else:
        words = split_words(target)
        read = reader.read([sentence], [target])[0]
        if read is None:
            raise ValueError("--target is empty: give its words between quotation marks, or leave it out")
        weights = read.attention
    columns, rows = [*source, END][: weights.shape[1]], [*words, END]
    if output is None:
        print_matrix(weights, rows, columns)
    else:
        draw_matrix(output, weights, rows, columns)


def print_matrix(weights: np.ndarray, rows: list[str], columns: list[str]) -> None:
    """Weights in hundredths, the larger the brighter; source words are numbered where they are too wide together."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if terminal else 10_000)
    first = max(map(len, rows)) + 1
    if first + sum(max(len(word), 2) + 1 for word in columns) > console.width:
        console.print(Text(" ".join(f"{number}:{word}" for number, word in enumerate(columns, start=1))))
        columns = [str(number) for number in range(1, len(columns) + 1)]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("")
    for word in columns:
        table.add_column(Text(word, style="bold"), justify="right", no_wrap=True)
    for word, row in zip(rows, weights, strict=True):
        table.add_row(Text(word, style="bold"), *(cell(float(weight)) for weight in row))
    console.print(table)


def cell(weight: float) -> Text:
    """A weight in hundredths on a grey that grows lighter with it; a dot for less than half of one."""
    from rich.text import Text

    hundredths = round(100 * weight)
    shade = 232 + round(23 * min(weight, 1.0))  # of the 24 greys among the terminal's 256 colours
    style = f"{'black' if weight > 0.5 else 'white'} on color({shade})"
    return Text(str(hundredths) if hundredths else ".", style=style)


def draw_matrix(path: Path, weights: np.ndarray, rows: list[str], columns: list[str]) -> None:
    """A picture in the format that the ending names; ValueError without matplotlib or for an unknown ending."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError(
            "--output needs matplotlib, which is not installed: `pip install matplotlib`, or leave --output out to "
            "see the matrix in the terminal"
        ) from error
    figure = Figure(figsize=(1.5 + 0.35 * len(columns), 1.2 + 0.3 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(weights, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=60, ha="left", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(len(rows)), rows, parse_math=False)
    axes.xaxis.tick_top()
    figure.colorbar(image, ax=axes, label="weight")
    with atomic_path(path) as temporary:
        figure.savefig(temporary)
