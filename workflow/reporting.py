"""What the report reads: exhibits, texts, costs and benchmarks, made ready for its templates."""

from __future__ import annotations

import csv
import itertools
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from markupsafe import Markup

from nmt.files import read_json
from workflow.charts import duration

INK, PAPER = "#1b1b1f", "#fefefe"  # of workflow/plotting.py, which is not imported: it would load matplotlib
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]  # also of there
NOTHING = "–"


def inline_svg(path: Path, name: str) -> Markup:
    """A figure for the page: in its colours, which change with light and dark; ids made unique by the figure's name."""
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :].replace(INK, "currentColor").replace(PAPER, "none")
    for number, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--c{number})")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    return Markup(re.sub(r"url\(#", f"url(#{name}-", text))


def cell_class(field: str, better: str) -> Callable[[str], str]:
    """How a cell is shaded: ours bold, a difference by whether it is for the better."""

    def shade(text: str) -> str:
        if field == "difference" and better and text[:1] in "+−" and text.strip("+−0."):
            return "better" if (text[0] == "+") == (better == "high") else "worse"
        if field != "ours":
            return ""
        return "ours" if text[:1].isdecimal() or text[:1] == "−" else "absent"

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
        exhibit["shaded"] = any(field == "difference" for _, field in exhibit["header"])
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


def signatures(scores: list[dict]) -> dict[str, str]:
    """The sacreBLEU signature of each metric."""
    raw = [score["raw"] for score in scores if score.get("raw")]
    return {name: value["signature"] for kind in raw for name, value in kind.items() if "signature" in value}


def text_rows(texts: dict[str, dict]) -> list[list]:
    """Sentences, words and what was filtered of each text."""
    rows = []
    for name, text in texts.items():
        removed = [
            f"{count:,} {reason.replace('_', ' ')}" for reason, count in text.get("removed", {}).items() if count
        ]
        words = ", ".join(f"{count:,} {language}" for language, count in text.get("words", {}).items())
        lines = [f"{text[key]:,}" if key in text else NOTHING for key in ("lines_in", "lines_out")]
        rows.append([name, *lines, words or NOTHING, "; ".join(removed) or "nothing"])
    return rows


def checksum_rows(texts: dict[str, dict]) -> list[list]:
    """The SHA-256 of each text as it came and as it was prepared."""
    stages = (("in", "as it came"), ("out", "prepared"))
    return [
        [name, item["language"], stage, Path(item["path"]).name, item["sha256"]]
        for name, text in texts.items()
        for key, stage in stages
        for item in text.get(key, [])
    ]


def coverage_rows(coverage: dict[str, dict]) -> list[list]:
    """For each text and language: words, different words, and how many of either the vocabulary lacks."""
    return [
        [
            name,
            language,
            f"{found['tokens']:,}",
            f"{found['types']:,}",
            f"{found['known_types']:,}",
            f"{found['unknown_share']:.2%}",
        ]
        for name, languages in coverage.items()
        for language, found in languages.items()
    ]


def licence_rows(names: list[str], catalogue: dict[str, dict], generated: list[str]) -> list[list]:
    """Licence and source of each corpus."""
    rows = []
    for name in names:
        entry = catalogue.get(name, {})
        files = entry.get("files", {}).values()
        source = entry.get("url") or entry.get("page") or ", ".join(file["url"] for file in files if "url" in file)
        if name in generated:
            rows.append([name, "made by this project's generator, under its licence", "generated"])
        else:
            rows.append([name, entry.get("licence", "your own text; its licence is yours to know"), source or NOTHING])
    return rows


def training_row(label: str, points: list[dict], model: dict, job: dict | None) -> list:
    """Size, length, result, speed and memory of one training, from learning curve, provenance and benchmark."""

    def known(key: str) -> list[float]:
        return [point[key] for point in points if point.get(key) is not None]

    seconds = model.get("training_seconds") or max(known("seconds"), default=0)
    return [
        label,
        f"{model['parameters']:,}" if "parameters" in model else NOTHING,
        f"{points[-1]['update']:,}",
        f"{points[-1]['epoch']:g}",
        f"{min(known('dev_perplexity')):.2f}" if known("dev_perplexity") else NOTHING,
        f"{seconds / 3600:.3f}" if seconds else NOTHING,
        f"{median(known('words_per_second')):,.0f}" if known("words_per_second") else NOTHING,
        f"{job['memory']:,.0f}" if job and job["memory"] else NOTHING,
        model.get("device", NOTHING),
    ]


def model_row(label: str, model: dict) -> list:
    """Where the weights of a system come from."""
    git = model.get("git") or {}
    commit = (git.get("commit") or NOTHING)[:12] + (" + changes" if git.get("changed") else "")
    versions = ", ".join(f"{name} {version}" for name, version in model.get("versions", {}).items() if version)
    wall = model.get("wall_seconds")
    return [label, commit, model.get("seed", NOTHING), model.get("device", NOTHING), versions or NOTHING,
            duration(wall) if wall else NOTHING]  # fmt: skip


def read_benchmark(path: Path) -> dict | None:
    """Seconds and peak memory (MB) of a job by snakemake's benchmark; None where it measured nothing."""
    with path.open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file, delimiter="\t"), None)

    def number(key: str) -> float:
        try:
            return float(row[key]) if row else 0.0
        except (KeyError, TypeError, ValueError):
            return 0.0

    return {"seconds": number("s"), "memory": number("max_rss")} if row else None


