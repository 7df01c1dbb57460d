"""A bilingual dictionary from the word-aligned training text, and word alignments of further sentence pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nmt.files import write_lines
from workflow.aligning import WordAligner, best_translations, count_links, read_pairs
from workflow.cli import run


def main(
    source: Annotated[Path, typer.Option(help="prepared training text, source side")],
    target: Annotated[Path, typer.Option(help="prepared training text, target side")],
    output: Annotated[Path, typer.Option(help="the dictionary: source word, target word, links, parted by tabs")],
    inverse: Annotated[Path | None, typer.Option(help="also the dictionary of the other direction")] = None,
    aligner: Annotated[str, typer.Option(help="eflomal, hmm, fast_align, ibm2 or ibm1")] = "eflomal",
    seed: Annotated[int, typer.Option(help="of eflomal's sampling")] = 1,
    minimum_count: Annotated[int, typer.Option(help="links a translation needs")] = 10,
    align_source: Annotated[Path | None, typer.Option(help="further pairs to align, source side")] = None,
    align_target: Annotated[Path | None, typer.Option(help="further pairs to align, target side")] = None,
    alignments: Annotated[Path | None, typer.Option(help="their links, 0-based i-j, a line a pair")] = None,
) -> None:
    """Align the training text word by word in both directions and write each word's most frequent translation.

    Most probable by count, since p(target | source) of one source word is its link count over its links.
    """
    further = (align_source, align_target, alignments)
    if any(further) and not all(further):
        raise ValueError("--align-source, --align-target and --alignments go together; give all three or none")
    pairs = list(read_pairs(source, target))
    model = WordAligner(pairs, aligner, seed)
    counts = count_links(pairs, model.align(pairs))
    write_lines(output, ["\t".join(map(str, row)) for row in best_translations(counts, minimum_count)])
    if inverse:
        turned: dict = {}
        for word, translations in counts.items():
            for translation, count in translations.items():
                turned.setdefault(translation, {})[word] = count
        write_lines(inverse, ["\t".join(map(str, row)) for row in best_translations(turned, minimum_count)])
    if align_source and align_target and alignments:
        links = model.align(list(read_pairs(align_source, align_target)))
        write_lines(alignments, [" ".join(f"{i}-{j}" for i, j in pair_links) for pair_links in links])


if __name__ == "__main__":
    run(main)
