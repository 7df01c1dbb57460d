"""The pinned corpora of config/datasets.yaml: what to download, and where in it each language's text lies."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

Catalogue = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Download:
    """One file of the network: how it is called here, where it lies, and what it must be."""

    name: str
    url: str | None = None  # None: it lies behind a page and is fetched by hand
    page: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    md5: str | None = None

    def __post_init__(self) -> None:
        if not (self.sha256 or self.md5):
            raise ValueError(f"{self.name}: expected a sha256 or an md5 checksum, found none; pin the file")

    @property
    def algorithm(self) -> str:
        """The checksum to go by: sha256 where it is known."""
        return "sha256" if self.sha256 else "md5"

    @property
    def checksum(self) -> str:
        """The expected checksum."""
        return self.sha256 or self.md5 or ""

    def fault(self, path: Path) -> str | None:
        """What is wrong with a file that should be this download, or None; reads it to the end."""
        size = path.stat().st_size
        if self.bytes is not None and size != self.bytes:
            return f"expected {self.bytes} bytes, found {size}"
        with path.open("rb") as file:
            found = hashlib.file_digest(file, self.algorithm).hexdigest()
        return None if found == self.checksum else f"expected {self.algorithm} {self.checksum}, found {found}"


@dataclass(frozen=True)
class Text:
    """Where one language's text (or a gold alignment) lies: a plain or gzipped file, or members of an archive."""

    file: str
    members: tuple[str, ...] = field(default=())
    encoding: str = "utf-8"
    lines: int | None = None


def load_catalogue(path: Path) -> Catalogue:
    """Read datasets.yaml; keys that start with "x-" are not corpora. ValueError names the file and the cure."""
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not YAML ({error}); correct it") from error
    if not isinstance(entries, dict):
        raise ValueError(f"{path}: expected corpora by name, found {type(entries).__name__}")
    return {name: entry for name, entry in entries.items() if not name.startswith("x-")}


def corpus_entry(catalogue: Catalogue, name: str) -> dict[str, Any]:
    """A corpus by name; ValueError offers the names that come near."""
    if name not in catalogue:
        near = difflib.get_close_matches(name, catalogue) or sorted(catalogue)
        raise ValueError(f"no corpus is called {name!r}; do you mean {', '.join(near)}? (config/datasets.yaml)")
    return catalogue[name]


def corpus_downloads(entry: dict[str, Any], languages: Sequence[str]) -> list[Download]:
    """What a corpus needs from the network for these languages."""
    if "archive" in entry:
        return [_download({**entry, "name": entry["archive"]})]
    return [_download(entry["files"][language]) for language in languages]


def find_download(catalogue: Catalogue, name: str) -> Download:
    """The download that is called `name`; ValueError if no corpus has it."""
    for entry in catalogue.values():
        for download in corpus_downloads(entry, list(entry.get("files", {}))):
            if download.name == name:
                return download
    raise ValueError(f"no corpus has a file {name!r}; add it to config/datasets.yaml with its url and checksum")


def corpus_texts(name: str, entry: dict[str, Any], languages: Sequence[str]) -> dict[str, Text]:
    """Where the text of each language of a pair lies; the pair may be named in either order.

    ValueError if the corpus has no such pair.
    """
    if "files" in entry:
        _check_languages(name, entry["files"], languages)
        return {language: Text(entry["files"][language]["name"], lines=entry.get("lines")) for language in languages}
    pair = _pair(name, entry["members"], languages)
    _check_languages(name, pair, languages)
    members = {language: pair[language] for language in languages}
    return {
        language: Text(
            entry["archive"],
            tuple(_safe(name, member) for member in ([found] if isinstance(found, str) else found)),
            entry.get("encoding", "utf-8"),
            entry.get("lines"),
        )
        for language, found in members.items()
    }


def corpus_alignment(name: str, entry: dict[str, Any]) -> tuple[Text, str] | None:
    """Where the gold alignment lies, and the language whose word index comes first in its links; None without one."""
    if "alignment" not in entry:
        return None
    alignment = entry["alignment"]
    return Text(entry["archive"], (_safe(name, alignment["member"]),), lines=entry.get("lines")), alignment["first"]


def _download(entry: dict[str, Any]) -> Download:
    names = ("name", "url", "page", "bytes", "sha256", "md5")
    return Download(**{name: entry[name] for name in names if entry.get(name) is not None})


def _pair(name: str, members: dict[str, Any], languages: Sequence[str]) -> dict[str, Any]:
    for key in ("-".join(languages), "-".join(reversed(languages))):
        if key in members:
            return members[key]
    raise ValueError(f"{name}: expected the pair {'-'.join(languages)}, found {', '.join(members)}")


def _check_languages(name: str, found: dict[str, Any], languages: Sequence[str]) -> None:
    missing = [language for language in languages if language not in found]
    if missing:
        raise ValueError(f"{name}: no text in {', '.join(missing)}; it has {', '.join(found)}")


def _safe(name: str, member: str) -> str:
    path = PurePosixPath(member)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name}: member {member!r} leads out of its archive; name a path inside")
    return member