def benchmarks(folder: Path | None) -> dict[str, dict]:
    """Every job's benchmark by its name (rule/wildcards), such as train/base."""
    if folder is None or not folder.is_dir():
        return {}
    found = {str(p.relative_to(folder).with_suffix("")): read_benchmark(p) for p in sorted(folder.rglob("*.tsv"))}
    return {name: job for name, job in found.items() if job is not None}


def by_rule(jobs: dict[str, dict]) -> dict[str, dict]:
    """How many jobs of each rule ran, their time together, the longest, and the most memory."""
    rules: dict[str, list[dict]] = {}
    for name, job in jobs.items():
        rules.setdefault(re.split(r"[/.]", name)[0], []).append(job)
    return {
        rule: {
            "count": len(found),
            "seconds": sum(job["seconds"] for job in found),
            "longest": max(job["seconds"] for job in found),
            "memory": max(job["memory"] for job in found),
        }
        for rule, found in rules.items()
    }


def rule_rows(rules: dict[str, dict]) -> list[list]:
    """The same for readers, the costliest rule first."""
    ordered = sorted(rules.items(), key=lambda item: -item[1]["seconds"])
    return [
        [
            rule,
            f"{job['count']:,}",
            duration(job["seconds"]),
            duration(job["longest"]),
            f"{job['memory']:,.0f}" if job["memory"] else NOTHING,
        ]
        for rule, job in ordered
    ]


def plain_table(path: Path, width: int = 100) -> str:
    """A table by its JSON as lines for a terminal: what was measured, the paper's and ours; labels cut to fit."""
    table = read_json(path)
    chosen = [i for i, (_, field) in enumerate(table["header"]) if field in ("System", "paper", "ours", "95% interval")]
    metrics, fields = ([table["header"][i][part] for i in chosen] for part in (0, 1))
    metrics = [name if name != before else "" for name, before in zip(metrics, ["", *metrics], strict=False)]
    rows = [[row[i] for i in chosen] for row, ours in zip(table["rows"], table["measured"], strict=True) if ours]
    lines = [metrics, fields, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(chosen))]
    widths[0] = max(12, min(widths[0], width - sum(widths[1:]) - 2 * len(widths[1:])))

    def fit(text: str) -> str:  # labels differ in their ends
        return text if len(text) <= widths[0] else "…" + text[len(text) - widths[0] + 1 :]

    body = [
        "  ".join([f"{fit(label):<{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(cells, widths[1:], strict=True))])
        for label, *cells in lines
    ]
    return "\n".join([table["title"], "", *body[:2], "-" * len(body[0]), *body[2:]])


def ending(results: Path) -> str:
    """What is said when snakemake is done: Table 1, or the first there is, and where the report lies."""
    page, folder = results / "report.html", results / "tables"
    tables = sorted(folder.glob("*table1.json")) or sorted(folder.glob("*.json"))[:1]
    width = shutil.get_terminal_size((100, 24)).columns
    shown = [plain_table(path, width) for path in tables if read_json(path).get("kind") == "table"]
    return "\n\n".join([*shown, f"The report: {page}" if page.exists() else f"The results: {results}"])
