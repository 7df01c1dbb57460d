"""Tokenise one text in its languages, line by line together; for training, leave out the pairs that are of no use.

Texts of a language are joined in the order given. Without --filter, line i stays line i, whatever it holds.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.files import open_atomic, write_json
from workflow.cleaning import Filter, Tokeniser, check_parallel, clean, raw_lines, unspaced
from workflow.cli import labelled_path, run

LINES_A_CHUNK = 500
Lines = tuple[str, ...]  # one line in each language


class Chunk:
    """What a process does: tokenise lines and filter them; made once in each process by `Chunk.start`."""

    tokenisers: tuple[Tokeniser, ...] = ()
    filter: Filter | None = None

    @classmethod
    def start(cls, tokenisers: tuple[Tokeniser, ...], filter: Filter | None) -> None:
        """Set up a process."""
        cls.tokenisers, cls.filter = tokenisers, filter

    @classmethod
    def prepare(cls, chunk: list[Lines]) -> tuple[list[Lines], Counter[str]]:
        """The lines that are kept, tokenised, and how many were left out for which reason."""
        kept: list[Lines] = []
        removed: Counter[str] = Counter()
        languages = [tokeniser.language for tokeniser in cls.tokenisers]
        for lines in chunk:
            reason = cls.filter.reason_before([clean(line) for line in lines], languages) if cls.filter else None
            if not reason:
                lines = tuple(tokenise(line) for tokenise, line in zip(cls.tokenisers, lines, strict=True))
                reason = cls.filter.reason_after(lines) if cls.filter else None
            if reason:
                removed[reason] += 1
            else:
                kept.append(lines)
        return kept, removed


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
) -> dict[str, Any]:
    """Write the prepared text of each language; the counts, by filter, of what was read, left out and written."""
    if len({len(paths) for paths in texts.values()}) != 1:
        raise ValueError(f"expected equally many texts a language, found {[len(paths) for paths in texts.values()]}")
    parts = list(zip(*texts.values(), strict=True))
    lines_in = [check_parallel(part) for part in parts]
    lines = (pair for part in parts for pair in zip(*map(raw_lines, part), strict=True))
    chunks = iter(lambda: list(itertools.islice(lines, LINES_A_CHUNK)), [])
    removed = Counter({"empty": 0, "too_long": 0, "excluded": 0, "duplicate": 0} if filter else {})
    words, lines_out, seen = dict.fromkeys(texts, 0), 0, set()
    with ExitStack() as stack:
        files = [stack.enter_context(open_atomic(outputs[language])) for language in texts]
        for kept, chunk_removed in ordered_map(Chunk.prepare, chunks, processes, Chunk.start, (tokenisers, filter)):
            removed.update(chunk_removed)
            for pair in kept:
                if deduplicate:
                    digest = hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest()
                    if digest in seen:
                        removed["duplicate"] += 1
                        continue
                    seen.add(digest)
                lines_out += 1
                for language, file, line in zip(texts, files, pair, strict=True):
                    file.write(line + "\n")
                    words[language] += len(line.split(" ")) if line else 0
    return {"lines_in": sum(lines_in), "lines_out": lines_out, "removed": dict(removed), "words": words}


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
    counts = prepare(texts, outputs, tokenisers, chosen, deduplicate, threads)
    convention = {"name": tokeniser, "escape": escape, "aggressive_hyphens": aggressive_hyphens}
    convention["version"] = f"sacremoses {version('sacremoses')}" if tokeniser == "moses" else None
    inputs = [{"language": name, "path": str(p), "sha256": sha256(p)} for name, paths in texts.items() for p in paths]
    written = [{"language": name, "path": str(path), "sha256": sha256(path)} for name, path in outputs.items()]
    write_json(report, counts | {"tokeniser": convention, "max_length": max_length, "in": inputs, "out": written})


if __name__ == "__main__":
    run(main)
