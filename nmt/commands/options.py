"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Models = Annotated[list[Path], typer.Option("--model", help="Model folder; give it several times for an ensemble.")]
Average = Annotated[Literal["probabilities", "logits"], typer.Option(help="What an ensemble averages.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 ... or auto: a GPU if there is one.")]
AlignmentStep = Annotated[
    Literal["predicting", "input"] | None,
    typer.Option(help="Which step's attention aligns a word (footnote 14); the model's own choice if not given."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")]


def examples(*commands: str) -> str:
    """The end of a command's help: examples, a line each, kept as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {command}" for command in commands)
