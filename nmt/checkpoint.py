"""Training state on disk: written whole, checked when read, one older generation kept, nothing executed on loading."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from nmt.files import atomic_path, read_json, write_json
from nmt.optimiser import Optimiser

log = logging.getLogger(__name__)

FORMAT = 1  # of the state; raise it when older states can no longer be continued


def fingerprint(identity: Mapping[str, Any]) -> str:
    """16 hexadecimal digits of all that determines a run.

    identity: the config less decoding, the seed, checksums of data and vocabularies; no paths. The order
    of keys does not matter. Name the state folder by it: another run then never meets this one's state.
    """
    return _hash_json({"format": FORMAT, "identity": identity})[:16]


@dataclass
class Journal:
    """Where training is: all of its state that is not a tensor."""

    update: int = 0  # parameter updates done
    epoch: int = 1  # the one under way
    position: int = 0  # batches of that epoch done; its plan follows from the seed and the epoch
    evaluated: int = 0  # the update after which dev was last evaluated
    best_update: int = 0
    best_perplexity: float | None = None
    words: int = 0  # target words trained on since the last evaluation,
    updates: int = 0  # and updates,
    training_seconds: float = 0.0  # and seconds in them
    seconds: float = 0.0  # of the whole run, evaluation included
    curve: list[dict[str, float]] = field(default_factory=list)


class TrainingState:
    """All that training needs to go on as if nothing had happened: weights, optimiser, generators, sums, journal."""

    def __init__(self, model: nn.Module, optimiser: Optimiser, device: torch.device) -> None:
        self.model, self.optimiser, self.device = model, optimiser, device
        self.journal = Journal()
        self.best: dict[str, Tensor] = {}  # weights of the best dev perplexity so far
        self.sums = {name: torch.zeros((), dtype=torch.float64, device=device) for name in ("nll", "gradient_norm")}

    def keep_best(self) -> None:
        """Take the weights of now as the best so far."""
        self.best = {name: _copy(value) for name, value in self.model.state_dict().items()}

    def tensors(self) -> dict[str, Tensor]:
        """Copies, on the CPU, of every tensor of the state, by name."""
        tensors = {f"model.{name}": _copy(value) for name, value in self.model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        tensors |= {f"sums.{name}": _copy(value) for name, value in self.sums.items()}
        tensors |= {f"optimiser.{name}": _copy(value) for name, value in self.optimiser.state().items()}
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        return tensors

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Take up a saved state."""
        self.model.load_state_dict(_below("model.", tensors))
        self.best = _below("best.", tensors)
        for name, value in self.sums.items():
            value.copy_(tensors[f"sums.{name}"])
        for name, value in self.optimiser.state().items():
            value.copy_(tensors[f"optimiser.{name}"])
        torch.set_rng_state(tensors["random.cpu"])
        if self.device.type == "cuda" and "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"], self.device)
        self.journal = Journal(**facts)

    def save(self, folder: StateFolder) -> None:
        """Write the state as the folder's newest generation."""
        folder.save(self.tensors(), vars(self.journal))

    def load(self, folder: StateFolder) -> bool:
        """Take up the folder's newest whole generation; False if it has none."""
        found = folder.load()
        if found:
            self.restore(*found)
        return found is not None


class StateFolder:
    """The two newest generations of one run's state: NUMBER.safetensors, sealed by NUMBER.json, which is written last.

    As a context manager it holds the folder's lock, which ends with the process, however that ends.
    identity: what `fingerprint` made of the run; written into each generation.
    """

    def __init__(self, path: Path, identity: str = "") -> None:
        self.path, self.identity = Path(path), identity
        self._whole: list[int] = []  # generations known to be whole, oldest first

    def __enter__(self) -> StateFolder:
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise ValueError(
                f"{self.path}: another process is training this very system; wait for it, or stop it first"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    @property
    def filled(self) -> bool:
        """Whether a whole generation is known to be here."""
        return bool(self._whole)

    def save(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Write a generation and remove all but the whole one before it; OSError leaves the older ones as they were."""
        number = max((int(path.stem) for path in self.path.glob("[0-9]*.*")), default=0) + 1
        try:
            with atomic_path(self._tensors(number)) as temporary:
                save_file(dict(tensors), temporary)
                seal = _seal(temporary)
            content = {"identity": self.identity, "tensors": seal, "facts_sha256": _hash_json(facts), "facts": facts}
            write_json(self._manifest(number), content)
        except (OSError, SafetensorError) as error:
            self._tensors(number).unlink(missing_ok=True)
            intact = "the state saved before is intact" if self.filled else "no state had been saved before"
            raise OSError(
                f"{self.path}: cannot save the training state ({error}); {intact}. "
                "Free some space (or make the folder writable) and run the same command again: it continues"
            ) from error
        self._whole = [*self._whole[-1:], number]
        self._remove_all_but(self._whole)

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and facts of the newest whole generation; None if there is none.

        A damaged generation is passed over with a warning. ValueError if a whole one belongs to another run.
        """
        numbers = sorted((int(path.stem) for path in self.path.glob("[0-9]*.json")), reverse=True)
        for number in numbers:
            try:
                manifest = self._read_manifest(number)
                tensors = load_file(self._tensors(number))
            except (ValueError, KeyError, TypeError, FileNotFoundError, SafetensorError) as error:
                log.warning(
                    "%s: damaged training state (%s); going back to the one before", self._manifest(number), error
                )
                continue
            if manifest["identity"] != self.identity:
                raise ValueError(
                    f"{self._manifest(number)}: found the state of run {manifest['identity']!r}, expected that of "
                    f"{self.identity!r}; give this run a folder of its own, or delete that one"
                )
            self._whole = [number]
            return tensors, manifest["facts"]
        if numbers:
            log.warning("%s: no whole training state is left; training starts from the beginning", self.path)
        return None

    def _read_manifest(self, number: int) -> dict[str, Any]:
        manifest = read_json(self._manifest(number))
        if manifest["facts_sha256"] != _hash_json(manifest["facts"]):
            raise ValueError("its facts do not match their checksum")
        found = _seal(self._tensors(number))
        if found != manifest["tensors"]:
            raise ValueError(f"{self._tensors(number).name} is {found}, expected {manifest['tensors']}")
        return manifest

    def _remove_all_but(self, numbers: list[int]) -> None:
        keep = {path for number in numbers for path in (self._tensors(number), self._manifest(number))}
        for pattern in ("[0-9]*.json", "[0-9]*.safetensors", ".*.json", ".*.safetensors"):
            for path in set(self.path.glob(pattern)) - keep:  # a leading dot: what a kill left half written
                path.unlink(missing_ok=True)

    def _tensors(self, number: int) -> Path:
        return self.path / f"{number:06d}.safetensors"

    def _manifest(self, number: int) -> Path:
        return self.path / f"{number:06d}.json"


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True).contiguous()


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _seal(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _hash_json(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
