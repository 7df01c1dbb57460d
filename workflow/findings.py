"""What the report says of an experiment in words: how it differs from the papers, and what agrees with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

from workflow import experiment

Config = dict[str, Any]
NOT_SET = "–"
TRAINED = {  # what is said of trained systems, and where it stands in a system
    "layers": ("model", "layers"),
    "cells a layer": ("model", "hidden"),
    "embedding": ("model", "embedding"),
    "maxout units": ("model", "maxout"),
    "initialisation": ("model", "initialisation"),
    "dropout": ("model", "dropout"),
    "optimiser": ("training", "optimiser"),
    "learning rate": ("training", "learning_rate"),
    "mini-batch": ("training", "batch_size"),
    "epochs": ("training", "epochs"),
    "halved after epoch": ("training", "halve_after"),
    "most updates": ("training", "updates"),
    "clipping": ("training", "clip"),
    "longest sentence trained on": ("training", "max_length"),
    "beam": ("decoding", "beam"),
    "reading": ("model", "reading"),
}


def joined(values: list) -> str:
    """Distinct values in their order, small and large numbers as people write them."""

    def text(value: Any) -> str:
        if value is None:
            return NOT_SET
        return f"{value:g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)

    return ", ".join(dict.fromkeys(map(text, values)))


def listed(names: list[str], most: int = 6) -> str:
    """Names in a row, the rest counted."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def settings(config: Config, systems: list[str]) -> dict[str, str]:
    """What an experiment consists of: texts, vocabularies, and the settings of some of its systems."""
    data, languages = config["data"], config["languages"]
    found = {
        "languages": "-".join(languages),
        "training text": listed(experiment.train_names(config)),
        "dev": listed(experiment.dev_names(config)),
        "tests": listed(list(dict.fromkeys(experiment.corpus_name(test) for test in data["tests"].values()))),
        "gold alignments": listed(list(map(experiment.corpus_name, experiment.gold_corpora(config)))) or NOT_SET,
        "vocabulary": ", ".join(f"{config['vocabulary'][language]:,} {language}" for language in languages),
    }
    for name, (part, key) in TRAINED.items():
        values = [config["systems"][system][part][key] for system in systems if key in config["systems"][system][part]]
        if set(values) - {None}:
            found[name] = joined(sorted(set(values), key=values.index))
    return found


def differences(config: Config, paper: Config) -> dict[str, list]:
    """Settings that differ from those of the paper's own experiment, as (what, paper, here), and those that agree.

    Of the systems only those are looked at that are in both.
    """
    shared = [name for name in paper["systems"] if name in config["systems"]]
    theirs, ours = settings(paper, shared), settings(config, shared)
    names = dict.fromkeys([*theirs, *ours])
    rows = [(name, theirs.get(name, NOT_SET), ours.get(name, NOT_SET)) for name in names]
    for name in config["ensembles"]:
        if name in paper["ensembles"]:
            counts = [str(len(side["ensembles"][name]["members"])) for side in (paper, config)]
            rows.append((f"models in {name}", *counts))
    left_out = [name for name in paper["systems"] if name not in config["systems"]]
    if left_out:
        rows.append(("systems that are not run here", NOT_SET, ", ".join(left_out)))
    return {
        "differ": [row for row in rows if row[1] != row[2]],
        "agree": [name for name, a, b in rows if a == b],
    }


def columns(table: dict) -> dict[str, str]:
    """Heading of each column of a table that has numbers of ours, by the column's name in its cells."""
    names = [key.removesuffix("_ours") for key in table["cells"][0] if key.endswith("_ours")] if table["cells"] else []
    headings = dict.fromkeys(metric for metric, _ in table["header"] if metric)
    return dict(zip(names, headings, strict=True))


def numbers(table: dict, column: str) -> list[dict]:
    """The rows in which a column has both the paper's number and ours."""
    found = []
    for cell in table["cells"]:
        ours, paper = cell[f"{column}_ours"], as_number(cell[f"{column}_paper"])
        if ours is not None and paper is not None:
            found.append({"label": cell["label"], "ours": ours, "paper": paper, "p": cell.get(f"{column}_p")})
    return found


def as_number(text: str | float | None) -> float | None:
    """A number of the paper's, None where it prints something else."""
    try:
        value = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def orders(table: dict) -> list[str]:
    """For each column, how many pairs of rows stand in the paper's order."""
    sentences = []
    for column, heading in columns(table).items():
        pairs = [(a, b) for a, b in combinations(numbers(table, column), 2) if a["paper"] != b["paper"]]
        same = sum((a["ours"] - b["ours"]) * (a["paper"] - b["paper"]) > 0 for a, b in pairs)
        if pairs:
            sentences.append(f"{heading}: {same} of {len(pairs)} pairs of rows in the paper's order")
    return sentences


def contrary_steps(table: dict, column: str) -> list[str]:
    """Rows that change against the row above in the other direction than in the paper."""
    steps = []
    rows = numbers(table, column)
    for above, row in pairwise(rows):
        ours, paper = row["ours"] - above["ours"], row["paper"] - above["paper"]
        if paper and ours * paper <= 0:
            p = f", p = {row['p']:.3f}" if row["p"] is not None else ""
            steps.append(f"{row['label']}: {paper:+.1f} in the paper, {ours:+.1f} here{p}".replace("-", "−"))
    return steps


def findings(tables: list[dict]) -> list[dict]:
    """For each table with numbers on both sides: agreement of order, and the steps in BLEU that go the other way."""
    found = []
    for table in tables:
        sentences = orders(table)
        bleu = [column for column in columns(table) if column.startswith("bleu")][:1]
        contrary = [step for column in bleu for step in contrary_steps(table, column)]
        if sentences:
            found.append({"name": table["name"], "title": table["title"], "orders": sentences, "contrary": contrary})
    return found


def plural(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def abstract(
    config: Config, train: dict | None, models: dict[str, dict], duration: Callable[[float], str]
) -> list[str]:
    """Sentences that say what was run: systems, text, time and devices.

    train: counts of the training text; models: the provenance of each trained model.
    """
    if not config:
        return []
    sentences = []
    note = config["note"].rstrip(". ")
    if note:
        sentences.append(f"{note}.")
    asked, ensembles = len(config["systems"]), len(config["ensembles"])
    kinds = plural(asked, "system") + (f" and {plural(ensembles, 'ensemble')}" if ensembles else "")
    trained = "all" if len(models) == asked else f"{len(models)} of the {asked}" if models else "none"
    sentences.append(f"The experiment has {kinds}; of the systems, {trained} were trained.")
    if train and "words" in train:
        words = " and ".join(f"{count:,} {language}" for language, count in train["words"].items())
        sentences.append(f"The training text has {plural(train['lines_out'], 'sentence pair')} ({words} words).")
    if models:
        seconds = sum(model.get("training_seconds", 0) for model in models.values())
        devices = sorted({model["device"] for model in models.values() if "device" in model})
        seeds = sorted({model["seed"] for model in models.values() if "seed" in model})
        where = f" on {'; '.join(devices)}" if devices else ""
        sentences.append(f"Training took {duration(seconds)} in all{where}.")
        if len(seeds) == 1:
            sentences.append("Each was trained once, with one seed: what a second seed would change is unknown.")
    if config["like_paper"]:
        sentences.append("Data and sizes are meant to be the paper's own, so values may be held against its values.")
    else:
        sentences.append(
            "Data and sizes are not the paper's: hold the order of rows against the paper's order, not values against "
            "values."
        )
    return sentences
