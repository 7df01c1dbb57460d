"""Of a pool of sentence pairs, those most like a domain (Axelrod et al. 2011, after Moore and Lewis 2010).

A pair ranks by H_domain(source) - H_pool(source) + H_domain(target) - H_pool(target), H being the cross-entropy a word
under an n-gram model of the domain, or of a sample of the pool with as many sentences. The lowest pairs are taken until
the words of the last language, counted on the prepared text, would exceed the number asked for; they keep their order.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from nmt.files import iterate_lines, open_atomic, write_json
from nmt.vocab import split_words
from workflow.cli import labelled_path, run
from workflow.language_model import KneserNey, Words
from workflow.scripts.prepare import ordered_map

LINES_A_CHUNK = 10_000
Pair = tuple[str, ...]  # a line in each language
Model = tuple[Words, KneserNey, KneserNey]  # of a language: the words, their model in the domain and in the pool


class Chunk:
    """What a process does: rank pairs; the models are set once in each process by `Chunk.start`."""

    models: tuple[Model, ...] = ()

    @classmethod
    def start(cls, models: tuple[Model, ...]) -> None:
        """Set up a process."""
        cls.models = models

    @classmethod
    def rank(cls, pairs: list[Pair]) -> tuple[np.ndarray, np.ndarray]:
        """The difference of cross-entropies of each pair, and its words in the last language."""
        sentences = [[split_words(line) for line in lines] for lines in zip(*pairs, strict=True)]
        rank = np.zeros(len(pairs))
        for side, (words, domain, pool) in zip(sentences, cls.models, strict=True):
            encoded = words.encode(side, domain.order)
            rank += domain.cross_entropies(*encoded) - pool.cross_entropies(*encoded)
        return rank.astype(np.float32), np.array([len(words) for words in sentences[-1]], dtype=np.int32)


def read_pairs(paths: list[Path]) -> Iterator[Pair]:
    """The lines of a text in its languages."""
    return zip(*map(iterate_lines, paths), strict=True)


def sample(paths: list[Path], count: int, seed: int) -> list[Pair]:
    """So many different pairs, drawn at random, in their order; all if there are no more."""
    lines = sum(1 for _ in iterate_lines(paths[0]))
    drawn = set(np.random.default_rng(seed).choice(lines, min(count, lines), replace=False).tolist())
    return [pair for number, pair in enumerate(read_pairs(paths)) if number in drawn]


def train_models(domain: list[Pair], pool: list[Pair], order: int) -> tuple[Model, ...]:
    """The models of each language."""
    models = []
    for texts in zip(zip(*domain, strict=True), zip(*pool, strict=True), strict=True):
        sides = [[split_words(line) for line in lines] for lines in texts]
        words = Words(sides[0])
        inside, outside = (KneserNey(*words.encode(side, order), len(words), order) for side in sides)
        models.append((words, inside, outside))
    return tuple(models)


def choose(rank: np.ndarray, words: np.ndarray, limit: int) -> np.ndarray:
    """Which pairs are taken, the lowest of rank first, the first of equals: (pairs,) bool."""
    order = np.argsort(rank, kind="stable")
    taken = np.zeros(len(rank), dtype=bool)
    taken[order[: np.searchsorted(np.cumsum(words[order], dtype=np.int64), limit, side="right")]] = True
    return taken


def write_taken(path: Path, taken: np.ndarray, output: Path) -> int:
    """Write the lines of a text that are taken; how many words they have."""
    words = 0
    with open_atomic(output) as file:
        for line, kept in zip(iterate_lines(path), taken, strict=True):
            if kept:
                file.write(line + "\n")
                words += len(split_words(line))
    return words


def main(
    pool: Annotated[list[str], typer.Option(help="LANGUAGE=PATH of the prepared text to choose from; once a language")],
    domain: Annotated[list[str], typer.Option(help="LANGUAGE=PATH of prepared text of the domain; repeat")],
    output: Annotated[list[str], typer.Option(help="LANGUAGE=PATH for what is chosen")],
    report: Annotated[Path, typer.Option(help="counts, JSON")],
    words: Annotated[int, typer.Option(min=1, help="words of the last language to keep")],
    order: Annotated[int, typer.Option(min=1, max=3, help="of the n-grams")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="draws the sample of the pool")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="processes")] = os.cpu_count() or 1,
) -> None:
    """Choose the pairs of a text that are most like a domain."""
    pools, outputs = dict(map(labelled_path, pool)), dict(map(labelled_path, output))
    domains: dict[str, list[Path]] = {language: [] for language in pools}
    for language, path in map(labelled_path, domain):
        domains.setdefault(language, []).append(path)
    if not set(pools) == set(outputs) == {language for language, paths in domains.items() if paths}:
        raise ValueError("expected --pool, --domain and --output for the same languages")
    paths = list(pools.values())
    inside = [pair for parts in zip(*domains.values(), strict=True) for pair in read_pairs(list(parts))]
    models = train_models(inside, sample(paths, len(inside), seed), order)
    pairs = read_pairs(paths)
    chunks = iter(lambda: list(itertools.islice(pairs, LINES_A_CHUNK)), [])
    ranked = list(ordered_map(Chunk.rank, chunks, threads, Chunk.start, (models,)))
    if not ranked:
        raise ValueError(f"{paths[0]}: expected sentences to choose from, found none")
    rank, counts = (np.concatenate(parts) for parts in zip(*ranked, strict=True))
    taken = choose(rank, counts, words)
    words_out = {language: write_taken(path, taken, outputs[language]) for language, path in pools.items()}
    found = {
        "lines_in": len(rank),
        "lines_out": int(taken.sum()),
        "removed": {"unlike_the_domain": int((~taken).sum())},
        "words": words_out,
        "words_in": int(counts.sum(dtype=np.int64)),
        "words_out": int(counts[taken].sum(dtype=np.int64)),
        "counted_language": list(pools)[-1],
        "largest_rank": float(rank[taken].max()) if taken.any() else None,
        "domain_lines": len(inside),
        "order": order,
        "seed": seed,
    }
    if found["words_in"] <= words:
        print(f"warning: {words} words asked for, {found['words_in']} found; all are taken")
    write_json(report, found)


if __name__ == "__main__":
    run(main)
