"""One table of a paper: its numbers beside ours, as CSV (for machines), Markdown, LaTeX and JSON (for the report)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from nmt.files import atomic_path, read_json, write_json, write_text
from workflow.cli import run
from workflow.tables import COLUMNS, Column, latex_escape, measured, show

UNLIKE = (
    "The numbers are not like the paper's in kind (other data, other size): compare the order of the rows, not values."
)


def read_scores(folder: Path, row: dict, test: str) -> dict | None:
    """The score file of a row; None if the row has no system or was not measured.

    Its key `no_unknown` holds the scores of the sentences without unknown words, `training` what the model's own
    folder, beside that of the scores, says of its training.
    """
    name, test = row.get("system", ""), row.get("test", test)
    parts = {
        "no_unknown": folder / name / f"{test}.no-unk.json",
        "training": folder.parent / "models" / name / "provenance.json",
    }
    found = {key: read_json(path) for key, path in parts.items() if name and path.exists()}
    path = folder / name / f"{test}.json"
    return (read_json(path) if name and path.exists() else {}) | found or None


def reported_value(reported: pd.DataFrame, table: dict, row: dict, column: Column) -> str | None:
    """What the paper prints for this cell (a string: one cell says ">7.0"); None if it prints nothing."""
    if "paper" not in table or "paper_row" not in row:
        return None
    paper = table["paper"]
    found = reported.query(
        "paper == @name and table == @number and row == @line and metric == @metric",
        local_dict={
            "name": paper["paper"],
            "number": str(row.get("paper_table", paper["table"])),
            "line": str(row["paper_row"]),
            "metric": column.reported,
        },
    )
    return None if found.empty else str(found["value"].iloc[0])


def build_frame(table: dict, scores: Path, comparisons: dict, reported: pd.DataFrame) -> pd.DataFrame:
    """One line a row of the table: who it is, then {metric}_{paper, ours, difference, low, high, p, signature}."""
    p_values = {(c["row"], c["column"]): c["p"] for c in comparisons.get("comparisons", [])}
    records: list[dict[str, Any]] = []
    for index, row in enumerate(table["rows"]):
        score = read_scores(scores, row, table["test"])
        record: dict[str, Any] = {
            "label": row["label"],
            "paper_row": row.get("paper_row"),
            "system": row.get("system"),
            "test": row.get("test", table["test"]),
            "replaced": row.get("replace", False),
        }
        for name in table["columns"]:
            paper = reported_value(reported, table, row, COLUMNS[name])
            cell = measured(score, name, row.get("replace", False)) if score else {}
            number = pd.to_numeric(paper, errors="coerce") if paper else float("nan")
            ours = cell.get("value", float("nan"))
            low, high = cell.get("interval") or (float("nan"), float("nan"))
            fields = {
                "paper": paper,
                "ours": ours,
                "difference": ours - number,
                "low": low,
                "high": high,
                "p": p_values.get((index, name), float("nan")),
                "signature": cell.get("signature"),
            }
            record |= {f"{name}_{field}": value for field, value in fields.items()}
        records.append(record)
    return pd.DataFrame(records)


def display_frame(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The frame as readers see it: strings under two headings (metric, field), without fields that no row has."""
    shown: dict[tuple[str, str], list[str]] = {("", "System"): list(frame["label"])}
    for name in columns:
        for field, texts in show(frame, name).items():
            shown[(COLUMNS[name].label, field)] = texts
    return pd.DataFrame(shown)


def markdown(display: pd.DataFrame, title: str, caption: str) -> str:
    """A Markdown table; metric and field share the one header line that Markdown has."""
    header = [f"{metric}: {field}" if metric else field for metric, field in display.columns]
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *display.to_numpy().tolist()]
    body = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return f"**{title}.** {caption}\n\n{body}\n"


