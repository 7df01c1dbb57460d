"""The worker's end of an interleaved measurement: one process a system, of which one works while the others wait.

Standard library and torch alone, since every system's own Python runs it. Requests and replies are lines of JSON.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
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
        self.left, self.seconds = receive()["steps"], []
        self.start = time.perf_counter()

    def done(self, loss: float) -> None:
        """A step is over; its loss is told, so that a system that computes nonsense is seen."""
        now = time.perf_counter()
        self.seconds.append(now - self.start)
        self.start = now
        if len(self.seconds) == self.left:
            reply(seconds=self.seconds, loss=loss)
            self.wait()


def random_words(vocabulary: int, specials: int, *shape: int) -> torch.Tensor:
    """Words that are no specials; int64."""
    return torch.randint(specials, vocabulary, shape)
