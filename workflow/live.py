"""What the jobs that run are doing, a line each: at the foot of a terminal, now and then in a log.

A job says it in a file (`Status` in nmt/progress.py). On a terminal the lowest rows are kept out of the scrolling, as
apt does it, so that whatever snakemake prints goes on above them.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import TextIO

from nmt.progress import STATUS_FOLDER

SECONDS_ON_TERMINAL, SECONDS_IN_LOG = 0.5, 300.0
LEAST_LINES = 12  # of a terminal that has rows to spare
SAVE, RESTORE, CLEAR_LINE, CLEAR_BELOW = "\x1b7", "\x1b8", "\x1b[2K", "\x1b[J"


class Live:
    """Shows the statuses from `start` to `stop`, from a thread of its own."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.slots: list[str | None] = []  # the job that each row belongs to
        self.rows, self.size = 0, os.terminal_size((0, 0))
        self.ended = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        """Have the jobs that begin from now on say what they do, and show it."""
        self.folder = Path(tempfile.mkdtemp(prefix="nmt-status-"))
        os.environ[STATUS_FOLDER] = str(self.folder)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        atexit.register(self.stop)  # however it ends

    def stop(self) -> None:
        """Show nothing any more, and give the rows back."""
        if self.thread is None:
            return
        self.ended.set()
        self.thread.join()
        self.thread = None
        if self.rows:
            self.write(f"{SAVE}\x1b[r{RESTORE}{CLEAR_BELOW}")
        os.environ.pop(STATUS_FOLDER, None)
        shutil.rmtree(self.folder)

    def run(self) -> None:
        """Show them again and again."""
        while not self.ended.wait(SECONDS_ON_TERMINAL if self.terminal else SECONDS_IN_LOG):
            lines = aligned(self.statuses())
            if self.terminal:
                self.draw(lines, os.get_terminal_size(self.stream.fileno()))
            else:
                self.write("".join(f"{line}\n" for line in lines.values()))

    def statuses(self) -> dict[str, list[str]]:
        """Label and text of each job that lives, by its process number."""
        found = {}
        for path in sorted(self.folder.iterdir()):
            try:
                os.kill(int(path.name), 0)
                line = path.read_text(encoding="utf-8")
            except ProcessLookupError:  # it was killed
                path.unlink()
            except FileNotFoundError:  # it has ended since
                continue
            else:
                if line.endswith("\n"):  # else it is being written
                    found[path.name] = line.rstrip("\n").split("\t", 1)
        return found

    def draw(self, lines: dict[str, str], size: os.terminal_size) -> None:
        """Every job in a row that it keeps; one that became free is the next job's."""
        self.slots = [job if job in lines else None for job in self.slots]
        for job in lines:
            if job not in self.slots:
                free = self.slots.index(None) if None in self.slots else len(self.slots)
                self.slots[free : free + 1] = [job]
        if size.lines < LEAST_LINES:
            return
        shown = [lines.get(job, "") for job in self.slots]
        most = size.lines // 3
        if len(shown) > most:
            shown = [*shown[: most - 1], f"and {len([line for line in shown[most - 1 :] if line])} more"]
        text = ""
        if (len(shown), size) != (self.rows, self.size):
            text = self.reserve(len(shown), size)
        first = size.lines - self.rows + 1
        rows = [f"\x1b[{first + i};1H{CLEAR_LINE}{line[: size.columns - 1]}" for i, line in enumerate(shown)]
        self.write(f"{text}{SAVE}{''.join(rows)}{RESTORE}")

    def reserve(self, rows: int, size: os.terminal_size) -> str:
        """What keeps the lowest rows out of the scrolling, the cursor and what is above it out of them."""
        further = rows - (self.rows if size == self.size else 0)
        self.rows, self.size = rows, size
        up = f"\x1b[{further}A" if further else ""
        return "\n" * further + f"{SAVE}\x1b[1;{size.lines - rows}r{RESTORE}{up}"

    def write(self, text: str) -> None:
        """At once, so that nothing comes between."""
        self.stream.write(text)
        self.stream.flush()


def aligned(statuses: dict[str, list[str]]) -> dict[str, str]:
    """Lines whose texts begin in one column."""
    width = max((len(label) for label, _ in statuses.values()), default=0)
    return {job: f"{label:<{width}}  {text}" for job, (label, text) in statuses.items()}
