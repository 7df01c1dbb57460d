"""The command line, from binary text to replaced translations, on a copy task with an unknown word."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from typer.testing import CliRunner

from nmt.__main__ import app
from nmt.attention_file import read_attention, write_attention
from nmt.corpus import binarise
from nmt.vocab import build_vocabulary

SYSTEM = {
    "name": "copy",
    "direction": "en-de",
    "seed": 1,
    "model": {
        "family": "luong",
        "layers": 1,
        "hidden": 24,
        "embedding": 16,
        "initialisation": 0.4,
        "attention": {"scope": "local-m", "score": "dot", "window": 0},
    },
    "training": {"batch_size": 8, "fetch": 200, "epochs": 10, "halve_after": 9},
    "decoding": {"beam": 3},
}


def invoke(*arguments, **options):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Text of five words, of which the rarest is unknown; a model trained to copy it in capitals."""
    folder, rng = tmp_path_factory.mktemp("cli"), np.random.default_rng(0)
    for name, lines in (("train", 240), ("test", 12)):
        words = [
            rng.choice(list("abcde"), p=[0.25, 0.25, 0.2, 0.2, 0.1], size=rng.integers(1, 6)) for _ in range(lines)
        ]
        (folder / f"{name}.en").write_text("".join(" ".join(line) + "\n" for line in words))
        (folder / f"{name}.de").write_text("".join(" ".join(line).upper() + "\n" for line in words))
    for language in ("en", "de"):
        text = (folder / f"train.{language}").read_text()
        vocabulary = build_vocabulary(Counter(text.split()), 7)
        vocabulary.save(folder / f"{language}.txt")
        binarise(text.splitlines(), vocabulary, folder / f"train.{language}")
    (folder / "system.json").write_text(json.dumps(SYSTEM))
    (folder / "dictionary.tsv").write_text("e\tE\t20\n")
    train(folder, "model", SYSTEM)
    return folder


def train(folder, name, system):
    (folder / "system.json").write_text(json.dumps(system))
    pair = [folder / "train.en", folder / "train.de"]
    vocabularies = ["--source-vocabulary", folder / "en.txt", "--target-vocabulary", folder / "de.txt"]
    places = ["--state", folder / "state", "--output", folder / name]
    invoke(
        "train", "--system", folder / "system.json", *vocabularies, "--train", *pair, "--dev", *pair, *places,
        "--device", "cpu",
    )  # fmt: skip


def test_train_writes_a_model_folder(folder):
    assert {path.name for path in (folder / "model").iterdir()} == {
        "model.safetensors", "config.json", "source.vocab", "target.vocab", "curve.jsonl", "provenance.json",
    }  # fmt: skip
    curve = [json.loads(line) for line in (folder / "model" / "curve.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in curve] == list(range(1, 11))
    provenance = json.loads((folder / "model" / "provenance.json").read_text())
    assert provenance["best_dev_perplexity"] == min(record["dev_perplexity"] for record in curve) < 1.2
    assert provenance["config"] == SYSTEM
    assert str(folder) not in json.dumps(provenance)


def test_translate_replace_and_force(folder):
    output, attention = folder / "test.jsonl", folder / "test.npz"
    invoke("translate", "--model", folder / "model", "--source", folder / "test.en", "--output", output,
           "--attention", attention)  # fmt: skip
    references = [line.split() for line in (folder / "test.de").read_text().splitlines()]
    records = [json.loads(line) for line in output.read_text().splitlines()]
    unknown = [["<unk>" if word == "E" else word for word in line] for line in references]
    assert [record["tokens"] for record in records] == unknown
    for record, matrix in zip(records, read_attention(attention), strict=True):
        assert record["alignment"]["predicting"] == list(range(len(record["tokens"])))
        assert matrix.shape == (len(record["tokens"]) + 1, len(record["tokens"]) + 1)
    invoke("replace", "--translations", output, "--source", folder / "test.en", "--dictionary",
           folder / "dictionary.tsv", "--output", folder / "replaced.txt", "--plain", folder / "plain.txt",
           "--counts", folder / "counts.json")  # fmt: skip
    assert [line.split() for line in (folder / "replaced.txt").read_text().splitlines()] == references
    counts = json.loads((folder / "counts.json").read_text())
    assert counts["unknown"] == counts["dictionary"] == sum(line.count("E") for line in references) > 0
    assert counts["copy"] == 0

    invoke("force", "--model", folder / "model", "--source", folder / "test.en", "--target", folder / "test.de",
           "--output", folder / "forced.json")  # fmt: skip
    forced = json.loads((folder / "forced.json").read_text())
    assert forced["words"] == sum(len(line) + 1 for line in references)
    assert 1 < forced["perplexity"] < 1.3
    assert forced["links"]["predicting"] == [[[i, i] for i in range(len(line))] for line in references]


def test_translate_reads_standard_input_in_order(folder):
    lines = ["a b", "", "b b b a", "a"]
    found = invoke("translate", "--model", folder / "model", input="".join(line + "\n" for line in lines))
    assert found == "A B\n\nB B B A\nA\n"


def test_an_ensemble_of_equals_is_the_model(folder):
    one, two = folder / "one.jsonl", folder / "two.jsonl"
    for output, models in ((one, 1), (two, 2)):
        invoke("translate", *["--model", folder / "model"] * models, "--source", folder / "test.en", "--output", output)
    for alone, together in zip(one.read_text().splitlines(), two.read_text().splitlines(), strict=True):
        assert json.loads(alone)["tokens"] == json.loads(together)["tokens"]


def test_no_stack_trace_for_what_the_user_can_mend(folder):
    command = [sys.executable, "-m", "nmt", "translate", "--model", folder / "nowhere"]
    done = subprocess.run(command, input="a\n", capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "nowhere: not a model folder" in done.stderr
    assert done.stderr.count("\n") == 1


def test_attention_file_keeps_empty_matrices(tmp_path):
    matrices = [np.eye(3), None, np.full((1, 2), 0.5)]
    write_attention(tmp_path / "a.npz", matrices)
    found = read_attention(tmp_path / "a.npz")
    assert [matrix.shape for matrix in found] == [(3, 3), (0, 0), (1, 2)]
    assert np.array_equal(found[2], [[0.5, 0.5]])
