"""Alignment error rate of forced (or statistical) alignments against gold links (Table 6 of Luong et al. 2015)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from nmt.alignment import (
    attention_entropy,
    attention_sharpness,
    error_rate,
    link_counts,
    precision_recall,
    read_talp,
)
from nmt.attention_file import read_attention
from nmt.files import iterate_lines, read_json, read_lines, write_json
from workflow.cleaning import unspaced
from workflow.cli import run
from workflow.scoring import SAMPLES, provenance, read_parallel

CONVENTIONS = {
    "aer": "1 - (|A & S| + |A & P|) / (|A| + |S|) over all sentences, S (sure) inside P (possible) (Och and Ney 2003).",
    "precision": "|A & P| / |A|",
    "recall": "|A & S| / |S|",
    "predicting": "Link of a target word: the largest weight at the step that predicts it.",
    "input": "Link of a target word: the largest weight at the step where it is the input (footnote 14 of the paper).",
    "symmetric": "Links of a statistical aligner; it has no steps.",
    "entropy": "Entropy in nats of the attention over the source's words, renormalised, mean over steps.",
    "sharpness": "Largest attention weight over the source's words, renormalised, mean over steps.",
    "interval": "95% interval (percentiles) of a bootstrap over sentences.",
}


def rates(counts: np.ndarray, seed: int, samples: int) -> dict:
    """AER with its interval, precision and recall from `link_counts` of the sentences, (sentences, 4)."""
    drawn = np.random.default_rng(seed).integers(len(counts), size=(samples, len(counts)))
    sums = counts[drawn].sum(axis=1)  # (samples, 4)
    resampled = [error_rate(total[None]) for total in sums if total[2:].any()]
    precision, recall = precision_recall(counts)
    return {
        "aer": error_rate(counts),
        "interval": np.percentile(resampled, [2.5, 97.5]).tolist(),
        "precision": None if math.isnan(precision) else precision,
        "recall": None if math.isnan(recall) else recall,
        "counts": dict(zip(("sure_hits", "possible_hits", "links", "sure"), counts.sum(axis=0).tolist(), strict=True)),
    }


def spread(path: Path, lengths: list[int]) -> dict[str, float]:
    """Entropy and sharpness of the attention over the source's words, mean over all steps that look at any."""
    matrices = [(weights, n) for weights, n in zip(read_attention(path), lengths, strict=True) if n]
    measures = {"entropy": attention_entropy, "sharpness": attention_sharpness}
    return {
        name: float(np.nanmean(np.concatenate([measure(weights, n) for weights, n in matrices])))
        for name, measure in measures.items()
    }


def seen_lines(source: list[str], training: Path) -> set[int]:
    """Lines (from 0) whose source sentence occurs in the training text, however either is tokenised."""
    wanted = set(map(unspaced, source))
    seen = wanted.intersection(map(unspaced, iterate_lines(training)))
    return {i for i, line in enumerate(source) if unspaced(line) in seen}


def main(
    forced: Annotated[Path, typer.Option(help="JSON with links: {rule: [[[source, target], ..], ..]}, from 0.")],
    gold: Annotated[Path, typer.Option(help="Gold links in talp format.")],
    source: Annotated[Path, typer.Option(help="Tokenised source of the gold sentences.")],
    target: Annotated[Path, typer.Option(help="Tokenised target of the gold sentences, which was forced.")],
    system: Annotated[str, typer.Option(help="Name of the system.")],
    test: Annotated[str, typer.Option(help="Name of the gold corpus.")],
    output: Annotated[Path, typer.Option(help="The score file (JSON).")],
    attention: Annotated[
        Path | None, typer.Option(help="Attention of the forced decoding (.npz): entropy, sharpness.")
    ] = None,
    training_source: Annotated[Path | None, typer.Option(help="Leave out sentences that occur in this text.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 12345,
    samples: Annotated[int, typer.Option(min=2, help="Bootstrap samples.")] = SAMPLES,
) -> None:
    """Score one system's alignments."""
    sentences = read_lines(source)
    targets = read_parallel(target, len(sentences), source)
    lengths = [[len(line.split()) for line in lines] for lines in (sentences, targets)]
    truth, result = read_talp(gold, source_lengths=lengths[0], target_lengths=lengths[1]), read_json(forced)
    left_out = seen_lines(sentences, training_source) if training_source else set()
    kept = [i for i in range(len(truth)) if i not in left_out]
    if not kept:
        raise ValueError(f"{gold}: none of the {len(truth)} sentences is left to score; use others, unseen in training")
    alignment = {}
    for rule, links in result["links"].items():
        if len(links) != len(truth):
            raise ValueError(
                f"{forced}: {len(links)} sentences are aligned by the rule {rule}, but {gold} has {len(truth)}"
            )
        found = [[(link[0], link[1]) for link in links[i]] for i in kept]
        counts = link_counts(found, [truth[i][0] for i in kept], [truth[i][1] for i in kept])
        alignment[rule] = rates(counts, seed, samples)
    words = result.get("perplexity") and {key: result[key] for key in ("words", "nll")}
    write_json(
        output,
        {
            "system": system,
            "test": test,
            "lines": len(kept),
            "left_out_as_seen_in_training": len(left_out),
            "alignment": alignment,
            **(spread(attention, lengths[0]) if attention else {"entropy": None, "sharpness": None}),
            "perplexity": words and {"value": result["perplexity"], **words},
            "conventions": CONVENTIONS,
            "provenance": provenance([forced, gold, source, target, attention], seed),
        },
    )


if __name__ == "__main__":
    run(main)
