"""Paired bootstrap of each row of a table against the nearest measured row above it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from nmt.files import read_lines, write_json
from workflow.cli import run
from workflow.scoring import (
    SAMPLES,
    Surface,
    bleu_texts,
    paired_bootstrap,
    provenance,
    read_parallel,
    reference_texts,
)

METRICS = ("bleu_tokenized", "bleu_nist")


def hypothesis_path(translations: Path, row: dict, column: str, test: str) -> Path:
    """The output that a row's column is about: after replacement if the row or the column says so."""
    replaced = row.get("replace", False) or column.endswith("_unk")
    return translations / row["system"] / f"{test}{'.replaced' if replaced else ''}.txt"


def measured_pairs(rows: list[dict], test: str) -> list[tuple[int, int]]:
    """(row, row above) for rows of this test set with a translating system; rows without are stepped over."""
    measured = [i for i, row in enumerate(rows) if row.get("system") and row.get("test", test) == test]
    return list(zip(measured[1:], measured, strict=False))


def main(
    spec: Annotated[str, typer.Option(help="The table (JSON): name, test, direction, columns, rows.")],
    translations: Annotated[Path, typer.Option(help="Folder of {system}/{test}.txt and .replaced.txt.")],
    reference_text: Annotated[Path, typer.Option(help="Tokenised reference.")],
    reference_raw: Annotated[Path, typer.Option(help="Reference as it came.")],
    output: Annotated[Path, typer.Option(help="The comparisons (JSON).")],
    escaped: Annotated[bool, typer.Option(help="The tokenised text holds Moses' XML entities.")] = False,
    seed: Annotated[int, typer.Option(min=1, help="Seed of the bootstrap.")] = 12345,
    samples: Annotated[int, typer.Option(min=2, help="Bootstrap samples.")] = SAMPLES,
) -> None:
    """Compare consecutive rows of a table by sacreBLEU's paired bootstrap."""
    table = json.loads(spec)
    test, rows = table["test"], table["rows"]
    references = read_lines(reference_text)
    raw_references = read_parallel(reference_raw, len(references), reference_text)
    surface = Surface(table["direction"].partition("-")[2], escaped)
    comparisons, read = [], set()
    for column in (c for c in table["columns"] if c.removesuffix("_unk") in METRICS):
        metric = column.removesuffix("_unk")
        reference = reference_texts(metric, references, raw_references, surface)
        for row, above in measured_pairs(rows, test):
            paths = [hypothesis_path(translations, rows[i], column, test) for i in (above, row)]
            read.update(paths)
            texts = [bleu_texts(metric, read_parallel(p, len(references), reference_text), surface) for p in paths]
            result = paired_bootstrap(metric, *texts, reference, seed, samples)
            names = {"system": rows[row]["system"], "baseline": rows[above]["system"]}
            comparisons.append({"row": row, "above": above, "column": column, **names, **result})
    write_json(
        output,
        {
            "table": table["name"],
            "test": test,
            "convention": f"Two-sided paired bootstrap over sentences (sacreBLEU, {samples} samples): p is how often a "
            "difference at least as large would arise if the two rows were equally good.",
            "comparisons": comparisons,
            "provenance": provenance([reference_text, reference_raw], seed)
            | {"translations": sorted(f"{path.parent.name}/{path.name}" for path in read)},
        },
    )


if __name__ == "__main__":
    run(main)
