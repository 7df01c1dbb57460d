"""What the command lines of workflow/scripts share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import typer


def run(main: Callable[..., None]) -> None:
    """Run a script's `main` by typer; ValueError and OSError become one line on stderr and exit status 1."""
    try:
        typer.run(main)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def labelled_path(text: str) -> tuple[str, Path]:
    """Split "LABEL=PATH" at its last "="; ValueError if there is none."""
    label, equals, path = text.rpartition("=")
    if not equals or not label or not path:
        raise ValueError(f"found {text!r}, expected LABEL=PATH")
    return label, Path(path)
