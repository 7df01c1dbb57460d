"""To a machine without snakemake and back: what is packed, run in pieces, and brought home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml

from nmt.corpus import BinaryText, binarise, ids_path, offsets_path
from nmt.files import read_json, write_json, write_lines
from nmt.vocab import Vocabulary
from workflow import bundling, experiment
from workflow.scripts import bundle

ROOT = Path(__file__).parents[2]
LINES = ["a b c", "b a", "", "c c a b", "a"] * 4


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data of two small systems and their ensemble."""
    out = tmp_path_factory.mktemp("prepared") / "results" / "small"
    row = {"label": "A", "system": "plain"}
    tables = {
        "table1": {"title": "1", "test": "main", "columns": ["bleu_tokenized"],
                   "rows": [row, {"label": "B", "system": "dot"}, {"label": "C", "system": "both"}]},
        "table6": {"title": "6", "test": "gold", "columns": ["aer"], "rows": [{"label": "B", "system": "dot"}]},
    }  # fmt: skip
    config = experiment.load(
        {
            "name": "small",
            "data": {"train": ["t"], "dev": "d", "tests": {"main": "m"}, "gold": "g"},
            "vocabulary": {"en": 6, "de": 6},
            "defaults": {"model": {"layers": 1, "hidden": 4, "embedding": 4},
                         "training": {"epochs": 2, "batch_size": 4, "fetch": 8}, "decoding": {"beam": 2}},
            "systems": {"plain": {}, "dot": {"model": {"attention": {"score": "dot"}}}},
            "ensembles": {"both": {"members": ["plain", "dot"]}},
            "tables": tables,
        },
        ROOT / "config",
    )  # fmt: skip
    (out / "text").mkdir(parents=True)
    (out / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    vocabulary = Vocabulary(["<unk>", "<s>", "</s>", "a", "b", "c"])
    for language in ("en", "de"):
        vocabulary.save(out / "vocabulary" / f"{language}.txt")
        for text in ("train", "dev", "m"):
            binarise(LINES, vocabulary, out / "binary" / f"{text}.{language}")
        for text in ("m", "g"):
            write_lines(out / "text" / f"{text}.{language}", LINES)
    for name in config["systems"]:
        (out / "systems").mkdir(exist_ok=True)
        (out / "systems" / f"{name}.json").write_text(experiment.system_json(name, config))
    bundle.main(out, out / "bundle.zip")
    return out


def run_bundle(folder: Path, archive: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run run_bundle.py as one does by hand."""
    words = ["--bundle", str(archive), "--results", str(folder / "results"), "--output", str(folder / "out")]
    return subprocess.run(
        [sys.executable, "-m", "workflow.scripts.run_bundle", *words, "--device", "cpu", *arguments],
        cwd=ROOT, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip


def test_binary_text_comes_back_to_the_byte(prepared: Path, tmp_path: Path) -> None:
    bundling.unpack(prepared / "bundle.zip", tmp_path)
    for path in (prepared / "binary").iterdir():
        assert (tmp_path / "binary" / path.name).read_bytes() == path.read_bytes()
    assert (tmp_path / "text" / "g.de").read_text() == (prepared / "text" / "g.de").read_text()
    with zipfile.ZipFile(prepared / "bundle.zip") as archive:
        assert archive.getinfo("binary/train.en.ids.npy").file_size < 128 + 60  # a byte a word


def test_large_word_indices_and_no_words(tmp_path: Path) -> None:
    ids = np.array([0, 70_000, 49_999], dtype=np.int32)
    for name, array in (("large", ids), ("none", ids[:0])):
        np.save(ids_path(tmp_path / name), array)
        np.save(offsets_path(tmp_path / name), np.array([0, len(array)], dtype=np.int64))
        with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
            for end, content in bundling.compact(tmp_path / name).items():
                archive.writestr(f"{name}.{end}", content)
        with zipfile.ZipFile(tmp_path / "z.zip") as archive:
            bundling.restore(archive, tmp_path / "back", name)
        assert BinaryText(tmp_path / "back" / name)[0].tolist() == array.tolist()


def test_what_is_measured_follows_from_tables_and_figures(prepared: Path) -> None:
    with zipfile.ZipFile(prepared / "bundle.zip") as archive:
        found = json.loads(archive.read("bundle.json"))["measurements"]
    assert found == {
        "plain": {"translate": ["m"], "force": ["m"]},
        "dot": {"translate": ["m"], "force": ["g", "m"]},
        "both": {"translate": ["m"], "force": ["m"]},
    }


def test_another_text_than_was_packed_is_refused(prepared: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(prepared / "bundle.zip") as old, zipfile.ZipFile(tmp_path / "new.zip", "w") as new:
        manifest = json.loads(old.read("bundle.json"))
        manifest["binary"]["binary/dev.en.ids.npy"] = "0" * 64
        for name in old.namelist():
            new.writestr(name, json.dumps(manifest) if name == "bundle.json" else old.read(name))
    with pytest.raises(ValueError, match=r"dev\.en\.ids\.npy: another checksum"):
        bundling.unpack(tmp_path / "new.zip", tmp_path / "results")


def test_a_bundle_that_is_too_large_is_refused(prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected at most 100"):
        bundle.main(prepared, tmp_path / "b.zip", limit=100)


def test_each_finished_file_is_packed_once(tmp_path: Path) -> None:
    write_json(tmp_path / "r" / "translations" / "a" / "m.jsonl", {})
    write_json(tmp_path / "r" / "models" / "a" / "provenance.json", {})
    (tmp_path / "r" / "models" / "a" / "model.safetensors").write_bytes(b"large")
    first = bundling.pack(tmp_path / "r", tmp_path / "out", volume=1)
    assert [zipfile.ZipFile(path).namelist() for path in first] == [
        ["models/a/provenance.json"], ["translations/a/m.jsonl"],
    ]  # fmt: skip
    assert bundling.pack(tmp_path / "r", tmp_path / "out", volume=1) == []
    write_json(tmp_path / "r" / "forced" / "a" / "m.json", {})
    assert [path.name for path in bundling.pack(tmp_path / "r", tmp_path / "out", 1)] == ["results-3.zip"]


def test_an_unknown_system_is_named(prepared: Path, tmp_path: Path) -> None:
    found = run_bundle(tmp_path, prepared / "bundle.zip", "--minutes", "1", "--system", "dott")
    assert found.returncode == 1 and "no system is called 'dott'; there are plain, dot, both" in found.stderr


@pytest.mark.end_to_end
def test_run_in_pieces_and_brought_home(prepared: Path, tmp_path: Path) -> None:
    found = run_bundle(tmp_path, prepared / "bundle.zip", "--minutes", "0")
    assert found.returncode == 75 and "nothing new" in found.stdout
    found = run_bundle(tmp_path, prepared / "bundle.zip", "--minutes", "5", "--system", "dot")
    assert found.returncode == 0, found.stdout + found.stderr
    found = run_bundle(tmp_path, prepared / "bundle.zip", "--minutes", "5", "--parallel", "2")
    assert found.returncode == 0, found.stdout + found.stderr
    home = tmp_path / "home"
    for path in sorted((tmp_path / "out").iterdir()):
        zipfile.ZipFile(path).extractall(home)
    assert {path.name for path in (home / "models" / "dot").iterdir()} == set(bundling.TO_BRING_BACK)
    assert len((home / "translations" / "both" / "m.jsonl").read_text().splitlines()) == len(LINES)
    assert read_json(home / "forced" / "dot" / "g.json")["links"]["input"]
    assert (home / "forced" / "dot" / "g.attention.npz").exists()
    assert not (home / "forced" / "dot" / "m.attention.npz").exists()
