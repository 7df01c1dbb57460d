"""Files written whole, and text read line by line with errors that say where."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to it on success and removed on failure.

    The folder is made if missing. The temporary name keeps the suffixes of `path`, since some writers choose their
    format (or append a suffix of their own) by them. The caller must have closed the file by the end of the block.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """An open UTF-8 text file that gets the name `path` only if the block succeeds; "\\n" is written as it is."""
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file whole."""
    with open_atomic(path) as file:
        file.write(text)


def write_lines(path: str | os.PathLike[str], lines: list[str]) -> None:
    """Write one line an item, each ended by "\\n"."""
    write_text(path, "".join(line + "\n" for line in lines))


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write indented JSON whole; not-a-number and infinities are refused (ValueError), as JSON has none."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file; ValueError names the file and the line."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        message = f"{path}, line {error.lineno}: found no valid JSON ({error.msg}); delete the file and build it again"
        raise ValueError(message) from error


def open_text(path: str | os.PathLike[str]) -> IO[str]:
    """A plain or .gz file opened as strict UTF-8; only "\\n" ends a line, and nothing is translated."""
    if str(path).endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8", errors="strict", newline="\n")
    return Path(path).open(encoding="utf-8", errors="strict", newline="\n")


def iterate_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """The lines of a plain or .gz file without their "\\n" or "\\r\\n", one at a time.

    Nothing but "\\n" ends a line: U+2028, U+0085 and a "\\r" inside a line stay where they are. Raises ValueError
    naming file and line where the bytes are not UTF-8, and where a .gz file is damaged.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if str(path).endswith(".gz") else Path(path).open("rb") as file:
            for number, line in enumerate(file, start=1):  # noqa: B007 (the error below needs it)
                yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        found = " ".join(f"{byte:02x}" for byte in error.object[error.start : error.start + 4])
        raise ValueError(
            f"{path}, line {number}: expected UTF-8, found the bytes {found} at byte {error.start + 1} of the line; "
            "convert the file to UTF-8 (for instance with iconv) or give its encoding"
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}, after line {number}: damaged gzip file ({error}); fetch it again") from error


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """All lines of a plain or .gz file; rules and errors as in `iterate_lines`."""
    return list(iterate_lines(path))
