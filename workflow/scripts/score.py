"""Score one system's translations of one test set: BLEU three ways, by length, unknown words, perplexity."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from nmt.files import read_json, read_lines, write_json
from workflow.cli import run
from workflow.scoring import (
    CONVENTIONS,
    SAMPLES,
    Surface,
    bleu,
    bleu_texts,
    provenance,
    read_parallel,
    reference_texts,
)

UNKNOWN = "<unk>"
BIN = 10  # words
LAST_BIN = 70  # the last bin that has an end, as in Figure 6


def length_bins(lengths: list[int]) -> dict[tuple[int, int | None], list[int]]:
    """Line indices by source length: (1, 10), (11, 20), ..., (61, 70), (71, None); empty bins are left out."""
    bins: dict[tuple[int, int | None], list[int]] = {}
    for index, length in enumerate(lengths):
        if length == 0:
            continue
        first = (length - 1) // BIN * BIN + 1
        key = (LAST_BIN + 1, None) if first > LAST_BIN else (first, first + BIN - 1)
        bins.setdefault(key, []).append(index)
    return dict(sorted(bins.items()))


def score_by_length(source: list[str], hypotheses: list[str], references: list[str], seed: int, samples: int) -> list:
    """Tokenised BLEU for each bin of source length."""
    rows = []
    for (first, last), lines in length_bins([len(line.split()) for line in source]).items():
        chosen = [[text[i] for i in lines] for text in (hypotheses, references)]
        result = bleu("bleu_tokenized", *chosen, seed, samples)
        rows.append(
            {"from": first, "to": last, "n": len(lines), "bleu": result["score"], "interval": result["interval"]}
        )
    return rows


def judge_replacements(raw: list[str], replaced: list[str], references: list[str], tokens: list[dict]) -> dict:
    """Count what became of each `<unk>` of the output, by kind, right and wrong (see CONVENTIONS["unknown"])."""
    counts: dict[str, dict[str, int]] = {}
    spare: dict[int, Counter] = {}  # reference words of a line that no known word of the output accounts for
    for token in tokens:
        line, position = token["line"], token["position"]
        words = raw[line].split()
        if line not in spare:
            spare[line] = Counter(references[line].split()) - Counter(w for w in words if w != UNKNOWN)
        word = replaced[line].split()[position]
        right = spare[line][word] > 0
        spare[line][word] -= right
        of_kind = counts.setdefault(token["kind"], {"count": 0, "right": 0, "wrong": 0})
        of_kind["count"] += 1
        of_kind["right" if right else "wrong"] += 1
    return {"in_output": sum(line.split().count(UNKNOWN) for line in raw), "kinds": counts}


def perplexity(forced: dict) -> dict:
    """Perplexity and how many words it is over."""
    return {"value": forced["perplexity"], "words": forced["words"], "nll": forced["nll"]}


def main(
    translations: Annotated[Path, typer.Option(help="Output, tokenised, a sentence a line, <unk> as it is.")],
    reference_text: Annotated[Path, typer.Option(help="Tokenised reference.")],
    reference_raw: Annotated[Path, typer.Option(help="Reference as it came.")],
    source: Annotated[Path, typer.Option(help="Tokenised source.")],
    system: Annotated[str, typer.Option(help="Name of the system.")],
    test: Annotated[str, typer.Option(help="Name of the test set.")],
    direction: Annotated[str, typer.Option(help="Source and target language, as in en-de.")],
    output: Annotated[Path, typer.Option(help="The score file (JSON).")],
    replaced: Annotated[Path | None, typer.Option(help="Output after unknown-word replacement.")] = None,
    replacements: Annotated[Path | None, typer.Option(help="What was replaced by what (JSON).")] = None,
    forced: Annotated[Path | None, typer.Option(help="Forced decoding of the reference (JSON): perplexity.")] = None,
    escaped: Annotated[bool, typer.Option(help="The tokenised text holds Moses' XML entities.")] = False,
    seed: Annotated[int, typer.Option(min=1, help="Seed of the bootstrap.")] = 12345,
    samples: Annotated[int, typer.Option(min=2, help="Bootstrap samples.")] = SAMPLES,
) -> None:
    """Score one system's translations of one test set."""
    references = read_lines(reference_text)
    if not references:
        raise ValueError(f"{reference_text}: found no lines, expected a test set")
    raw_references = read_parallel(reference_raw, len(references), reference_text)
    sources = read_parallel(source, len(references), reference_text)
    surface = Surface(direction.partition("-")[2], escaped)

    outputs = {"raw": translations} | ({"replaced": replaced} if replaced else {})
    texts = {kind: read_parallel(path, len(references), reference_text) for kind, path in outputs.items()}
    scores: dict = {"raw": None, "replaced": None}
    for kind, lines in texts.items():
        scores[kind] = {
            name: bleu(
                name,
                bleu_texts(name, lines, surface),
                reference_texts(name, references, raw_references, surface),
                seed,
                samples,
            )
            for name in ("bleu_tokenized", "bleu_nist", "bleu_13a")
        }
        scores[kind]["by_length"] = score_by_length(sources, lines, references, seed, samples)

    unknown = None
    if replacements and replaced:
        unknown = judge_replacements(texts["raw"], texts["replaced"], references, read_json(replacements)["tokens"])
    write_json(
        output,
        {
            "system": system,
            "test": test,
            "direction": direction,
            "lines": len(references),
            **scores,
            "unknown": unknown,
            "perplexity": perplexity(read_json(forced)) if forced else None,
            "conventions": CONVENTIONS,
            "provenance": provenance([translations, replaced, reference_text, reference_raw, source, forced], seed),
        },
    )


if __name__ == "__main__":
    run(main)
