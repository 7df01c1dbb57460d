"""Pack what training and translating need into one file to carry to a machine that has a GPU and no snakemake.

The archive has the layout of the results; word indices go in the smallest integers, and lengths in place of offsets.
workflow/scripts/run_bundle.py unpacks and runs it; see docs/reduced.md.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from nmt.corpus import ids_path, offsets_path
from nmt.files import atomic_path
from workflow import experiment
from workflow.bundling import checksum, compact
from workflow.cli import run

LIMIT = 60 * 2**20  # bytes


def measurements(config: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """The texts that each system and ensemble translates, and those that it reads by force."""
    found: dict[str, dict[str, set[str]]] = {name: {"translate": set(), "force": set()} for name in config["systems"]}
    found |= {name: {"translate": set(), "force": set()} for name in config["ensembles"]}
    exhibits = [(experiment.table_systems(table), table) for table in config["tables"].values()]
    exhibits += [(figure["systems"], figure) for figure in config["figures"].values()]
    for systems, exhibit in exhibits:
        if exhibit.get("kind") == "learning_curves":
            continue
        text = experiment.role_corpus(exhibit["test"], config)
        for system in systems:
            found[system]["force"].add(text)
            if exhibit["test"] != experiment.GOLD:
                found[system]["translate"].add(text)
    return {name: {verb: sorted(texts) for verb, texts in verbs.items()} for name, verbs in found.items()}


def attention_shown(config: dict[str, Any]) -> dict[str, list[str]]:
    """The texts whose translations each system's attention is shown of; that of gold sentences is always kept."""
    found: dict[str, set[str]] = {}
    for figure in config["figures"].values():
        if figure["kind"] == "alignments" and figure["test"] != experiment.GOLD:
            for system in figure["systems"]:
                found.setdefault(system, set()).add(experiment.role_corpus(figure["test"], config))
    return {system: sorted(texts) for system, texts in found.items()}


def main(
    results: Annotated[Path, typer.Option(help="Results in which text, vocabularies and binary text are prepared.")],
    output: Annotated[Path, typer.Option(help="The archive (.zip).")],
    limit: Annotated[int, typer.Option(help="Most bytes of the archive.")] = LIMIT,
) -> None:
    """Pack prepared data and the systems' descriptions."""
    config = yaml.safe_load((results / "config.yaml").read_text(encoding="utf-8"))
    wanted, curve = measurements(config), experiment.role_corpus("main", config)
    texts = sorted({text for verbs in wanted.values() for each in verbs.values() for text in each})
    plain = [results / "systems" / f"{name}.json" for name in config["systems"]]
    for language in config["languages"]:
        plain.append(results / "vocabulary" / f"{language}.txt")
        plain += [results / "text" / f"{text}.{language}" for text in texts]
    prefixes = [
        results / "binary" / f"{text}.{language}"
        for text in dict.fromkeys((experiment.TRAIN, experiment.DEV, curve))
        for language in config["languages"]
    ]
    manifest = {
        "name": config["name"],
        "curve": curve,
        "directions": {name: experiment.translator(name, config)["direction"] for name in wanted},
        "decoding": {name: experiment.translator(name, config)["decoding"] for name in wanted},
        "ensembles": {
            name: {key: each[key] for key in ("members", "average")} for name, each in config["ensembles"].items()
        },
        "measurements": wanted,
        "attention": attention_shown(config),
        "binary": {
            str(path.relative_to(results)): checksum(path)
            for prefix in prefixes
            for path in (ids_path(prefix), offsets_path(prefix))
        },
    }
    with (
        atomic_path(output) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as archive,
    ):
        archive.writestr("bundle.json", json.dumps(manifest, indent=2))
        for path in plain:
            archive.write(path, path.relative_to(results))
        for prefix in prefixes:
            for end, content in compact(prefix).items():
                archive.writestr(f"{prefix.relative_to(results)}.{end}", content)
    if output.stat().st_size > limit:
        raise ValueError(f"{output}: found {output.stat().st_size} bytes, expected at most {limit}; use less text")


if __name__ == "__main__":
    run(main)
