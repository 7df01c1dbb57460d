"""Files on their way to a machine with a GPU and back: binary text made small, archives, what is brought home."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from nmt.corpus import BinaryText, ids_path, offsets_path
from nmt.files import atomic_path, read_json, write_json

TO_BRING_BACK = ("curve.jsonl", "provenance.json", "config.json")  # of a model; its weights are too large


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compact(prefix: Path) -> dict[str, bytes]:
    """A binary text as two .npy files in the smallest integers, by the ends of their names."""
    text, ids = BinaryText(prefix), np.load(ids_path(prefix))
    arrays = {"ids.npy": ids, "lengths.npy": text.lengths}
    return {end: _npy(array.astype(np.min_scalar_type(int(array.max(initial=0))))) for end, array in arrays.items()}


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def restore(archive: zipfile.ZipFile, folder: Path, prefix: str) -> None:
    """Write a compacted binary text as training reads it."""
    ids, lengths = (_load(archive, f"{prefix}.{end}") for end in ("ids.npy", "lengths.npy"))
    offsets = np.concatenate([[0], lengths]).astype(np.int64).cumsum()
    for path, array in ((ids_path(folder / prefix), ids.astype(np.int32)), (offsets_path(folder / prefix), offsets)):
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, array)


def _load(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(name) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def unpack(bundle: Path, results: Path) -> dict[str, Any]:
    """Unpack the bundle into the results, unless it is there; its manifest."""
    here = results / "bundle.json"
    with zipfile.ZipFile(bundle) as archive:
        manifest = json.loads(archive.read("bundle.json"))
        if here.exists() and read_json(here) == manifest:
            return manifest
        for name in archive.namelist():
            if not name.startswith("binary/") and name != "bundle.json":
                archive.extract(name, results)
        for prefix in {name.removesuffix(".ids.npy").removesuffix(".offsets.npy") for name in manifest["binary"]}:
            restore(archive, results, prefix)
    for name, expected in manifest["binary"].items():
        if checksum(results / name) != expected:
            raise ValueError(f"{results / name}: another checksum than where the bundle was packed; pack it anew")
    write_json(here, manifest)
    return manifest


def finished_files(results: Path) -> list[Path]:
    """What goes home."""
    found = [path for model in (results / "models").glob("*") for path in map(model.joinpath, TO_BRING_BACK)]
    kinds = ("translations/*/*.jsonl", "forced/*/*.json", "translations/*/*.npz", "forced/*/*.npz")
    found += [path for kind in kinds for path in results.glob(kind)]
    return sorted(path for path in found if path.exists() and not path.name.startswith("."))


def pack(results: Path, output: Path, volume: int) -> list[Path]:
    """Put what is finished and was not packed before into archives of about `volume` bytes; their paths."""
    record = results / "packed.json"
    before = read_json(record) if record.exists() else {"files": [], "volumes": 0}
    left = [path for path in finished_files(results) if str(path.relative_to(results)) not in before["files"]]
    written: list[Path] = []
    while left:
        before["volumes"] += 1
        written.append(output / f"results-{before['volumes']}.zip")
        with atomic_path(written[-1]) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_LZMA) as archive:
            while left and archive.fp.tell() < volume:
                path = left.pop(0)
                archive.write(path, path.relative_to(results))
                before["files"].append(str(path.relative_to(results)))
    write_json(record, before)
    return written
