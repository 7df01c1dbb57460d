"""Turn one prepared text into memory-mappable word indices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.corpus import binarise
from nmt.files import iterate_lines
from nmt.vocab import Vocabulary
from workflow.cli import run


def main(
    text: Annotated[Path, typer.Option(help="prepared text, a sentence a line")],
    vocabulary: Annotated[Path, typer.Option(help="its language's vocabulary, a word a line")],
    output: Annotated[Path, typer.Option(help="PREFIX of PREFIX.ids.npy and PREFIX.offsets.npy")],
) -> None:
    """Turn one prepared text into memory-mappable word indices; line i is sentence i."""
    binarise(iterate_lines(text), Vocabulary.load(vocabulary), output)


if __name__ == "__main__":
    run(main)
