"""Alignment matrices: a sentence and its gold one (Luong et al. 2015, figure 7), or several sentences without gold.

The latter as in figure 3 of Bahdanau et al. (2015).
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

import typer

from nmt.alignment import Link, read_talp
from nmt.attention_file import read_attention
from nmt.files import read_lines
from nmt.vocab import SPECIALS, UNK, Vocabulary
from workflow.cli import labelled_path, run
from workflow.matrices import Panel, draw_panels
from workflow.plotting import save
from workflow.scoring import read_parallel

FEWEST, MOST = 7, 15  # words of a sentence that can be read at print size, beside the gold one
SHORTEST, LONGEST = 10, 20  # words of a sentence without a gold one, as in Bahdanau et al.
UNKNOWN = SPECIALS[UNK]
GOLD_TITLE = "gold (filled: sure, open: possible)"


def crossings(links: set[Link]) -> int:
    """How many pairs of links cross: the less monotone a sentence, the more there is to see."""
    ordered = sorted(links)
    return sum(a[0] < b[0] and a[1] > b[1] for i, a in enumerate(ordered) for b in ordered[i + 1 :])


def choose_sentence(source: list[list[str]], target: list[list[str]], sure: list[set[Link]]) -> int:
    """The sentence of 7 to 15 words a side whose sure links cross most often; the first of equals."""
    fitting = [
        i
        for i, pair in enumerate(zip(source, target, strict=True))
        if all(FEWEST <= len(words) <= MOST for words in pair)
    ]
    if not fitting:
        raise ValueError(f"found no sentence of {FEWEST} to {MOST} words on both sides; choose one by --line")
    return max(fitting, key=lambda i: (crossings(sure[i]), -i))


def choose_sentences(
    sources: list[list[str]],
    outputs: list[list[list[str]]],
    examples: list[str],
    count: int,
    vocabulary: Vocabulary | None,
    seed: int,
) -> tuple[list[int], str]:
    """The first line that holds each example, spaces aside, then lines drawn at random, `count` in all if there are.

    Drawn (Bahdanau et al. 2015, figure 3) from the sentences of 10 to 20 words without an unknown word in the source,
    as far as the vocabulary tells, nor in any output; where there is none, from all. outputs: those of each system.
    Also says how they were chosen.
    """
    joined = ["".join(words) for words in sources]
    wanted = ["".join(example.split()) for example in examples]
    found = [next((i for i, line in enumerate(joined) if example in line), None) for example in wanted]
    chosen = [i for i in dict.fromkeys(found) if i is not None][:count]
    lines = [i for i, words in enumerate(sources) if words and i not in chosen and all(text[i] for text in outputs)]
    fitting = [
        i
        for i in lines
        if SHORTEST <= len(sources[i]) <= LONGEST
        and not any(UNKNOWN in output[i] for output in outputs)
        and (vocabulary is None or all(word in vocabulary for word in sources[i]))
    ]
    kind = f"those of {SHORTEST} to {LONGEST} words, none unknown" if fitting else "all"
    fitting = fitting or lines
    drawn = random.Random(seed).sample(fitting, min(count - len(chosen), len(fitting)))
    if not chosen and not drawn:
        raise ValueError("found no sentence with words in the source and in every output, expected one to show")
    printed = "Those that the paper prints, where the text has them, and others" if examples else "They were"
    return chosen + sorted(drawn), f" {printed} drawn at random (seed {seed}) from {kind}."


def main(
    attention: Annotated[list[str], typer.Option(help="LABEL=PATH of attention (.npz); one option a system.")],
    source: Annotated[Path, typer.Option(help="Tokenised source.")],
    target: Annotated[
        list[Path], typer.Option(help="The target of the attention, tokenised: one for all, or one a system.")
    ],
    output: Annotated[Path, typer.Option(help="Path without ending; .svg, .png and .json are written.")],
    gold: Annotated[Path | None, typer.Option(help="Gold links in talp format: one sentence, beside these.")] = None,
    line: Annotated[int | None, typer.Option(min=1, help="Line of the sentence, from 1; default: the rule.")] = None,
    sentences: Annotated[int, typer.Option(min=1, help="Without gold: how many sentences.")] = 4,
    example: Annotated[
        list[str] | None, typer.Option(help="Without gold: part of a sentence to show if it is there; repeat.")
    ] = None,
    vocabulary: Annotated[Path | None, typer.Option(help="Without gold: the source words that are known.")] = None,
    seed: Annotated[int, typer.Option(help="Without gold: draws the sentences that are no examples.")] = 12345,
    title: Annotated[str, typer.Option(help="Title of the figure.")] = "Alignments",
    caption: Annotated[str, typer.Option(help="Caption, for the report.")] = "",
) -> None:
    """Draw the alignments of several systems: one sentence beside the gold one, or several sentences."""
    systems = [labelled_path(text) for text in attention]
    sources = [text.split() for text in read_lines(source)]
    if len(target) not in (1, len(systems)):
        raise ValueError(f"found {len(target)} targets for {len(systems)} systems, expected one, or one a system")
    texts = [[text.split() for text in read_parallel(path, len(sources), source)] for path in target]
    targets = dict(zip([label for label, _ in systems], texts * (len(systems) // len(texts)), strict=True))
    if line and line > len(sources):
        raise ValueError(f"--line {line}: {source} has only {len(sources)} lines")
    if gold:
        links = read_talp(gold, source_lengths=[*map(len, sources)], target_lengths=[*map(len, texts[0])])
        chosen = [line - 1 if line else choose_sentence(sources, texts[0], [sure for sure, _ in links])]
        rule = f" Of the sentences of {FEWEST} to {MOST} words, the one whose sure links cross most often."
    else:
        known = Vocabulary.load(vocabulary) if vocabulary else None
        chosen, rule = choose_sentences(sources, texts, example or [], sentences, known, seed)
        chosen = [line - 1] if line else chosen
    panels = []
    for label, path in systems:
        matrices = read_attention(path)
        for i in chosen:
            weights = matrices[i][: len(targets[label][i])]
            columns = sources[i] + ["</s>"] * (weights.shape[1] - len(sources[i]))
            panels.append(Panel(label if gold else f"{label}, sentence {i + 1}", columns, targets[label][i], weights))
    if gold:
        panels.append(Panel(GOLD_TITLE, columns, texts[0][chosen[0]], links=links[chosen[0]]))
    named = f"Sentence{'s' if len(chosen) > 1 else ''} {', '.join(str(i + 1) for i in chosen)}"
    note = f"{named}; the area of a square is its weight.{'' if line else rule}"
    save(
        draw_panels(panels),
        output,
        title,
        f"{caption.rstrip('. ')}. {note}".removeprefix(". "),
        [i + 1 for i in chosen],
    )


if __name__ == "__main__":
    run(main)
