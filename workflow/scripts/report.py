"""The report of an experiment: one HTML file that needs nothing else, every exhibit ours beside the paper's."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from nmt.files import read_json, write_text
from workflow import experiment
from workflow.catalogue import load_catalogue
from workflow.charts import chart, duration, read_points, stations
from workflow.cli import labelled_path, run
from workflow.findings import abstract, differences, findings
from workflow.reporting import (
    benchmarks,
    by_rule,
    checksum_rows,
    coverage_rows,
    flatten,
    licence_rows,
    model_row,
    read_exhibit,
    rule_rows,
    signatures,
    text_rows,
    training_row,
    unknown_rows,
)

TEMPLATES = Path(__file__).resolve().parents[1] / "report"


def embedded(value: object) -> Markup:
    """JSON for a script element: compact, and without what could end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def by_label(options: list[str] | None) -> dict[str, Path]:
    """LABEL=PATH options."""
    return dict(labelled_path(text) for text in options or [])


def paper_differences(config: dict, papers: list[Path]) -> list[dict]:
    """What differs from each paper's own experiment, of the systems that are in both."""
    found = []
    for path in papers if config else []:
        paper = experiment.load_file(path)
        found.append({"title": paper["title"], "file": path.name} | differences(config, paper))
    return found


def corpora_rows(config: dict, datasets: Path | None) -> list[list]:
    """Licence and source of every corpus."""
    if not config or datasets is None:
        return []
    return licence_rows(
        list(dict.fromkeys(experiment.corpus_names(config))),
        load_catalogue(datasets),
        experiment.generated_names(config),
    )


def render(parts: dict) -> str:
    """The page."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    assets = {name: Markup((TEMPLATES / f"report.{name}").read_text(encoding="utf-8")) for name in ("css", "js")}
    return environment.get_template("report.html.j2").render(parts | assets)


Labelled = Annotated[list[str] | None, typer.Option(help="LABEL=PATH of a JSON file; once for each.")]


def main(
    title: Annotated[str, typer.Option(help="Title of the report.")],
    output: Annotated[Path, typer.Option(help="The HTML file.")],
    summary: Annotated[str, typer.Option(help="What was run, in a sentence.")] = "",
    exhibit: Annotated[
        list[Path] | None, typer.Option(help="JSON of a table, figure or samples, in the order of the report.")
    ] = None,
    score: Annotated[list[Path] | None, typer.Option(help="Score file: unknown words, conventions.")] = None,
    curve: Annotated[list[str] | None, typer.Option(help="LABEL=PATH of a curve.jsonl.")] = None,
    provenance: Labelled = None,
    text: Labelled = None,
    coverage: Annotated[Path | None, typer.Option(help="What the vocabularies cover.")] = None,
    explorer: Annotated[list[Path] | None, typer.Option(help="JSON of explorer.py; once a text.")] = None,
    benchmark: Annotated[Path | None, typer.Option(help="Folder of snakemake's benchmarks.")] = None,
    datasets: Annotated[Path | None, typer.Option(help="The pinned corpora, for their licences.")] = None,
    paper: Annotated[list[Path] | None, typer.Option(help="Configuration of a paper's own experiment.")] = None,
    config: Annotated[Path | None, typer.Option(help="The resolved experiment (YAML).")] = None,
    commit: Annotated[str, typer.Option(help="The commit the report was built from.")] = "",
) -> None:
    """Write the report of an experiment, of whatever parts are there."""
    scores = [read_json(path) for path in score or []]
    conventions: dict[str, str] = {}
    for item in scores:
        conventions |= item.get("conventions", {})
    exhibits = [read_exhibit(path) for path in exhibit or []]
    curves = {label: read_points(path) for label, path in by_label(curve).items()}
    models = {label: read_json(path) for label, path in by_label(provenance).items()}
    texts = {label: read_json(path) for label, path in by_label(text).items()}
    jobs = benchmarks(benchmark)
    rules = by_rule(jobs)
    settings_text = config.read_text(encoding="utf-8") if config else ""
    settings = yaml.safe_load(settings_text) or {}
    sentences = abstract(settings, texts.get(experiment.TRAIN), models, duration)
    note, summary = (text.rstrip(". ") for text in (settings.get("note", ""), summary))
    if summary and summary != note:
        sentences[: bool(note) and summary.startswith(note)] = [f"{summary}."]
    parts = {
        "title": title,
        "abstract": sentences,
        "differences": paper_differences(settings, paper or []),
        "findings": findings([item for item in exhibits if item["kind"] == "table" and "cells" in item]),
        "exhibits": exhibits,
        "explorer": embedded([read_json(path) for path in explorer]) if explorer else "",
        "chart": chart(curves),
        "unknown": unknown_rows(scores),
        "stations": stations(rules) if rules else None,
        "trainings": [
            training_row(label, points, models.get(label, {}), jobs.get(f"train/{label}"))
            for label, points in curves.items()
        ],
        "rules": rule_rows(rules),
        "texts": text_rows(texts),
        "checksums": checksum_rows(texts),
        "coverage": coverage_rows(read_json(coverage)) if coverage else [],
        "licences": corpora_rows(settings, datasets),
        "conventions": conventions,
        "signatures": signatures(scores),
        "built": {"commit": commit, "built": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"},
        "models": [model_row(label, model) for label, model in models.items()],
        "provenance": {label: flatten(model) for label, model in models.items()},
        "config": settings_text,
    }
    write_text(output, render(parts))


if __name__ == "__main__":
    run(main)
