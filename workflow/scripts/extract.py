"""Bring one corpus to FOLDER/NAME.LANGUAGE: UTF-8, one sentence a line; gold links to FOLDER/NAME.LANGUAGES.talp.

From a pinned archive only the named members are read, and nothing is ever written under a name that an archive gives.
"""

from __future__ import annotations

import codecs
import difflib
import gzip
import re
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated
from xml.sax.saxutils import unescape

import typer

from nmt.files import atomic_path, iterate_lines, open_atomic
from workflow.catalogue import Text, corpus_alignment, corpus_entry, corpus_texts, load_catalogue
from workflow.cli import labelled_path, run

SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
LINK = re.compile(r"(\d+)([-p])(\d+)")


@contextmanager
def open_member(archive: Path, member: str) -> Iterator[IO[bytes]]:
    """One regular file of a tar or zip archive, as a stream.

    Raises ValueError if the archive is damaged, or the member is missing or no regular file.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                if member not in opened.namelist():
                    raise ValueError(_missing(archive, member, opened.namelist()))
                with opened.open(member) as stream:
                    yield stream
            return
        with tarfile.open(archive, "r|*") as opened:
            names = []
            for information in opened:
                names.append(information.name)
                if information.name.removeprefix("./") == member:
                    break
            else:
                raise ValueError(_missing(archive, member, names))
            stream = opened.extractfile(information) if information.isreg() else None
            if stream is None:
                raise ValueError(f"{archive}: expected {member} to be a file, found a link, folder or device")
            yield stream
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{archive}: damaged archive ({error}); delete it and fetch it again") from error


def _missing(archive: Path, member: str, names: list[str]) -> str:
    near = difflib.get_close_matches(member, names, n=3, cutoff=0.3)
    return f"{archive}: expected the member {member}, found none; near it are {', '.join(near) or 'no names'}"


def copy_text(text: Text, folder: Path, output: IO[bytes]) -> None:
    """Append a corpus' text in one language as UTF-8, its last line ended, to an open file."""
    path = folder / text.file
    try:
        for member in text.members:
            with open_member(path, member) as stream:
                copy_stream(stream, member, text.encoding, output)
        if not text.members:
            with path.open("rb") as stream:
                copy_stream(stream, text.file, text.encoding, output)
    except UnicodeError as error:
        where = " ".join([str(path), *text.members])
        raise ValueError(f"{where}: not {text.encoding} ({error}); correct `encoding:`") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: damaged gzip file ({error}); delete it and fetch it again") from error


def copy_stream(stream: IO[bytes], name: str, encoding: str, output: IO[bytes]) -> None:
    """Unpack (.gz), take the segments (.sgm), turn to UTF-8, and end the last line."""
    if name.endswith(".gz"):
        with gzip.open(stream) as unpacked:
            copy_stream(unpacked, name.removesuffix(".gz"), encoding, output)
    elif name.endswith((".sgm", ".sgml")):
        for segment in SEGMENT.findall(stream.read().decode(encoding)):
            words = unescape(segment, {"&quot;": '"', "&apos;": "'"}).split()
            output.write(" ".join(words).encode() + b"\n")
    else:
        chunks, last = iter(lambda: stream.read(1 << 20), b""), b"\n"
        for chunk in chunks if encoding == "utf-8" else codecs.iterencode(codecs.iterdecode(chunks, encoding), "utf-8"):
            output.write(chunk)
            last = chunk[-1:] or last
        if last != b"\n":
            output.write(b"\n")


def cut_to(path: Path, lines: int, origin: str) -> None:
    """Drop the empty lines after `lines` lines; ValueError if there are fewer, or more that are not empty."""
    found = list(iterate_lines(path))
    if len(found) < lines or any(line.strip() for line in found[lines:]):
        raise ValueError(f"{origin}: found {len(found)} lines, expected {lines}; correct `lines:` or the file")
    path.write_text("".join(line + "\n" for line in found[:lines]), encoding="utf-8", newline="\n")


def turn_links(source: Path, output: Path, turn: bool) -> None:
    """Copy gold links, one sentence a line ("1-1 2p3": sure and possible, 1-based), the sides exchanged if `turn`."""
    with open_atomic(output) as file:
        for number, line in enumerate(iterate_lines(source), start=1):
            links = line.split()
            matches = [LINK.fullmatch(link) for link in links]
            if None in matches:
                found = links[matches.index(None)]
                raise ValueError(f"{source}, line {number}: expected links such as 3-4 or 3p4, found {found!r}")
            file.write(" ".join(link[3] + link[2] + link[1] if turn else link[0] for link in matches if link) + "\n")


def extract(texts: dict[str, Text], downloads: Path, folder: Path, name: str) -> None:
    """Write FOLDER/NAME.LABEL for each text."""
    for label, text in texts.items():
        with atomic_path(folder / f"{name}.{label}") as temporary:
            with temporary.open("wb") as output:
                copy_text(text, downloads, output)
            if text.lines is not None:
                cut_to(temporary, text.lines, f"{text.file} {' '.join(text.members)}".strip())


def main(
    name: Annotated[str, typer.Option(help="what the corpus is called; outputs are FOLDER/NAME.LANGUAGE")],
    folder: Annotated[Path, typer.Option(help="where to write")],
    language: Annotated[list[str], typer.Option(help="a language to take; repeat for more, in the pair's order")],
    dataset: Annotated[str | None, typer.Option(help="entry of datasets.yaml")] = None,
    datasets: Annotated[Path, typer.Option(help="the pinned corpora")] = Path("config/datasets.yaml"),
    downloads: Annotated[Path, typer.Option(help="folder of the fetched archives")] = Path("results/downloads"),
    file: Annotated[list[str] | None, typer.Option(help="a text of your own, LANGUAGE=PATH, plain or .gz")] = None,
    alignment: Annotated[Path | None, typer.Option(help="gold links of your own files, 1-based talp")] = None,
) -> None:
    """Bring one corpus (pinned, or files of your own) to UTF-8 text, one sentence a line and a file a language."""
    pair, gold = "-".join(language), None
    if dataset:
        entry = corpus_entry(load_catalogue(datasets), dataset)
        texts, gold = corpus_texts(dataset, entry, language), corpus_alignment(dataset, entry)
    else:
        own = dict(labelled_path(text) for text in file or [])
        if missing := [each for each in language if each not in own]:
            raise ValueError(f"{name}: no file given for {', '.join(missing)}; add --file {missing[0]}=PATH")
        texts = {each: Text(str(own[each].resolve())) for each in language}
    extract(texts, downloads, folder, name)
    if gold:
        links, first = gold
        with tempfile.TemporaryDirectory() as scratch:
            extract({"links": links}, downloads, Path(scratch), name)
            turn_links(Path(scratch) / f"{name}.links", folder / f"{name}.{pair}.talp", turn=first != language[0])
    elif alignment:
        turn_links(alignment, folder / f"{name}.{pair}.talp", turn=False)


if __name__ == "__main__":
    run(main)
