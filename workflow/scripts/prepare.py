"""Tokenise one text in its languages, line by line together; for training, leave out the pairs that are of no use.

Texts of a language are joined in the order given. Without --filter, line i stays line i, whatever it holds.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import itertools
import os
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.files import atomic_path, write_json
from workflow.cleaning import Filter, check_parallel, clean, raw_lines, unspaced
from workflow.cli import labelled_path, run
from workflow.progress import bytes_done
from workflow.tokenising import Tokeniser

LINES_A_CHUNK = 500
Blocks = tuple[bytes, ...]  # some whole lines in each language
Refused = (UnicodeDecodeError, EOFError, gzip.BadGzipFile, zlib.error)  # for what is no text


@dataclass
class Prepared:
    """What became of some lines."""

    texts: Blocks
    lines: int
    words: list[int]  # in each language
    removed: Counter[str]  # pairs left out, by reason
    digests: list[int]  # of each pair, if pairs are to be told apart


class Chunk:
    """What a process does: tokenise lines and filter them; made once in each process by `Chunk.start`."""

    tokenisers: tuple[Tokeniser, ...] = ()
    filter: Filter | None = None
    deduplicate: bool = False

    @classmethod
    def start(cls, tokenisers: tuple[Tokeniser, ...], filter: Filter | None, deduplicate: bool) -> None:
        """Set up a process."""
        cls.tokenisers, cls.filter, cls.deduplicate = tokenisers, filter, deduplicate

    @classmethod
    def prepare(cls, blocks: Blocks) -> Prepared:
        """Tokenise the lines, and leave out those that the filter does not let through."""
        languages = [tokeniser.language for tokeniser in cls.tokenisers]
        sides = [map(clean, block.decode("utf-8").removesuffix("\n").split("\n")) for block in blocks]
        kept: list[tuple[str, ...]] = []
        removed: Counter[str] = Counter()
        for lines in zip(*sides, strict=True):
            reason = cls.filter.reason_before(lines, languages) if cls.filter else None
            if not reason:
                lines = tuple(tokenise(line) for tokenise, line in zip(cls.tokenisers, lines, strict=True))
                reason = cls.filter.reason_after(lines) if cls.filter else None
            if reason:
                removed[reason] += 1
            else:
                kept.append(lines)
        prepared = list(zip(*kept, strict=True)) or [()] * len(blocks)
        texts = tuple("".join([line + "\n" for line in side]).encode() for side in prepared)
        words = [sum(line.count(" ") + 1 for line in side if line) for side in prepared]
        return Prepared(texts, len(kept), words, removed, [digest(lines) for lines in kept] if cls.deduplicate else [])


def digest(lines: tuple[str, ...]) -> int:
    """Eight bytes that tell a pair from others."""
    return int.from_bytes(hashlib.blake2b("\n".join(lines).encode(), digest_size=8).digest())


def without_seen(block: Prepared, seen: set[int]) -> Prepared:
    """What of some lines was not seen before; `seen` learns them."""
    fresh = [pair not in seen and not seen.add(pair) for pair in block.digests]
    if all(fresh):
        return block
    sides = [text.splitlines(keepends=True) for text in block.texts]
    kept = [list(itertools.compress(side, fresh)) for side in sides]
    return Prepared(
        tuple(map(b"".join, kept)),
        sum(fresh),
        [sum(line.count(b" ") + 1 for line in side if line != b"\n") for side in kept],
        block.removed + Counter(duplicate=len(fresh) - sum(fresh)),
        [],
    )


def read_blocks(paths: tuple[Path, ...], advance: Callable[[int], None]) -> Iterator[Blocks]:
    """Some lines at a time of texts that go together, without a byte order mark at their start.

    advance: is told how many bytes of the files were read. Raises ValueError if their lines are not equally many.
    """
    with ExitStack() as stack:
        raw = [stack.enter_context(path.open("rb")) for path in paths]
        files = [
            io.BufferedReader(gzip.GzipFile(fileobj=file)) if path.suffix == ".gz" else file
            for path, file in zip(paths, raw, strict=True)
        ]
        read, start = 0, True
        while True:
            parts = [list(itertools.islice(file, LINES_A_CHUNK)) for file in files]
            if len({len(part) for part in parts}) != 1:
                check_parallel(paths)
            if not parts[0]:
                return
            blocks = tuple(map(b"".join, parts))
            yield tuple(block.removeprefix(codecs.BOM_UTF8) for block in blocks) if start else blocks
            before, read, start = read, sum(file.tell() for file in raw), False
            advance(read - before)


def ordered_map(function: Callable, items: Iterable, processes: int, start: Callable, arguments: tuple) -> Iterator:
    """The results in order, from several processes, with only a few items under way at a time."""
    if processes <= 1:
        start(*arguments)
        yield from map(function, items)
        return
    with ProcessPoolExecutor(processes, initializer=start, initargs=arguments) as pool:
        under_way: deque = deque()
        for item in items:
            under_way.append(pool.submit(function, item))
            if len(under_way) > 4 * processes:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def sha256(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def prepare(
    texts: dict[str, list[Path]],
    outputs: dict[str, Path],
    tokenisers: tuple[Tokeniser, ...],
    filter: Filter | None,
    deduplicate: bool,
    processes: int,
    progress: str | None = None,
) -> dict[str, Any]:
    """Write the prepared text of each language; the counts, by filter, of what was read, left out and written.

    progress: what to call the work in showing how far it has come; None shows nothing.
    """
    if len({len(paths) for paths in texts.values()}) != 1:
        raise ValueError(f"expected equally many texts a language, found {[len(paths) for paths in texts.values()]}")
    parts = list(zip(*texts.values(), strict=True))
    removed = Counter({"empty": 0, "too_long": 0, "excluded": 0, "duplicate": 0} if filter else {})
    words, lines_out, seen = dict.fromkeys(texts, 0), 0, set()
    total = sum(path.stat().st_size for part in parts for path in part)
    with ExitStack() as stack:
        files = [
            stack.enter_context(stack.enter_context(atomic_path(outputs[language])).open("wb")) for language in texts
        ]
        advance = stack.enter_context(bytes_done(progress or "", total, shown=progress is not None))
        blocks = itertools.chain.from_iterable(read_blocks(part, advance) for part in parts)
        arguments = (tokenisers, filter, deduplicate)
        try:
            for block in ordered_map(Chunk.prepare, blocks, processes, Chunk.start, arguments):
                block = without_seen(block, seen) if deduplicate else block
                removed.update(block.removed)
                lines_out += block.lines
                for language, file, text, count in zip(texts, files, block.texts, block.words, strict=True):
                    file.write(text)
                    words[language] += count
        except Refused:
            for part in parts:
                check_parallel(part)  # says in which line
            raise
    lines_in = lines_out + removed.total()
    return {"lines_in": lines_in, "lines_out": lines_out, "removed": dict(removed), "words": words}


def main(
    text: Annotated[list[str], typer.Option(help="a raw text, LANGUAGE=PATH (plain or .gz); repeat, texts are joined")],
    output: Annotated[list[str], typer.Option(help="where each language's prepared text goes, LANGUAGE=PATH")],
    report: Annotated[Path, typer.Option(help="counts and checksums, JSON")],
    tokeniser: Annotated[str, typer.Option(help="moses, or none for tokenised text")] = "moses",
    escape: Annotated[bool, typer.Option(help="write &amp; and the like, as Moses' own script does")] = False,
    aggressive_hyphens: Annotated[bool, typer.Option(help="part words at hyphens (@-@)")] = False,
    filter: Annotated[bool, typer.Option("--filter", help="training text: leave out pairs with an empty side")] = False,
    max_length: Annotated[int | None, typer.Option(help="with --filter: leave out pairs over this many words")] = None,
    deduplicate: Annotated[bool, typer.Option(help="with --filter: keep the first of equal pairs")] = False,
    exclude: Annotated[
        list[str] | None, typer.Option(help="with --filter: leave out what this has, in whatever tokens, LANGUAGE=PATH")
    ] = None,
    threads: Annotated[int, typer.Option(help="processes")] = os.cpu_count() or 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress on standard error")] = False,
) -> None:
    """Tokenise a text in one or more languages, keeping its lines together."""
    texts: dict[str, list[Path]] = {}
    for language, path in map(labelled_path, text):
        texts.setdefault(language, []).append(path)
    outputs = dict(map(labelled_path, output))
    if set(texts) != set(outputs):
        raise ValueError(f"expected an --output for each language of --text ({', '.join(texts)}), found {set(outputs)}")
    if not filter and (max_length or deduplicate or exclude):
        raise ValueError("--max-length, --deduplicate and --exclude leave lines out: give --filter too, or none")
    excluded: dict[str, frozenset[str]] = {}
    for language, path in map(labelled_path, exclude or []):
        excluded[language] = excluded.get(language, frozenset()) | {unspaced(clean(line)) for line in raw_lines(path)}
    tokenisers = tuple(Tokeniser(language, tokeniser, escape, aggressive_hyphens) for language in texts)
    chosen = Filter(max_length, excluded) if filter else None
    counts = prepare(
        texts, outputs, tokenisers, chosen, deduplicate, threads, None if quiet else f"prepare {report.stem}"
    )
    convention = {"name": tokeniser, "escape": escape, "aggressive_hyphens": aggressive_hyphens}
    convention["version"] = f"sacremoses {version('sacremoses')}" if tokeniser == "moses" else None
    inputs = [{"language": name, "path": str(p), "sha256": sha256(p)} for name, paths in texts.items() for p in paths]
    written = [{"language": name, "path": str(path), "sha256": sha256(path)} for name, path in outputs.items()]
    write_json(report, counts | {"tokeniser": convention, "max_length": max_length, "in": inputs, "out": written})


if __name__ == "__main__":
    run(main)
