"""Collect what tables, figures and report are made from into a set small enough to be committed.

The set has the layout of the results. Of texts, it holds the lines that samples and alignment figures show; other lines
are empty, so that line i stays line i.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer
import yaml

from nmt.attention_file import read_attention, write_attention
from nmt.files import atomic_path, read_json, read_lines, write_json, write_lines, write_text
from workflow import experiment
from workflow.cli import run

LIMIT = 1_500_000  # bytes
LOCAL = ("mirror", "data_root")  # keys of the configuration that say where files lie on one machine


def whole_files(results: Path) -> list[Path]:
    """Scores, learning curves, and what says where they come from."""
    patterns = ("coverage/coverage.json", "text/*.json", "scores/**/*.json")
    patterns += ("models/*/curve.jsonl", "models/*/provenance.json")
    return sorted(path for pattern in patterns for path in results.glob(pattern))


def shown_samples(results: Path, config: dict) -> dict[Path, set[int]]:
    """The texts behind the tables of samples, and which of their lines (from 0) are shown."""
    wanted: dict[Path, set[int]] = {}
    for name, table in config["tables"].items():
        shown = results / "tables" / f"{name}.json"
        if table["kind"] != "samples" or not shown.exists():
            continue
        test = experiment.role_corpus(table["test"], config)
        lines = {sample["line"] - 1 for sample in read_json(shown)["samples"]}
        texts = [results / "text" / f"{test}.{language}" for language in table["direction"].split("-")]
        for system in experiment.table_systems(table):
            folder = results / "translations" / system
            texts += filter(Path.exists, [folder / f"{test}.txt", folder / f"{test}.replaced.txt"])
        for path in texts:
            wanted.setdefault(path, set()).update(lines)
    return wanted


def shown_alignments(results: Path, config: dict) -> dict[Path, set[int]]:
    """The texts, links and attention behind the figures of alignments, and which of their lines are shown."""
    wanted: dict[Path, set[int]] = {}
    for name, figure in config["figures"].items():
        shown = results / "figures" / f"{name}.json"
        if figure["kind"] != "alignments" or not shown.exists():
            continue
        test = experiment.role_corpus(figure["test"], config)
        texts = [results / "text" / f"{test}.{language}" for language in config["languages"]]
        links = [results / "raw" / f"{test}{pair}.talp" for pair in ("", f".{'-'.join(config['languages'])}")]
        kind = "forced" if figure["test"] == experiment.GOLD else "translations"
        names = (f"{test}.attention.npz", f"{test}.txt")  # the second of translations alone
        matrices = [results / kind / system / name for system in figure["systems"] for name in names]
        for path in (*texts, *filter(Path.exists, links + matrices)):
            wanted.setdefault(path, set()).update(line - 1 for line in read_json(shown)["lines"])
    return wanted


def write_thinned(source: Path, output: Path, lines: Collection[int]) -> None:
    """Some lines (from 0) of a text, or matrices of an attention file; the others become empty."""
    if source.suffix == ".npz":
        write_attention(output, [m if i in lines else None for i, m in enumerate(read_attention(source))])
    else:
        write_lines(output, [line if i in lines else "" for i, line in enumerate(read_lines(source))])


def remove_set(folder: Path) -> None:
    """Remove the files of an earlier set, and only those."""
    record = folder / "provenance.json"
    for name in [*(read_json(record)["sha256"] if record.exists() else []), record.name]:
        (folder / name).unlink(missing_ok=True)


def main(
    results: Annotated[Path, typer.Option(help="Results of an experiment, with tables and figures.")],
    output: Annotated[Path, typer.Option(help="Where to put the set, e.g. results/reference/NAME.")],
    limit: Annotated[int, typer.Option(help="Most bytes of the whole set.")] = LIMIT,
) -> None:
    """Collect what tables, figures and report are made from, and nothing else."""
    config = yaml.safe_load((results / "config.yaml").read_text(encoding="utf-8"))
    thinned = shown_samples(results, config)
    for path, lines in shown_alignments(results, config).items():
        thinned.setdefault(path, set()).update(lines)
    whole = whole_files(results)
    remove_set(output)
    elsewhere = {key: value for key, value in config.items() if key not in LOCAL}
    write_text(output / "config.yaml", yaml.safe_dump(elsewhere, sort_keys=False, allow_unicode=True))
    for path in whole:
        with atomic_path(output / path.relative_to(results)) as temporary:
            shutil.copyfile(path, temporary)
    for path, lines in thinned.items():
        write_thinned(path, output / path.relative_to(results), lines)
    files = sorted(path for path in output.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in files)
    if size > limit:
        largest = max(files, key=lambda path: path.stat().st_size)
        raise ValueError(f"{output}: found {size} bytes, expected at most {limit}; the largest is {largest}")
    systems = {path.parent.name: read_json(path) for path in results.glob("models/*/provenance.json")}
    record = {
        "experiment": config["name"],
        "systems": {
            name: {key: system[key] for key in ("git", "device", "versions", "seed") if key in system}
            for name, system in sorted(systems.items())
        },
        "sha256": {str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
    }
    write_json(output / "provenance.json", record)


if __name__ == "__main__":
    run(main)
