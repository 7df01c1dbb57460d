"""`nmt align` and `nmt score`: given translations are read by force."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

import typer

from nmt.alignment import Link
from nmt.commands.console import Output, Sentences, pair_blocks, require_file
from nmt.commands.options import AlignmentStep, Average, Device, Models, Quiet

ALIGN_EXAMPLES = (
    "nmt align --model EN-DE --source text.en --target text.de > text.align",
    "nmt align --model EN-DE --inverse DE-EN --source text.en --target text.de --output text.align",
    "nmt align --model EN-DE --inverse DE-EN --symmetrise intersection --format talp --source text.en --target text.de",
)
SCORE_EXAMPLES = (
    "nmt score --model MODEL --source test.en --target test.de > scores.tsv",
    "nmt score --model MODEL --source test.en --target test.de | sort -n | head -5",
)

Source = Annotated[Path, typer.Option(help="Tokenised text, a sentence a line (or .gz).")]
Target = Annotated[Path, typer.Option(help="Its translation, line by line.")]
To = Annotated[Path | None, typer.Option(help="Else standard output.")]


def align(
    model: Models,
    source: Source,
    target: Target,
    output: To = None,
    inverse: Annotated[
        list[Path] | None, typer.Option(help="Model folder of the other direction; several make an ensemble.")
    ] = None,
    symmetrise: Annotated[
        Literal["grow-diag-final-and", "intersection", "union"],
        typer.Option(help="How two directions become one alignment."),
    ] = "grow-diag-final-and",
    form: Annotated[
        Literal["pharaoh", "talp"], typer.Option("--format", help="Links counted from 0 (pharaoh) or 1 (talp).")
    ] = "pharaoh",
    alignment_step: AlignmentStep = None,
    average: Average = "probabilities",
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Align a parallel text word by word: links `source-target`, a line a pair.

    One model links each target word to one source word. With a model of the other direction (--inverse), the links of
    both are symmetrised. A pair with an empty side has an empty line.
    """
    for path in (source, target):
        require_file(path)
    from nmt.api import load
    from nmt.symmetrise import symmetrise as join

    forward = load(model, device=device, average=average)
    backward = load(inverse, device=device, average=average) if inverse else None
    if backward is not None and forward.languages != backward.languages[::-1]:
        raise ValueError(
            f"--inverse: found a model of {'-'.join(backward.languages)}, expected one of "
            f"{'-'.join(forward.languages[::-1])}, the other direction of --model"
        )
    with Output(output) as out, Sentences(not quiet) as count:
        for sources, targets in pair_blocks(source, target):
            links: list[Collection[Link]] = list(forward.align(sources, targets, step=alignment_step, progress=count))
            if backward is not None:
                turned = backward.align(targets, sources, step=alignment_step)
                links = [
                    join(there, [(s, t) for t, s in back], symmetrise)
                    for there, back in zip(links, turned, strict=True)
                ]
            out.write(line_of(found, first=1 if form == "talp" else 0) for found in links)


def line_of(links: Collection[Link], first: int) -> str:
    """The links of a pair, sorted, its first words called `first`."""
    return " ".join(f"{source + first}-{target + first}" for source, target in sorted(links))


def score(
    model: Models,
    source: Source,
    target: Target,
    output: To = None,
    average: Average = "probabilities",
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """How likely given translations are: log-probability (natural), words with </s>, and perplexity, between tabs.

    A line a pair; it is empty where a side has no words. The whole text's perplexity goes to standard error.
    """
    for path in (source, target):
        require_file(path)
    from nmt.api import load

    reader = load(model, device=device, average=average)
    nll, words, pairs = 0.0, 0, 0
    with Output(output) as out, Sentences(not quiet) as count:
        for sources, targets in pair_blocks(source, target):
            scores = reader.score(sources, targets, count)
            found = [each for each in scores if each is not None]
            nll, words, pairs = (
                nll - sum(each.log_probability for each in found),
                words + sum(each.words for each in found),
                pairs + len(found),
            )
            out.write(
                "" if each is None else f"{each.log_probability:.6f}\t{each.words}\t{each.perplexity:.6g}"
                for each in scores
            )
    if words and not quiet:
        print(f"{pairs:,} pairs, {words:,} words, perplexity {math.exp(nll / words):.4f}", file=sys.stderr)
