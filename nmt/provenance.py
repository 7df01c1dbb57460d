"""Where an artefact came from: what `provenance.json` says beside it."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy
import torch

PACKAGE = Path(__file__).resolve().parent


def provenance(
    config: Mapping[str, Any], seed: int, data: Mapping[str, str], device: torch.device | str, seconds: float
) -> dict[str, Any]:
    """A record ready for JSON; it names no host, user or path of this machine.

    config: as resolved; data: checksum of each input by name (see `checksum`); seconds: wall time of the work.
    """
    return {
        "config": dict(config),
        "seed": seed,
        "data": dict(data),
        "git": git_state(),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
            "nmt": _version(),
        },
        "device": device_name(device),
        "wall_seconds": round(seconds, 3),
    }


def checksum(path: Path) -> str:
    """SHA-256 of a file's content, read in pieces."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_state() -> dict[str, Any] | None:
    """Commit of the checkout that holds this package, and whether tracked files differ from it; None outside one."""
    root = _git("rev-parse", "--show-toplevel")
    if root is None or Path(root).resolve() != PACKAGE.parent:
        return None
    commit = _git("rev-parse", "HEAD")
    return commit and {"commit": commit, "changed": bool(_git("status", "--porcelain", "--untracked-files=no"))}


def device_name(device: torch.device | str) -> str:
    """The GPU's name, or the processor's and its number of threads in use."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU {processor()}, {threads} thread{'s' if threads > 1 else ''}"


def processor() -> str:
    """The processor's name, as Linux gives it; elsewhere the kind of machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _version() -> str | None:
    try:
        return metadata.version("attention-reproduced")
    except metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", PACKAGE, *arguments], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
