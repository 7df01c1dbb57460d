"""Training state on disk: whole or not at all, the older generation when the newest is damaged, never another run's."""

from __future__ import annotations

import json
import logging
import resource
from pathlib import Path

import pytest
import torch

from nmt.checkpoint import StateFolder, TrainingState, fingerprint
from nmt.optimiser import TrainingConfig, gradients, make_optimiser
from tests.nmt.small_run import Recurrent


def generation(number: int) -> tuple[dict, dict]:
    """Tensors and facts that say which generation they are."""
    return {"weights": torch.full((500,), float(number))}, {
        "update": number,
        "curve": [{"dev_perplexity": 0.1 * number}],
    }


def filled(path: Path, generations: int = 3, identity: str = "") -> StateFolder:
    folder = StateFolder(path, identity)
    folder.load()
    path.mkdir(exist_ok=True)
    for number in range(1, generations + 1):
        folder.save(*generation(number))
    return folder


def files(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_what_was_saved_is_read_and_two_generations_are_kept(tmp_path):
    filled(tmp_path)
    tensors, facts = StateFolder(tmp_path).load()
    assert facts == generation(3)[1]
    assert torch.equal(tensors["weights"], torch.full((500,), 3.0))
    assert files(tmp_path) == ["000002.json", "000002.safetensors", "000003.json", "000003.safetensors"]


def test_an_empty_folder_has_no_state(tmp_path, caplog):
    assert StateFolder(tmp_path / "new").load() is None
    assert not caplog.records


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)


def change_a_fact(path: Path) -> None:
    content = json.loads(path.read_text())
    content["facts"]["update"] += 1
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("000003.safetensors", cut_short),
        ("000003.safetensors", flip),
        ("000003.safetensors", Path.unlink),
        ("000003.json", cut_short),
        ("000003.json", change_a_fact),
        ("000003.json", lambda path: path.write_text("[]")),
        ("000003.json", lambda path: path.write_bytes(b"\xff\xfe")),
    ],
)
def test_a_damaged_state_gives_way_to_the_one_before(tmp_path, caplog, name, damage):
    filled(tmp_path)
    damage(tmp_path / name)
    folder = StateFolder(tmp_path)
    tensors, facts = folder.load()
    assert facts == generation(2)[1]
    assert tensors["weights"][0] == 2.0
    assert "000003.json: damaged training state" in caplog.text
    assert "going back to the one before" in caplog.text
    folder.save(*generation(4))  # the damaged one goes, the whole one before stays
    assert files(tmp_path) == ["000002.json", "000002.safetensors", "000004.json", "000004.safetensors"]


def test_when_every_state_is_damaged_it_says_that_training_starts_anew(tmp_path, caplog):
    filled(tmp_path)
    for path in tmp_path.glob("*.safetensors"):
        cut_short(path)
    assert StateFolder(tmp_path).load() is None
    assert "no whole training state is left" in caplog.text


def test_tensors_without_their_seal_are_not_taken_for_a_state(tmp_path, caplog):
    """A kill between the two files."""
    filled(tmp_path)
    (tmp_path / "000003.json").unlink()
    with caplog.at_level(logging.WARNING):
        assert StateFolder(tmp_path).load()[1] == generation(2)[1]
    assert not caplog.records


def test_half_written_files_of_a_kill_are_cleared_away(tmp_path):
    folder = filled(tmp_path)
    (tmp_path / ".0badcafe.000004.safetensors").write_bytes(b"half")
    folder.save(*generation(4))
    assert files(tmp_path) == ["000003.json", "000003.safetensors", "000004.json", "000004.safetensors"]


def test_the_state_of_another_run_is_neither_loaded_nor_touched(tmp_path):
    filled(tmp_path, identity="aaaa")
    before = files(tmp_path)
    with pytest.raises(ValueError, match=r"000003\.json: found the state of run 'aaaa', expected that of 'bbbb'"):
        StateFolder(tmp_path, "bbbb").load()
    assert files(tmp_path) == before


def test_a_full_disk_is_a_clear_error_and_the_old_state_intact(tmp_path):
    folder = filled(tmp_path)
    before = files(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # the tensors take over 2000 bytes
    try:
        with pytest.raises(
            OSError, match=r"cannot save the training state .*the state saved before is intact.*continues"
        ):
            folder.save(*generation(4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files(tmp_path) == before
    assert StateFolder(tmp_path).load()[1] == generation(3)[1]


def test_a_full_disk_under_the_seal_leaves_nothing_of_the_new_state(tmp_path, monkeypatch):
    folder = filled(tmp_path)
    before = files(tmp_path)

    def full(path, value):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nmt.checkpoint.write_json", full)
    with pytest.raises(OSError, match="No space left on device"):
        folder.save(*generation(4))
    assert files(tmp_path) == before


def test_two_runs_in_one_folder_are_refused_until_the_first_ends(tmp_path):
    with StateFolder(tmp_path), pytest.raises(ValueError, match="another process is training"), StateFolder(tmp_path):
        pass
    with StateFolder(tmp_path):
        pass


def test_a_fingerprint_follows_content_and_not_order():
    one = fingerprint({"training": {"epochs": 3, "clip": 5.0}, "seed": 1})
    assert one == fingerprint({"seed": 1, "training": {"clip": 5.0, "epochs": 3}})
    assert one != fingerprint({"seed": 2, "training": {"clip": 5.0, "epochs": 3}})
    assert len(one) == 16
    assert int(one, 16) >= 0


@pytest.mark.parametrize("optimiser", ["sgd", "adadelta"])
def test_a_restored_state_is_the_saved_one_to_the_bit(tmp_path, optimiser):
    def fresh() -> TrainingState:
        model = Recurrent()
        state = TrainingState(model, make_optimiser(model, TrainingConfig(optimiser=optimiser)), torch.device("cpu"))
        state.optimiser.learning_rate = 0.5
        return state

    def step(state: TrainingState) -> None:
        state.model.zero_grad()
        (state.model.output(torch.rand(4, 8)) * torch.rand(12)).sum().backward()
        state.optimiser.step(gradients(state.model), torch.tensor(1.0), torch.tensor(False))
        state.sums["nll"] += torch.rand(())

    torch.manual_seed(1)
    first, second = fresh(), fresh()
    step(first)
    first.keep_best()
    step(first)
    first.journal.update, first.journal.curve = 2, [{"update": 1, "dev_perplexity": 1 / 3}]
    with StateFolder(tmp_path) as folder:
        first.save(folder)
        step(first)
        torch.manual_seed(2)
        assert second.load(folder)
    assert second.journal.curve == [{"update": 1, "dev_perplexity": 1 / 3}]
    assert not torch.equal(second.best["output.weight"], second.model.output.weight)
    step(second)  # draws the same numbers, for the generator was restored
    first.journal, second.journal = second.journal, first.journal
    after, expected = second.tensors(), first.tensors()
    assert after.keys() == expected.keys()
    for name, value in after.items():
        assert torch.equal(value, expected[name]), name
