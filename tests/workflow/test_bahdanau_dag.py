"""Bahdanau et al. (2015) as snakemake sees it: the whole paper planned, and a tiny experiment run to its end."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from nmt.files import read_json, read_lines
from nmt.vocab import Vocabulary
from tests.workflow.test_dag import copy_project, planned, snakemake
from workflow.scripts import known

ROWS = [
    {"label": name, "paper_row": row, "system": name} for row, name in ((1, "rnnencdec-short"), (4, "rnnsearch-long"))
]
SMALL = {
    "include": ["miniature-bahdanau.yaml"],
    "name": "small",
    "generate": {"seed": 7, "train": 300, "dev": 20, "test": 40, "test2": 20, "gold": 20},
    "prepare": {"select": {"in_domain": ["miniature-dev"], "words": 1500, "order": 2}},
    "vocabulary": {"en": 150, "de": 150},
    "defaults": {"decoding": {"beam": 2}},
    "systems": {
        "rnnencdec-50": {"model": {"hidden": 8, "embedding": 8, "maxout": 4}, "training": {"updates": 4}},
    },
    "tables": {"bahdanau-table1": {"rows": ROWS}, "bahdanau-table2": {"rows": ROWS}},
    "figures": {"bahdanau-figure2": {"systems": ["rnnsearch-long", "rnnencdec-short"]}},
    "show": ["bahdanau-table1", "bahdanau-table2", "bahdanau-figure2", "bahdanau-figure3"],
    "bootstrap": {"samples": 20},
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_project(tmp_path_factory.mktemp("bahdanau"))


def test_the_paper_is_planned_in_full(project: Path) -> None:
    jobs = planned(project, "--configfile=config/bahdanau2015.yaml")
    assert jobs["train"] == jobs["system"] == 5
    assert jobs["extract"] == jobs["fetch"] == 8  # 5 training corpora, 2 of dev, the test
    # dev, the test, and the 3 corpora that say what is chosen of the training text
    assert jobs["prepare"] == 5 and jobs["prepare_training"] == jobs["select_data"] == jobs["known"] == 1
    assert jobs["translate"] == jobs["score"] == 2 * 5  # all sentences, and those without unknown words
    assert jobs["table"] == 2 and jobs["samples"] == 1
    assert jobs["bleu_by_length"] == jobs["alignment_matrices"] == 1


def test_sentences_without_unknown_words() -> None:
    vocabularies = [Vocabulary(["<unk>", "<s>", "</s>", *words]) for words in (["a", "b"], ["x"])]
    assert known.known_lines([["a b", "a c", "b", "", "a"], ["x", "x", "x y", "x", "x x"]], vocabularies) == [0, 4]


def test_a_test_of_unknown_words_alone_is_refused(tmp_path: Path) -> None:
    for name, lines in (("text", ["a b"]), ("vocabulary", ["<unk>", "<s>", "</s>", "a"])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    text, vocabulary = f"en={tmp_path / 'text'}", f"en={tmp_path / 'vocabulary'}"
    with pytest.raises(ValueError, match="of 1 sentences found none without an unknown word"):
        known.main([text], [text], [vocabulary], [f"en={tmp_path / 'o'}"], [f"en={tmp_path / 'p'}"])


@pytest.mark.end_to_end
def test_everything_is_made(project: Path) -> None:
    (project / "config" / "small.yaml").write_text(yaml.safe_dump(SMALL))
    found = snakemake(project, "--configfile=config/small.yaml", seconds=900)
    assert found.returncode == 0, (found.stdout + found.stderr)[-5000:]
    out = project / "results" / "small"

    chosen = read_json(out / "text" / "train.json")
    assert chosen["words_out"] <= 1500 < chosen["words_in"]
    assert len(read_lines(out / "text" / "train.en")) == chosen["lines_out"]

    table = pd.read_csv(out / "tables" / "bahdanau-table1.csv")
    sentences = len(read_lines(out / "text" / "miniature-test.no-unk.en"))
    assert 0 < sentences < 40
    for system in table["system"]:
        score = read_json(out / "scores" / system / "miniature-test.no-unk.json")
        assert score["lines"] == sentences
        assert "<unk>" not in (out / "translations" / system / "miniature-test.no-unk.txt").read_text()
        ours = table.set_index("system").loc[system]
        assert ours["bleu_tokenized_no_unk_ours"] == pytest.approx(score["raw"]["bleu_tokenized"]["score"])
    assert table["bleu_tokenized_no_unk_paper"].tolist() == [24.19, 34.16]

    table = pd.read_csv(out / "tables" / "bahdanau-table2.csv").set_index("system")
    assert (table["updates_ours"] == 4).all()
    for system in table.index:
        training = read_json(out / "models" / system / "provenance.json")
        assert table.loc[system, "nll_dev_ours"] == pytest.approx(training["dev_nll_a_sentence"])
        assert table.loc[system, "hours_ours"] == pytest.approx(training["training_seconds"] / 3600)
        assert json.loads((out / "systems" / f"{system}.json").read_text())["model"]["family"] == "bahdanau"
    assert table.loc["rnnencdec-short", "epochs_ours"] > table.loc["rnnsearch-long", "epochs_ours"]
    for name in ("bahdanau-figure2", "bahdanau-figure3"):
        assert (out / "figures" / f"{name}.svg").stat().st_size
    assert "rnnsearch-long" in (out / "report.html").read_text()
