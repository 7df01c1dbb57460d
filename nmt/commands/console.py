"""Lines in, lines out, and progress on standard error."""

from __future__ import annotations

import io
import os
import select
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice, zip_longest
from pathlib import Path
from typing import BinaryIO, TextIO

from nmt.files import iterate_lines, open_atomic
from nmt.progress import SECONDS_IN_LOG, SECONDS_ON_TERMINAL, Pace, Status, clock
from nmt.vocab import split_words

BLOCK = 4096  # lines that are worked on together
PIECE = 1 << 20  # bytes read at once
PATIENCE = 0.05  # seconds that a pipe may stay silent before the lines it brought are worked on
LONGEST_BYTES = 1 << 24  # of a line
CLOSED_PIPE = 141  # what a shell reports of a program that a closed pipe ended
STANDARD_INPUT = "standard input"


class ClosedPipe(SystemExit):
    """Nobody reads the output any more; left uncaught, it ends the process quietly."""

    def __init__(self) -> None:
        super().__init__(CLOSED_PIPE)


def line_blocks(path: Path | None, longest: int, size: int = BLOCK) -> Iterator[list[str]]:
    """The lines of a file, or of standard input, `size` at a time; only "\\n" (or "\\r\\n") ends a line.

    Standard input gives fewer lines at once when it is silent for a moment. Raises ValueError naming the line that is
    not UTF-8 or has more than `longest` words.
    """
    blocks = _chunks(iterate_lines(path), size) if path else _decoded(_stream_blocks(sys.stdin.buffer, size))
    number = 0
    for lines in blocks:
        if number == 0:
            lines[0] = lines[0].removeprefix("\ufeff")
        for number, line in enumerate(lines, start=number + 1):  # noqa: B020 (goes on counting)
            if len(line) > 2 * longest and len(split_words(line)) > longest:
                raise ValueError(
                    f"{path or STANDARD_INPUT}, line {number}: found {len(split_words(line))} words, expected at most "
                    f"{longest}; split the line into sentences or raise --longest-line"
                )
        yield lines


def pair_blocks(source: Path, target: Path, size: int = BLOCK) -> Iterator[tuple[list[str], list[str]]]:
    """The lines of two parallel files, `size` at a time; ValueError naming the one that ends first, and where."""
    pairs = zip_longest(iterate_lines(source), iterate_lines(target))
    number = 0
    for block in _chunks(pairs, size):
        for number, pair in enumerate(block, start=number + 1):  # noqa: B020 (goes on counting)
            if None in pair:
                short, other = (source, target) if pair[0] is None else (target, source)
                raise ValueError(
                    f"{short} ends after line {number - 1}, but {other} goes on; expected one translation a line"
                )
        yield [pair[0] for pair in block], [pair[1] for pair in block]


def _chunks(items: Iterable, size: int) -> Iterator[list]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _stream_blocks(stream: BinaryIO, size: int) -> Iterator[list[bytes]]:
    """Whole lines without their "\\n": `size` of them, or those that are there when the stream falls silent."""
    lines: list[bytes] = []
    tail = b""
    while piece := stream.read1(PIECE):
        *whole, tail = (tail + piece).split(b"\n")
        lines += whole
        if len(tail) > LONGEST_BYTES:
            raise ValueError(
                f"{STANDARD_INPUT}: found a line of over {LONGEST_BYTES} bytes; expected a sentence a line"
            )
        while len(lines) >= size:
            yield lines[:size]
            del lines[:size]
        if lines and not _more_soon(stream):
            yield lines
            lines = []
    if tail:
        lines.append(tail)
    if lines:
        yield lines


def _more_soon(stream: BinaryIO) -> bool:
    try:
        return bool(select.select([stream.fileno()], [], [], PATIENCE)[0])
    except io.UnsupportedOperation:  # not a file of the system's
        return True


def _decoded(blocks: Iterable[list[bytes]]) -> Iterator[list[str]]:
    number = 0
    for block in blocks:
        lines = []
        for number, line in enumerate(block, start=number + 1):  # noqa: B020 (goes on counting)
            try:
                lines.append(line.decode("utf-8").removesuffix("\r"))
            except UnicodeDecodeError as error:
                found = " ".join(f"{byte:02x}" for byte in line[error.start : error.start + 4])
                raise ValueError(
                    f"{STANDARD_INPUT}, line {number}: expected UTF-8, found the bytes {found} at byte "
                    f"{error.start + 1} of the line; convert the text to UTF-8 (for instance with iconv)"
                ) from error
        yield lines


class Output:
    """Lines to a file, written whole at the end, or to standard output at once (path None).

    A path that is no regular file (a terminal, a named pipe) is written to as it is. ClosedPipe if the reader left.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._stack = ExitStack()

    def __enter__(self) -> Output:
        self._stack.__enter__()
        if self.path is None:
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8", newline="\n")
            self._file: TextIO = sys.stdout
        elif self.path.exists() and not self.path.is_file():
            self._file = self._stack.enter_context(self.path.open("w", encoding="utf-8", newline="\n"))
        else:
            self._file = self._stack.enter_context(open_atomic(self.path))
        return self

    def __exit__(self, *error: object) -> bool | None:
        return self._stack.__exit__(*error)

    def write(self, lines: Iterable[str]) -> None:
        """Write the lines and pass them on at once."""
        try:
            self._file.write("".join(line + "\n" for line in lines))
            self._file.flush()
        except BrokenPipeError:
            if self._file is sys.stdout:  # else Python complains when it flushes at the end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise ClosedPipe from None


class Sentences:
    """Counts sentences done: a moving line on a terminal, a plain line every half minute in a log.

    label: what a status calls the work (nmt/progress.py); without one there is none.
    """

    def __init__(self, shown: bool, total: int | None = None, label: str = "") -> None:
        self.done, self.total = 0, total
        self.started = time.monotonic()
        self.log, self.live = Pace(SECONDS_IN_LOG), Pace(SECONDS_ON_TERMINAL)
        self.bar = None
        self.shown = shown
        self.status = Status(label)
        if shown and sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(total=total, file=sys.stderr, unit=" sentences", leave=False)

    def __enter__(self) -> Sentences:
        return self

    def __exit__(self, *_: object) -> None:
        self.status.close()
        if self.bar is not None:
            self.bar.close()

    def __call__(self, count: int) -> None:
        """After `count` more sentences."""
        self.done += count
        if self.live.rate(count) is not None and self.status:
            self.status(self.line())
        if self.bar is not None:
            self.bar.update(count)
        elif self.log.rate(count) is not None and self.shown:
            print(self.line(), file=sys.stderr, flush=True)

    def line(self) -> str:
        """How many are done, at what rate since the beginning, and the time that the others will take."""
        rate = self.done / (time.monotonic() - self.started)
        if self.total is None:
            return f"{self.done:,} sentences, {rate:.1f}/s"
        left = clock((self.total - self.done) / rate)
        return f"{self.done / self.total:4.0%}  {self.done:,} of {self.total:,} sentences, {rate:.1f}/s, {left} left"


def require_file(path: Path) -> None:
    """Raise the system's error now, before a model is loaded, if a file to be read is not there."""
    if path.is_dir():
        raise ValueError(f"{path}: found a folder, expected a text file")
    path.stat()
