"""A tiny trained model for the tests of the command line and of the Python interface: it copies words in capitals.

Of five words the rarest, `e`, is unknown to it, and so is `E`, its translation.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from nmt.__main__ import app
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
INVERSE = SYSTEM | {"name": "copy-back", "direction": "de-en", "training": SYSTEM["training"] | {"epochs": 2}}


def invoke(*arguments: object, **options: object) -> str:
    """Standard output of a command; its exception, if it raised one."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
    if result.exception is not None:
        raise result.exception
    return result.stdout


def write_texts(folder: Path) -> None:
    """train and test, .en and .de, as text and as word indices; vocabularies; a dictionary."""
    rng = np.random.default_rng(0)
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
    (folder / "dictionary.tsv").write_text("e\tE\t20\n")


def train(folder: Path, name: str, system: dict) -> None:
    """Train a system on the texts; its model folder is `name`."""
    (folder / f"{name}.json").parent.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(system))
    languages = system["direction"].split("-")
    vocabularies = [
        part
        for side, language in zip(("source", "target"), languages, strict=True)
        for part in (f"--{side}-vocabulary", folder / f"{language}.txt")
    ]
    pair = [folder / f"train.{language}" for language in languages]
    places = ["--state", folder / "state", "--output", folder / name]
    invoke(
        "train", "--system", folder / f"{name}.json", *vocabularies, "--train", *pair, "--dev", *pair, *places,
        "--device", "cpu",
    )  # fmt: skip


def environment() -> dict[str, str]:
    """Variables under which a process elsewhere finds this package, on one thread."""
    root = str(Path(__file__).parents[2])
    return os.environ | {"PYTHONPATH": root, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