def latex(display: pd.DataFrame, title: str, caption: str, name: str) -> str:
    """A LaTeX table (booktabs, multicolumn headers)."""
    escaped = display.map(latex_escape)
    escaped.columns = pd.MultiIndex.from_tuples([tuple(map(latex_escape, pair)) for pair in display.columns])
    body = escaped.to_latex(
        index=False,
        escape=False,
        column_format="l" + "r" * (display.shape[1] - 1),
        multicolumn_format="c",
        caption=f"{latex_escape(title)}. {latex_escape(caption)}",
        label=f"tab:{name}",
    )
    return "% needs \\usepackage{booktabs} and UTF-8 input\n" + body


def full_caption(table: dict, frame: pd.DataFrame, like_paper: bool, notes: list[str]) -> str:
    """The caption, what its numbers are, and whether they may be held against the paper's."""
    parts = [table.get("caption", "").rstrip(". ")] + [COLUMNS[name].convention for name in table["columns"]]
    if any(frame[f"{name}_low"].notna().any() for name in table["columns"]):
        parts.append("Brackets: 95% bootstrap interval")
    if any(frame[f"{name}_p"].notna().any() for name in table["columns"]):
        parts.append("p: paired bootstrap against the nearest measured row above")
    parts += notes + ([] if like_paper or "paper" not in table else [UNLIKE.rstrip(".")])
    return " ".join(f"{part}." for part in dict.fromkeys(parts) if part)


def left_out(table: dict, scores: Path) -> str:
    """How many gold sentences are not scored, if the table is about such; the same for all its rows."""
    for score in filter(None, (read_scores(scores, row, table["test"]) for row in table["rows"])):
        if count := score.get("left_out_as_seen_in_training"):
            return f"{count} of {count + score['lines']} sentences occur in the training text and are left out"
    return ""


def main(
    spec: Annotated[str, typer.Option(help="The table (JSON): name, title, caption, paper, test, columns, rows.")],
    scores: Annotated[Path, typer.Option(help="Folder of {system}/{test}.json; what is missing is 'not measured'.")],
    reported: Annotated[Path, typer.Option(help="What the papers report (CSV).")],
    output: Annotated[Path, typer.Option(help="Path without ending; .csv, .md, .tex and .json are written.")],
    comparisons: Annotated[Path | None, typer.Option(help="Paired bootstrap of the rows (JSON).")] = None,
    like_paper: Annotated[bool, typer.Option(help="The data and sizes are the paper's own.")] = False,
    note: Annotated[str, typer.Option(help="A sentence for the caption: what ours was trained on.")] = "",
) -> None:
    """Write one table of a paper, ours beside theirs."""
    table = json.loads(spec)
    unknown = [name for name in table["columns"] if name not in COLUMNS]
    if unknown:
        raise ValueError(
            f"table {table['name']}: found the column {unknown[0]!r}, expected one of {', '.join(COLUMNS)}"
        )
    frame = build_frame(table, scores, read_json(comparisons) if comparisons else {}, pd.read_csv(reported, dtype=str))
    display = display_frame(frame, table["columns"])
    title = table["title"].rstrip(". ")
    caption = full_caption(table, frame, like_paper, [left_out(table, scores), note.rstrip(". ")])
    with atomic_path(output.with_name(output.name + ".csv")) as path:
        frame.to_csv(path, index=False, lineterminator="\n")
    write_text(output.with_name(output.name + ".md"), markdown(display, title, caption))
    write_text(output.with_name(output.name + ".tex"), latex(display, title, caption, table["name"]))
    write_json(
        output.with_name(output.name + ".json"),
        {
            "kind": "table",
            "name": table["name"],
            "title": title,
            "caption": caption,
            "better": {COLUMNS[name].label: COLUMNS[name].better for name in table["columns"]},
            "header": [list(pair) for pair in display.columns],
            "rows": display.to_numpy().tolist(),
            "measured": [
                bool(frame.loc[i, [f"{c}_ours" for c in table["columns"]]].notna().any()) for i in frame.index
            ],
            "cells": frame.astype(object).where(frame.notna(), None).to_dict("records"),
        },
    )


if __name__ == "__main__":
    run(main)
