"""Fetch one pinned file: from a mirror folder if one has it, else from the network, and check it before it is named.

A download that broke off is taken up where it stopped (OUTPUT.partial), also by a later run.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from nmt.files import atomic_path
from workflow.catalogue import Download, find_download, load_catalogue
from workflow.cli import run
from workflow.download import download_file


def warn(message: str) -> None:
    """Say something that does not stop the script."""
    print(f"warning: {message}", file=sys.stderr)


def from_mirror(download: Download, mirrors: list[Path], output: Path) -> bool:
    """Copy the file from the first mirror folder that holds it intact; warns of each that does not."""
    for folder in mirrors:
        candidate = folder / download.name
        if not folder.is_dir():
            warn(f"the mirror folder {folder} does not exist; going on without it")
        elif candidate.is_file():
            fault = download.fault(candidate)
            if fault is None:
                with atomic_path(output) as temporary:
                    shutil.copyfile(candidate, temporary)
                return True
            warn(f"{candidate}: {fault}; going on to the next source")
    return False


def fetch(download: Download, mirrors: list[Path], output: Path, backoff: float = 1.0) -> None:
    """Bring one pinned file to `output`: it is there already, or a mirror has it, or the network."""
    if output.is_file() and download.fault(output) is None:
        return
    if from_mirror(download, mirrors, output):
        return
    if download.url is None:
        raise ValueError(
            f"{output}: {download.name} cannot be fetched by a program. Get it from {download.page} and place it in a "
            f"mirror folder (`mirror:` in the experiment); expected {download.algorithm} {download.checksum}"
        )
    download_file(download, output, backoff)


def main(
    file: Annotated[str, typer.Option(help="name of the file in datasets.yaml, or any name with --url")],
    output: Annotated[Path, typer.Option(help="where to put it")],
    datasets: Annotated[Path, typer.Option(help="the pinned corpora")] = Path("config/datasets.yaml"),
    mirror: Annotated[list[Path] | None, typer.Option(help="folder to look in first; repeat for more")] = None,
    url: Annotated[str | None, typer.Option(help="fetch from here, not by datasets.yaml")] = None,
    size: Annotated[int | None, typer.Option(help="expected bytes, with --url")] = None,
    sha256: Annotated[str | None, typer.Option(help="expected checksum, with --url")] = None,
    md5: Annotated[str | None, typer.Option(help="expected checksum, with --url, where no sha256 is known")] = None,
    backoff: Annotated[float, typer.Option(help="seconds before the second try, doubled for each further one")] = 1.0,
) -> None:
    """Fetch one pinned file from a mirror folder or the network, checked before it gets its name."""
    pinned = Download(file, url, None, size, sha256, md5) if url else find_download(load_catalogue(datasets), file)
    fetch(pinned, mirror or [], output, backoff)


if __name__ == "__main__":
    run(main)
