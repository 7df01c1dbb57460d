"""The report of an experiment: one HTML file that needs nothing else, every exhibit ours beside the paper's."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from nmt.files import read_json, read_lines, write_text
from workflow.cli import labelled_path, run

TEMPLATES = Path(__file__).resolve().parents[1] / "report"
INK, PAPER = "#1b1b1f", "#fefefe"  # of workflow/plotting.py, which is not imported: it would load matplotlib


def inline_svg(path: Path, name: str) -> Markup:
    """A figure for the page: in its text colour, without background, ids made unique by the figure's name."""
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :].replace(INK, "currentColor").replace(PAPER, "none")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    return Markup(re.sub(r"url\(#", f"url(#{name}-", text))


def cell_class(field: str, better: str) -> Callable[[str], str]:
    """How a cell is shaded: ours bold, a difference by whether it is for the better."""

    def shade(text: str) -> str:
        if field == "difference" and better and text[:1] in "+−" and text.strip("+−0."):
            return "better" if (text[0] == "+") == (better == "high") else "worse"
        return "ours" if field == "ours" else ""

    return shade


def read_exhibit(path: Path) -> dict:
    """A table, figure or set of samples by its JSON; a figure's .svg lies beside it."""
    exhibit = read_json(path)
    exhibit["name"] = path.stem
    if exhibit.get("kind") == "figure":
        exhibit["svg"] = inline_svg(path.with_suffix(".svg"), path.stem)
    elif exhibit.get("kind") == "table":
        metrics = [metric for metric, _ in exhibit["header"]]
        exhibit["groups"] = [(metric, len(list(group))) for metric, group in itertools.groupby(metrics)]
        exhibit["classes"] = [
            cell_class(field, exhibit["better"].get(metric, "")) for metric, field in exhibit["header"]
        ]
    elif exhibit.get("kind") != "samples":
        raise ValueError(
            f"{path}: found kind {exhibit.get('kind')!r}, expected table, figure or samples; build it again"
        )
    return exhibit


def flatten(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Nested JSON as (dotted name, value) rows; a list of plain values is one row."""
    if isinstance(value, dict):
        return [row for key, inner in value.items() for row in flatten(inner, f"{prefix}.{key}".lstrip("."))]
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return [row for number, inner in enumerate(value, 1) for row in flatten(inner, f"{prefix}.{number}")]
    if isinstance(value, list):
        return [(prefix, ", ".join(map(str, value)))]
    return [(prefix, f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value)]


def named_rows(options: list[str]) -> list[dict]:
    """LABEL=PATH options of JSON files, each flattened."""
    pairs = [labelled_path(text) for text in options]
    return [{"name": label, "rows": flatten(read_json(path))} for label, path in pairs]


def unknown_rows(scores: list[dict]) -> list[list]:
    """What became of unknown words: a row for each score file and kind of replacement."""
    rows = []
    for score in scores:
        unknown = score.get("unknown") or {"kinds": {}}
        for kind, counts in unknown["kinds"].items():
            share = [f"{counts[k]:,} ({counts[k] / max(counts['count'], 1):.0%})" for k in ("right", "wrong")]
            rows.append(
                [score["system"], score["test"], f"{unknown['in_output']:,}", kind, f"{counts['count']:,}", *share]
            )
    return rows


def cost_row(label: str, path: Path) -> list:
    """Length, result and speed of one training, from its learning curve."""
    points = [json.loads(line) for line in read_lines(path)]
    if not points:
        raise ValueError(f"{path}: found no points, expected a learning curve; train again")

    def known(key: str) -> list[float]:
        return [point[key] for point in points if point.get(key) is not None]

    return [
        label,
        f"{points[-1]['update']:,}",
        f"{points[-1]['epoch']:g}",
        f"{min(known('dev_perplexity')):.2f}" if known("dev_perplexity") else "–",
        f"{max(known('seconds')) / 60:.1f}" if known("seconds") else "–",
        f"{median(known('words_per_second')):,.0f}" if known("words_per_second") else "–",
    ]


def signatures(scores: list[dict]) -> dict[str, str]:
    """The sacreBLEU signature of each metric."""
    raw = [score["raw"] for score in scores if score.get("raw")]
    return {name: value["signature"] for kind in raw for name, value in kind.items() if "signature" in value}


Paths = Annotated[list[str] | None, typer.Option(help="LABEL=PATH of a JSON file; once for each.")]


def main(
    title: Annotated[str, typer.Option(help="Title of the report.")],
    output: Annotated[Path, typer.Option(help="The HTML file.")],
    summary: Annotated[str, typer.Option(help="What was run and how it differs from the paper.")] = "",
    exhibit: Annotated[
        list[Path] | None, typer.Option(help="JSON of a table, figure or samples, in the order of the report.")
    ] = None,
    score: Annotated[list[Path] | None, typer.Option(help="Score file: unknown words, conventions.")] = None,
    curve: Annotated[list[str] | None, typer.Option(help="LABEL=PATH of a curve.jsonl: training cost.")] = None,
    data: Paths = None,
    provenance: Paths = None,
    config: Annotated[Path | None, typer.Option(help="The resolved experiment (YAML).")] = None,
    commit: Annotated[str, typer.Option(help="The commit the report was built from.")] = "",
) -> None:
    """Write the report of an experiment, of whatever parts are there."""
    scores = [read_json(path) for path in score or []]
    conventions: dict[str, str] = {}
    for item in scores:
        conventions |= item.get("conventions", {})
    built = {"commit": commit, "built": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"}
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    html = environment.get_template("report.html.j2").render(
        title=title,
        summary=summary,
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        exhibits=[read_exhibit(path) for path in exhibit or []],
        unknown=unknown_rows(scores),
        cost=[cost_row(*labelled_path(text)) for text in curve or []],
        data=named_rows(data or []),
        conventions=conventions,
        signatures=signatures(scores),
        built={name: value for name, value in built.items() if value},
        provenance=named_rows(provenance or []),
        config=config.read_text(encoding="utf-8") if config else "",
    )
    write_text(output, html)


if __name__ == "__main__":
    run(main)
