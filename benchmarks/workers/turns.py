"""The worker's end of an interleaved measurement: one process a system, of which one works while the others wait.

Standard library and torch alone, since every system's own Python runs it. Requests and replies are lines of JSON.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

_replies = os.fdopen(os.dup(1), "w")  # before anything else prints there
sys.stdout = sys.stderr


def receive() -> dict[str, Any]:
    """The next request; the process ends when there are no more."""
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return json.loads(line)


def reply(**values: Any) -> None:
    """Answer a request."""
    _replies.write(json.dumps(values) + "\n")
    _replies.flush()


def begin(system: str) -> dict[str, Any]:
    """The measurement's sizes, the first request; `threads` is obeyed, and the versions are told."""
    sizes = receive()
    torch.set_num_threads(sizes["threads"])
    torch.manual_seed(1)
    reply(system=system, torch=torch.__version__, python=platform.python_version())
    return sizes


class Steps:
    """Training steps on request: `done` is called after each, and returns when the next is wanted."""

    def __init__(self) -> None:
        self.wait()

    def wait(self) -> None:
        self.wanted = self.left = receive()["steps"]
        self.start = time.perf_counter()

    def done(self, loss: Callable[[], float]) -> None:
        """A step is over. After a turn's last its loss is asked for, which on a GPU waits for all of them, and told,
        so that a system that computes nonsense is seen.
        """
        self.left -= 1
        if self.left == 0:
            value = float(loss())
            reply(seconds=(time.perf_counter() - self.start) / self.wanted, loss=value)
            self.wait()


def random_words(sizes: dict[str, Any], specials: int, *shape: int) -> torch.Tensor:
    """Words that are no specials; int64, on the device."""
    return torch.randint(specials, sizes["vocabulary"], shape, device=sizes["device"])
