"""What the columns of the papers' tables are: where a value is found, how it is printed, what convention it follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

NOT_MEASURED = "not measured"
NOTHING = "–"


@dataclass(frozen=True)
class Column:
    """A metric of a table: heading, name in reported.csv, decimals, what is better, sentence for the caption."""

    label: str
    reported: str
    decimals: int
    better: str  # "high", "low", or "" where neither is
    convention: str


_AER = "AER by forced decoding, one link a target word"
_BLEU = "BLEU: tokenised, case-sensitive"
_UNKNOWN = (
    "Of the unknown words, in per cent: replaced by the dictionary, copied from the source, wrong by the reference"
)
_NIST = "NIST BLEU: mteval-v13a on detokenised, normalised text"
COLUMNS = {
    "perplexity": Column("Perplexity", "ppl", 2, "low", ""),
    "updates": Column("Updates", "updates", 0, "", ""),
    "epochs": Column("Epochs", "epochs", 1, "", "Epochs: passes over the pairs that training takes"),
    "hours": Column("Hours", "hours", 2, "", ""),
    "nll_train": Column("Train NLL", "nll_train", 1, "low", "Train NLL: the same while training, near the end"),
    "nll_dev": Column("Dev NLL", "nll", 1, "low", "Dev NLL: negative log-likelihood a sentence of dev, in nats"),
    "nll": Column("NLL", "nll", 1, "low", "NLL: negative log-likelihood a sentence, in nats"),
    "bleu_tokenized": Column("BLEU", "bleu_tokenized", 1, "high", _BLEU),
    "bleu_tokenized_unk": Column("BLEU after unk replacement", "bleu_tokenized_unk", 1, "high", _BLEU),
    "bleu_tokenized_no_unk": Column(
        "BLEU, no UNK",
        "bleu_tokenized_no_unk",
        1,
        "high",
        "No UNK: of the sentences without unknown words in source and reference, <unk> forbidden in the search",
    ),
    "bleu_nist": Column("NIST BLEU", "bleu_nist", 1, "high", _NIST),
    "bleu_nist_unk": Column("NIST BLEU after unk replacement", "bleu_nist_unk", 1, "high", _NIST),
    "aer": Column("AER", "aer", 2, "low", f"{_AER}, at the step that predicts it"),
    "aer_input": Column(
        "AER (input step)", "aer", 2, "low", "Input step: link at the step that reads it (footnote 14)"
    ),
    "entropy": Column(
        "Attention entropy", "entropy", 2, "", "Entropy of the attention weights in nats, mean over steps"
    ),
    "sharpness": Column("Largest weight", "sharpness", 2, "", "Largest weight: mean over steps"),
    "unknown": Column("Unknown words", "unknown", 0, "", "Unknown words: `<unk>` in the output"),
    "unknown_dictionary": Column("By dictionary", "unknown_dictionary", 1, "", _UNKNOWN),
    "unknown_copy": Column("Copied", "unknown_copy", 1, "", _UNKNOWN),
    "unknown_wrong": Column("Wrong", "unknown_wrong", 1, "low", _UNKNOWN),
}


def unknown_share(unknown: dict | None, column: str) -> dict:
    """How many unknown words an output has, or the percentage that a column is about; empty if that is not known."""
    if not unknown:
        return {}
    if column == "unknown":
        return {"value": unknown["in_output"]}
    kinds, kind = unknown["kinds"], column.removeprefix("unknown_")
    replaced = sum(counts["count"] for counts in kinds.values())
    wrong = sum(counts["wrong"] for counts in kinds.values())
    chosen = wrong if kind == "wrong" else kinds.get(kind, {"count": 0})["count"]
    return {"value": 100 * chosen / replaced} if replaced else {}


TRAINING: dict[str, Callable[[dict], float]] = {  # out of a model's provenance
    "updates": lambda training: training["updates"],
    "epochs": lambda training: training["epochs"],
    "hours": lambda training: training["training_seconds"] / 3600,
    "nll_train": lambda training: training["train_nll_a_sentence"],
    "nll_dev": lambda training: training["dev_nll_a_sentence"],
}


def measured(score: dict, column: str, replaced: bool) -> dict:
    """Value, interval and signature of a column from a score file; empty if the file does not hold it."""
    if column == "perplexity":
        found = score.get("perplexity")
        return {"value": found["value"]} if found else {}
    if column == "nll":
        found = score.get("perplexity")
        return {"value": found["nll"] / score["lines"]} if found else {}
    if column.startswith("unknown"):
        return unknown_share(score.get("unknown"), column)
    if column in TRAINING and "training" in score:
        return {"value": TRAINING[column](score["training"])}
    if column == "bleu_tokenized_no_unk":
        score, column = score.get("no_unknown") or {}, "bleu_tokenized"
    if column in ("entropy", "sharpness"):
        return {"value": score[column]} if score.get(column) is not None else {}
    if column.startswith("aer"):
        rules = score.get("alignment", {})
        rule = "input" if column == "aer_input" else "predicting"
        found = rules.get(rule, rules.get("symmetric"))  # a statistical aligner knows no steps
        return {"value": found["aer"], "interval": found["interval"]} if found else {}
    kind = "replaced" if replaced or column.endswith("_unk") else "raw"
    found = (score.get(kind) or {}).get(column.removesuffix("_unk"))
    return {"value": found["score"]} | {k: found[k] for k in ("interval", "signature")} if found else {}


def show(frame: pd.DataFrame, column: str) -> dict[str, list[str]]:
    """The printed fields of a column, by heading; of the optional ones, only those some row has."""
    digits = COLUMNS[column].decimals
    own = frame["system"].notna()

    def number(field: str, form: str) -> list[str]:
        return [NOTHING if pd.isna(value) else form.format(value) for value in frame[f"{column}_{field}"]]

    ours = number("ours", f"{{:z.{digits}f}}")
    low, high = (number(field, f"{{:z.{digits}f}}") for field in ("low", "high"))
    fields = {
        "paper": [NOTHING if pd.isna(value) else value for value in frame[f"{column}_paper"]],
        "ours": [NOT_MEASURED if mine and text == NOTHING else text for text, mine in zip(ours, own, strict=True)],
        "difference": [text.replace("-", "−") for text in number("difference", f"{{:+z.{digits}f}}")],
        "95% interval": [NOTHING if a == NOTHING else f"[{a}, {b}]" for a, b in zip(low, high, strict=True)],
        "p": ["<0.001" if text == "0.000" else text for text in number("p", "{:.3f}")],
    }
    return {name: texts for name, texts in fields.items() if name == "ours" or set(texts) != {NOTHING}}


def latex_escape(text: str) -> str:
    """Text that LaTeX prints as it stands."""
    special = {c: f"\\{c}" for c in "&%$#_{}"} | {
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "\\textless{}",
        ">": "\\textgreater{}",
        "−": "$-$",  # pdflatex knows no U+2212
    }
    return "".join(special.get(character, character) for character in text)
