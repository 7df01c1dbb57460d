"""Tables and figures from a published set of scores, with nothing trained; the set itself."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from nmt.attention_file import read_attention, write_attention
from nmt.files import read_json, read_lines, write_json, write_lines
from tests.workflow.test_dag import TINY, copy_project, planned, snakemake
from workflow import experiment
from workflow.scripts import publish

ROOT = Path(__file__).parents[2]
FIRST = ["the cat sat", "he did not come , no", "a b c d e f g h i j", "one two", "three four"]
GOLD = ["a b", "a b c d e f g"]


def bleu(score: float) -> dict:
    """A BLEU score as score.py writes it, with bins of source length."""
    each = {"score": score, "interval": [score - 1, score + 1], "signature": "made up"}
    return dict.fromkeys(("bleu_tokenized", "bleu_nist", "bleu_13a"), each) | {
        "by_length": [{"from": 1, "to": 10, "n": 5, "bleu": score, "interval": [score - 1, score + 1]}]
    }


def made_up_results(folder: Path) -> Path:
    """What config/tiny.yaml would leave behind, with made-up numbers; the ensemble was not measured."""
    config = experiment.load_file(ROOT / TINY)
    out = folder / "results" / "tiny"
    (out / "text").mkdir(parents=True)
    (out / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    write_json(out / "coverage" / "coverage.json", {"train": {}})
    for text in ("train", "dev", "miniature-test", "miniature-test2", "miniature-gold"):
        write_json(out / "text" / f"{text}.json", {"lines_out": 5})
    for language in ("en", "de"):
        write_lines(out / "text" / f"miniature-test.{language}", FIRST)
        write_lines(out / "text" / f"miniature-gold.{language}", GOLD)
    write_lines(out / "raw" / "miniature-gold.talp", ["1-1", "1-2 2-1 3-3"])
    for number, system in enumerate(config["systems"]):
        models, translations = out / "models" / system, out / "translations" / system
        write_lines(models / "curve.jsonl", [json.dumps({"update": 10, "epoch": 1, "curve_perplexity": 5.0})])
        write_json(models / "provenance.json", {"seed": 1, "device": "none"})
        for test in ("miniature-test", "miniature-test2"):
            score = {"perplexity": {"value": 3.25, "words": 9, "nll": 1.0}, "raw": bleu(number), "replaced": bleu(50)}
            counts = {"dictionary": {"count": 3, "right": 1, "wrong": 2}, "copy": {"count": 1, "right": 1, "wrong": 0}}
            score |= {"conventions": {"unknown": "Made up."}}
            score |= {"system": system, "test": test, "lines": 5, "unknown": {"in_output": 4, "kinds": counts}}
            write_json(out / "scores" / system / f"{test}.json", score)
            for ending in ("txt", "replaced.txt"):
                write_lines(translations / f"{test}.{ending}", ["<unk> x"] + ["y"] * 4)
        if experiment.has_attention(system, config):
            rule = {"aer": 0.4, "interval": [0.3, 0.5]}
            alignment = {"alignment": {"predicting": rule, "input": rule | {"aer": 0.6}}, "entropy": 1.0}
            score = {"system": system, "lines": 1, "left_out_as_seen_in_training": 1, "sharpness": 0.5} | alignment
            write_json(out / "scores" / system / "miniature-gold.json", score)
            attention = [np.full((3, 2), 0.5), np.full((8, 7), 1 / 7)]
            write_attention(out / "forced" / system / "miniature-gold.attention.npz", attention)
    steps = [{"row": 1, "above": 0, "column": "bleu_tokenized", "p": 0.03125}]
    write_json(out / "scores" / "comparisons" / "table1.json", {"comparisons": steps})
    write_json(out / "tables" / "table5.json", {"samples": [{"line": 1}, {"line": 3}]})
    write_json(out / "figures" / "figure7.json", {"lines": [2]})
    return out


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone with a published set for config/tiny.yaml."""
    folder = copy_project(tmp_path_factory.mktemp("published"))
    out = made_up_results(folder)
    publish.main(out, folder / "results" / "reference" / "tiny")
    shutil.rmtree(out)
    return folder


def test_the_set_holds_what_is_shown_and_no_more(project: Path) -> None:
    found = project / "results" / "reference" / "tiny"
    assert read_lines(found / "text" / "miniature-test.en") == [FIRST[0], "", FIRST[2], "", ""]
    assert read_lines(found / "translations" / "base" / "miniature-test.txt") == ["<unk> x", "", "y", "", ""]
    assert read_lines(found / "text" / "miniature-gold.de") == ["", GOLD[1]]
    assert read_lines(found / "raw" / "miniature-gold.talp") == ["", "1-2 2-1 3-3"]
    first, second = read_attention(found / "forced" / "local-p-general-feed" / "miniature-gold.attention.npz")
    assert first.size == 0 and second.shape == (8, 7)
    names = {str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()}
    assert set(read_json(found / "provenance.json")["sha256"]) == names - {"provenance.json"}
    assert not list(found.rglob("*.safetensors")) and not list(found.rglob("*test2.txt"))


def test_a_set_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected at most 1000; the largest is"):
        publish.main(made_up_results(tmp_path), tmp_path / "set", limit=1000)


def test_another_set_takes_the_place_of_the_old(tmp_path: Path) -> None:
    out, found = made_up_results(tmp_path), tmp_path / "set"
    publish.main(out, found)
    write_lines(found / "mine.txt", ["not of the set"])
    shutil.rmtree(out / "scores" / "base")
    publish.main(out, found)
    assert not list((found / "scores" / "base").glob("*")) and (found / "mine.txt").exists()


def test_nothing_is_trained_for_tables_on_a_fresh_clone(project: Path) -> None:
    jobs = planned(project, f"--configfile={TINY}", "tables", "figures")
    assert set(jobs) == {
        "tables", "table", "samples", "figures", "learning_curves", "bleu_by_length", "alignment_matrices",
    }  # fmt: skip
    assert planned(project, f"--configfile={TINY}")["train"] > 0  # the whole experiment computes its own


def test_own_results_go_before_published_ones(project: Path, tmp_path: Path) -> None:
    shutil.copytree(project, tmp_path / "copy")
    (tmp_path / "copy" / "results" / "tiny" / "state").mkdir(parents=True)
    assert planned(tmp_path / "copy", f"--configfile={TINY}", "tables")["train"] > 0


@pytest.mark.end_to_end
def test_tables_and_figures_from_the_set(project: Path) -> None:
    found = snakemake(project, f"--configfile={TINY}", "tables", "figures", "report")
    assert found.returncode == 0, found.stdout + found.stderr
    tables = project / "results" / "tiny" / "tables"
    table1 = pd.read_csv(tables / "table1.csv").set_index("system")
    assert table1.loc["base", "perplexity_ours"] == 3.25
    assert table1["bleu_tokenized_p"].dropna().tolist() == [0.03125]
    assert "| not measured |" in (tables / "table1.md").read_text()  # the ensemble
    aligner = next(line for line in (tables / "table6.md").read_text().splitlines() if "Berkeley Aligner |" in line)
    assert "not measured" not in aligner
    assert "1 of 2 sentences occur in the training text" in (tables / "table6.md").read_text()
    unknown = pd.read_csv(tables / "unknown.csv")
    assert unknown.loc[0, ["unknown_ours", "unknown_dictionary_ours", "unknown_wrong_ours"]].tolist() == [4, 75, 50]
    assert [sample["line"] for sample in read_json(tables / "table5.json")["samples"]] == [1, 3]
    assert re.search("Sentence 2;", read_json(project / "results/tiny/figures/figure7.json")["caption"])
