"""Draw the miniature corpus: English-like sentences, their German-like translation, and gold word alignments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from nmt.files import write_lines
from workflow.cli import run
from workflow.miniature.corpus import draw_sets, statistics, talp_line
from workflow.miniature.phrases import surface


def main(
    output: Annotated[Path, typer.Option(help="folder for miniature-SET.en, miniature-SET.de and miniature-gold.talp")],
    seed: Annotated[int, typer.Option(help="draws the sentences; the language itself does not change")] = 1,
    train: Annotated[int, typer.Option(min=0, help="training pairs")] = 4000,
    dev: Annotated[int, typer.Option(min=0, help="development pairs")] = 400,
    test: Annotated[int, typer.Option(min=0, help="test pairs")] = 400,
    test2: Annotated[int, typer.Option(min=0, help="pairs of the second test set")] = 400,
    gold: Annotated[int, typer.Option(min=0, help="pairs of the set with gold alignments")] = 200,
    source: Annotated[str, typer.Option(help="language of the first number of a link: en or de")] = "en",
    target: Annotated[str, typer.Option(help="language of the second number of a link")] = "de",
    train_links: Annotated[bool, typer.Option("--train-links", help="write miniature-train.talp too")] = False,
    show: Annotated[bool, typer.Option("--statistics", help="print what can be counted, as JSON")] = False,
    vocabulary: Annotated[tuple[int, int], typer.Option(help="English and German sizes for --statistics")] = (600, 800),
) -> None:
    """Draw all sets; the same flags give the same bytes."""
    if {source, target} != {"en", "de"}:
        raise ValueError(f"--source {source} --target {target}: the miniature languages are en and de, one each")
    sets = draw_sets(seed, {"train": train, "dev": dev, "test": test, "test2": test2, "gold": gold})
    for name, pairs in sets.items():
        write_lines(output / f"miniature-{name}.en", [surface(pair.source) for pair in pairs])
        write_lines(output / f"miniature-{name}.de", [surface(pair.target) for pair in pairs])
        if name == "gold" or (name == "train" and train_links):
            links = [talp_line(pair, turned=source == "de") for pair in pairs]
            write_lines(output / f"miniature-{name}.talp", links)
    if show:
        print(json.dumps(statistics(sets, vocabulary), indent=2))


if __name__ == "__main__":
    run(main)
