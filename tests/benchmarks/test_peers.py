"""The comparisons with the peers, without the peers: arithmetic, result files, figures, turns."""

from __future__ import annotations

import csv
import math
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

FOLDER = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))  # scripts find one another there

import common  # noqa: E402
import decoding  # noqa: E402
import plot  # noqa: E402
import training_peers  # noqa: E402
import training_step  # noqa: E402

TINY = asdict(training_peers.Sizes(layers=1, hidden=8, vocabulary=20, batch=4, words=5, threads=1))


def test_operations_by_hand() -> None:
    """2 x 256, vocabulary 8,000, 12 words: every product of a word forward, times three."""
    encoder = decoder = 2 * 2 * (4 * 256) * (256 + 256)  # two layers, each of its input and of its state
    fed, output = 2 * (4 * 256) * 256, 2 * 256 * 8000
    attention = 2 * 256 * 256 + 2 * 256 * 512 + 2 * 2 * 12 * 256  # W_a, W_c, and scores and context over 12 words
    expected = 3 * (encoder + decoder + fed + output + attention)
    assert training_peers.SIZES["2 x 256"].operations() == expected
    assert 27e6 < expected < 28e6


def test_results_are_read_back_as_written(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    rows = [{"system": "ours", "machine": "a, b"}, {"system": "theirs", "machine": 'c "d"'}]
    common.write_csv(tmp_path / "x.csv", rows)
    with (tmp_path / "x.csv").open() as file:
        assert list(csv.DictReader(file)) == rows
    assert capsys.readouterr().out == (tmp_path / "x.csv").read_text()
    assert "cores" in common.machine()


@pytest.mark.parametrize("script", [decoding, plot, training_peers, training_step])
def test_help(script) -> None:
    app = typer.Typer()
    app.command()(script.main)
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert script.main.__doc__.split(".")[0] in " ".join(result.output.split())


def test_committed_results_can_be_drawn(tmp_path: Path) -> None:
    for name in plot.FIGURES:
        (tmp_path / f"{name}.csv").write_text((common.RESULTS / f"{name}.csv").read_text())
    plot.main(tmp_path)
    for name in plot.FIGURES:
        assert "</svg>" in (tmp_path / f"{name}.svg").read_text()


def test_our_updates_wait_for_their_turn() -> None:
    worker = common.Worker(sys.executable, "train_ours", TINY)
    answers = [worker.ask(steps=steps) for steps in (1, 3)]
    worker.close()
    assert all(answer["seconds"] > 0 for answer in answers)
    assert answers[0]["loss"] == pytest.approx(math.log(TINY["vocabulary"]), abs=0.5)
    assert worker.process.returncode == 0


def test_every_path_of_a_step_is_measured(tmp_path: Path) -> None:
    arguments = ["--hidden", "8", "--vocabulary", "20", "--batch", "2", "--words", "4", "--runs", "1"]
    arguments += ["--variant", "local-p-general-feed", "--output", str(tmp_path / "steps.csv")]
    app = typer.Typer()
    app.command()(training_step.main)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    with (tmp_path / "steps.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["path"] for row in rows] == ["plain", "fast"]
    assert all(float(row["words_per_second"]) > 0 for row in rows)


def test_our_search_is_measured(tmp_path: Path) -> None:
    sizes = {"layers": 1, "hidden": 8, "vocabulary": 300}
    decoding.train(tmp_path / "model.pt", sizes, updates=1)
    assert torch.load(tmp_path / "model.pt")["weights"]["output.weight"].shape == (300, 8)
    asked = {**sizes, "threads": 1, "model": str(tmp_path / "model.pt"), "sentences": 3}
    worker = common.Worker(sys.executable, "decode_ours", asked)
    (row,) = decoding.measure([worker], beam=2, sentences=3, turns=1, shown=sizes)
    worker.close()
    assert float(row["sentences_per_second"]) > 0
    assert (row["system"], row["same_as_ours"], row["ours_is_faster_by"]) == ("ours", "1.000", "1.00")


def test_a_worker_that_fails_says_so() -> None:
    with pytest.raises(RuntimeError, match=r"train_ours.*README"):
        common.Worker("true", "train_ours", {"threads": 1})
