"""Being told to stop: a signal is noted, the update under way is finished, and the state is saved before leaving."""

from __future__ import annotations

import signal
import threading
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
TEMPORARY_FAILURE = 75  # EX_TEMPFAIL of sysexits.h: the same command, run again, continues


class Interrupted(SystemExit):
    """Training was asked to stop and its state is saved; left uncaught, it ends the process with exit code 75."""

    def __init__(self, message: str) -> None:
        super().__init__(TEMPORARY_FAILURE)
        self.message = message

    def __str__(self) -> str:
        return self.message


class StopSignals:
    """Notes SIGTERM, SIGUSR1 (Slurm's warning before a time limit) and SIGINT while the block runs.

    The first signal sets `received` to its name and gives the signals their old handlers back, so that a second one
    acts at once. Outside the main thread Python delivers no signals, and nothing is noted.
    """

    def __init__(self) -> None:
        self.received: str | None = None
        self._previous: dict[int, object] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name
        self.__exit__()
