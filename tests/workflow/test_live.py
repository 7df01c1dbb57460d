"""The lines of the jobs that run, on a small terminal that knows the few sequences they are written with."""

import io
import os
import re

import pytest

from nmt.progress import STATUS_FOLDER
from workflow.live import Live

COLUMNS, LINES = 30, 12
SIZE = os.terminal_size((COLUMNS, LINES))


class Terminal(io.StringIO):
    """What stands on the screen, a string a row."""

    def __init__(self) -> None:
        super().__init__()
        self.screen = [""] * LINES
        self.row, self.saved, self.bottom = 0, 0, LINES - 1

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        for part in re.findall(r"\x1b\[[\d;]*[A-Za-z]|\x1b[78]|\n|[^\x1b\n]+", text):
            self.take(part)
        return len(text)

    def take(self, part: str) -> None:
        numbers = [int(number) for number in re.findall(r"\d+", part)]
        if part == "\n":
            if self.row == self.bottom:
                self.screen[: self.bottom + 1] = [*self.screen[1 : self.bottom + 1], ""]
            else:
                self.row += 1
        elif part == "\x1b7":
            self.saved = self.row
        elif part == "\x1b8":
            self.row = self.saved
        elif not part.startswith("\x1b"):
            self.screen[self.row] = part
        elif part[-1] == "H":
            self.row = min(numbers[0], LINES) - 1
        elif part[-1] == "A":
            self.row -= numbers[0]
        elif part[-1] == "K":
            self.screen[self.row] = ""
        elif part[-1] == "J":
            self.screen[self.row :] = [""] * (LINES - self.row)
        elif part[-1] == "r":  # the cursor goes home
            self.row, self.bottom = 0, (numbers[1] if numbers else LINES) - 1
        else:
            raise AssertionError(repr(part))


@pytest.fixture
def terminal(monkeypatch):
    """A terminal on which twenty lines were printed."""
    monkeypatch.setenv("TERM", "xterm")
    made = Terminal()
    made.write("".join(f"before {i}\n" for i in range(20)))
    return made


def test_rows_are_kept_out_of_the_scrolling_and_given_back(terminal):
    live = Live(terminal)
    live.draw({"7": "base  10%"}, SIZE)
    assert terminal.screen[-4:] == ["before 18", "before 19", "", "base  10%"]
    terminal.write("one\n")
    live.draw({"7": "base  11%", "8": "a line that is longer than the terminal is wide"}, SIZE)
    assert terminal.screen[-2:] == ["base  11%", "a line that is longer than th"]
    terminal.write("".join(f"after {i}\n" for i in range(30)))
    live.draw({"8": "other  1%"}, SIZE)
    assert terminal.screen[-4:] == ["after 29", "", "", "other  1%"]  # it keeps its row
    live.draw({"9": "third  2%", "8": "other  3%"}, SIZE)
    assert terminal.screen[-2:] == ["third  2%", "other  3%"]
    live.start()
    live.stop()
    terminal.write("Table 1\n")
    assert terminal.screen[-3:] == ["Table 1", "", ""]
    assert [row for row in terminal.screen if "%" in row] == []
    assert terminal.bottom == LINES - 1


def test_more_jobs_than_rows_are_counted(terminal):
    live = Live(terminal)
    live.draw({str(i): f"job {i}" for i in range(6)}, SIZE)
    assert terminal.screen[-5:] == ["", "job 0", "job 1", "job 2", "and 3 more"]


def test_a_terminal_that_was_made_smaller_or_has_no_rows_to_spare(terminal):
    live = Live(terminal)
    live.draw({"7": "base"}, os.terminal_size((COLUMNS, LINES - 1)))
    assert "base" not in terminal.screen
    live.draw({"7": "base"}, os.terminal_size((COLUMNS, LINES + 3)))
    live.draw({"7": "base"}, SIZE)
    assert terminal.screen[-1] == "base" and terminal.bottom == LINES - 2


def test_a_log_gets_plain_lines_of_the_jobs_that_live(monkeypatch):
    monkeypatch.setattr("workflow.live.SECONDS_IN_LOG", 0.02)
    log = io.StringIO()
    live = Live(log)
    live.start()
    try:
        assert os.environ[STATUS_FOLDER] == str(live.folder)
        ended = os.spawnlp(os.P_NOWAIT, "true", "true")
        os.waitpid(ended, 0)
        (live.folder / str(ended)).write_text("killed\t  1%\n")
        (live.folder / str(os.getppid())).write_text("local-p-general-feed\t 10%\n")
        (live.folder / str(os.getpid())).write_text("base\t 20%\n")
        while log.getvalue().count("\n") < 6:
            live.ended.wait(0.01)
        assert not (live.folder / str(ended)).exists()
    finally:
        live.stop()
    lines = log.getvalue().splitlines()
    assert set(lines[-2:]) == {"base                   20%", "local-p-general-feed   10%"}
    assert not live.folder.exists() and STATUS_FOLDER not in os.environ


def test_stopping_what_never_began_does_nothing(terminal):
    Live(terminal).stop()
