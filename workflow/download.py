"""Downloads that take up where they stopped, and get their name only once they are what was pinned."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import requests
import urllib3
from requests.adapters import HTTPAdapter

from workflow.catalogue import Download
from workflow.progress import bytes_done

CHUNK = 1 << 18  # bytes
TIMEOUT = (20, 60)  # seconds to connect, and without a byte
FRUITLESS_TRIES = 5  # in a row, without a new byte
HOPELESS = (requests.HTTPError, requests.ConnectionError, requests.exceptions.RetryError)  # after urllib3's own tries


def download_file(download: Download, output: Path, backoff: float) -> None:
    """Download with resume and retries; ValueError if what came is not what is pinned, and then nothing is kept."""
    partial = output.with_name(output.name + ".partial")
    output.parent.mkdir(parents=True, exist_ok=True)
    resumed = partial.exists() and partial.stat().st_size > 0
    _receive_all(download, partial, backoff)
    fault = download.fault(partial)
    if fault and resumed:
        _warn(f"{partial}: {fault}; what an earlier run left did not belong to it, starting again")
        partial.unlink()
        _receive_all(download, partial, backoff)
        fault = download.fault(partial)
    if fault:
        partial.unlink()
        raise ValueError(
            f"{output}: {fault}, from {download.url}; nothing was kept. Run again; if it stays so, the file has "
            f"changed at its source: place the right {download.name} in a mirror folder, or correct datasets.yaml"
        )
    partial.replace(output)


def _receive_all(download: Download, partial: Path, backoff: float) -> None:
    retry = urllib3.Retry(
        total=FRUITLESS_TRIES, backoff_factor=backoff, status_forcelist=(429, 500, 502, 503, 504), allowed_methods=None
    )
    fruitless = 0
    with requests.Session() as session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        while True:
            before = partial.stat().st_size if partial.exists() else 0
            try:
                return _receive(session, download, partial)
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                grown = partial.exists() and partial.stat().st_size > before
                fruitless = 0 if grown else fruitless + 1
                if isinstance(error, HOPELESS) or fruitless == FRUITLESS_TRIES:
                    raise ValueError(
                        f"{download.url}: {error}; expected {download.name}. Try again later (what has come is kept), "
                        f"or place {download.name} ({download.algorithm} {download.checksum}) in a mirror folder"
                    ) from error
                _warn(
                    f"{download.url}: {error}; going on from byte {partial.stat().st_size if partial.exists() else 0}"
                )
                time.sleep(backoff * 2**fruitless)


def _receive(session: requests.Session, download: Download, partial: Path) -> None:
    """One request: append to what is there if the server can, else begin again."""
    have = partial.stat().st_size if partial.exists() else 0
    if have and have == download.bytes:
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with session.get(download.url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == requests.codes.requested_range_not_satisfiable:
            partial.unlink()
            raise urllib3.exceptions.HTTPError(f"the server has no bytes from {have} on; beginning again")
        response.raise_for_status()
        resumes = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if response.status_code == requests.codes.partial_content and resumes else 0
        size = int(response.headers.get("Content-Length", 0))
        with partial.open("ab" if have else "wb") as file, bytes_done(download.name, have + size, have) as advance:
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                file.write(chunk)
                advance(len(chunk))


def _warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr, flush=True)
