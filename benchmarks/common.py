"""What the benchmarks share: the machine's description, result files, and processes that take turns."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from nmt.provenance import processor

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
WORKERS = ROOT / "benchmarks" / "workers"


def machine(device: str = "cpu") -> str:
    """Processor and number of cores, and the GPU where it is one."""
    gpu = f", {torch.cuda.get_device_name()}" if device == "cuda" else ""
    return f"{processor()}, {len(os.sched_getaffinity(0))} cores{gpu}"


def write_csv(path: Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """One line a row, the first row's keys as header; to the screen, and to `path` if it is given."""
    files = [sys.stdout] if path is None else [sys.stdout, path.open("w", newline="", encoding="utf-8")]
    for file in files:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        file.flush()
    for file in files[1:]:
        file.close()


def seconds(work: Callable[[], object], device: str) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


class Worker:
    """A process that works on request (`workers/turns.py`) and waits in between."""

    def __init__(self, python: Path | str, script: str, sizes: Mapping[str, Any]) -> None:
        """sizes: what the measurement is of, `threads` among it."""
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(sizes["threads"])}
        self.script = script
        self.process = subprocess.Popen(
            [python, "-W", "ignore", WORKERS / f"{script}.py"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.facts = self.ask(**sizes)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer; RuntimeError if the process ends instead."""
        with suppress(BrokenPipeError):  # it has ended, which its silence will tell
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"{self.script}: the worker ended ({self.process.wait()}); its message stands above. Does its Python "
                "have the release that benchmarks/README.md names?"
            )
        return json.loads(line)

    def close(self) -> None:
        """Let it end."""
        self.process.stdin.close()
        self.process.wait()
