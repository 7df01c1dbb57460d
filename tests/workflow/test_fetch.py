"""Fetching pinned files from mirrors and from a small, badly behaved HTTP server."""

import hashlib
import http.server
import threading
from pathlib import Path

import pytest

from workflow.catalogue import Download, corpus_texts, find_download, load_catalogue
from workflow.scripts.fetch import fetch

CONTENT = bytes(range(256)) * 4096  # 1 MB


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT at any path; `drops` connections break off midway first, `honours_range` or not."""

    drops = 0
    failures = 0
    honours_range = True
    content = CONTENT

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/pub/file.bin"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        if self.server.failures:
            self.server.failures -= 1
            return self.send_error(503)
        if "missing" in self.path:
            return self.send_error(404)
        content, first = self.server.content, 0
        if asked and self.server.honours_range:
            first = int(asked.removeprefix("bytes=").removesuffix("-"))
            if first >= len(content):
                return self.send_error(416)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        body = content[first:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.drops:
            self.server.drops -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)
        return None

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def pinned(url, content=CONTENT, **changes):
    return Download(
        **{"name": "file.bin", "url": url, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        | changes
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_mirror_comes_before_the_network(tmp_path, server):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "file.bin").write_bytes(CONTENT)
    fetch(pinned(server.url), [tmp_path / "none", mirror], tmp_path / "out" / "file.bin")
    assert (tmp_path / "out" / "file.bin").read_bytes() == CONTENT
    assert server.ranges == []


def test_a_wrong_mirror_file_is_named_and_passed_over(tmp_path, server, capsys):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file.bin").write_bytes(CONTENT[:-1] + b"x")
    fetch(pinned(server.url), [tmp_path / "a"], tmp_path / "out" / "file.bin")
    assert (tmp_path / "out" / "file.bin").read_bytes() == CONTENT
    warning = capsys.readouterr().err
    assert "a/file.bin: expected sha256" in warning and warning.count("warning") == 1


def test_a_broken_connection_is_resumed(tmp_path, server, capsys):
    server.drops = 2
    fetch(pinned(server.url), [], tmp_path / "file.bin", backoff=0.001)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    half = len(CONTENT) // 2
    assert server.ranges == [None, f"bytes={half}-", f"bytes={half + half // 2}-"]
    assert names(tmp_path) == ["file.bin"]
    assert "of 1.0 MB" in capsys.readouterr().err


def test_what_an_earlier_run_left_is_resumed(tmp_path, server):
    (tmp_path / "file.bin.partial").write_bytes(CONTENT[:1000])
    fetch(pinned(server.url), [], tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-"]


def test_a_server_without_ranges_is_read_from_the_start(tmp_path, server):
    server.honours_range = False
    (tmp_path / "file.bin.partial").write_bytes(CONTENT[:1000])
    fetch(pinned(server.url), [], tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-"]


@pytest.mark.parametrize("left", [b"other" * 200, CONTENT + b"longer"])
def test_a_partial_file_of_something_else_is_thrown_away(tmp_path, server, left):
    (tmp_path / "file.bin.partial").write_bytes(left)
    fetch(pinned(server.url), [], tmp_path / "file.bin", backoff=0.001)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == ["file.bin"]


def test_server_errors_are_tried_again(tmp_path, server):
    server.failures = 2
    fetch(pinned(server.url), [], tmp_path / "file.bin", backoff=0.001)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert len(server.ranges) == 3


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_a_wrong_checksum_keeps_nothing(tmp_path, server, algorithm):
    wanted = "0" * (64 if algorithm == "sha256" else 32)
    download = pinned(server.url, **{"sha256": None, "md5": None, algorithm: wanted})
    found = hashlib.new(algorithm, CONTENT).hexdigest()
    with pytest.raises(ValueError, match=f"expected {algorithm} {wanted}, found {found}, from {server.url}"):
        fetch(download, [], tmp_path / "file.bin")
    assert names(tmp_path) == []


def test_a_wrong_size_keeps_nothing(tmp_path, server):
    with pytest.raises(ValueError, match="expected 7 bytes, found 1048576"):
        fetch(pinned(server.url, bytes=7), [], tmp_path / "file.bin")
    assert names(tmp_path) == []


def test_what_cannot_be_had_says_what_to_do(tmp_path, server):
    missing = server.url.replace("pub", "missing")
    with pytest.raises(ValueError, match=r"404.*place file\.bin \(sha256 [0-9a-f]{64}\) in a mirror folder"):
        fetch(pinned(missing), [], tmp_path / "file.bin")
    by_hand = pinned(None, page="https://example.org/page")
    with pytest.raises(ValueError, match=r"Get it from https://example.org/page and place it in a mirror folder"):
        fetch(by_hand, [], tmp_path / "file.bin")


def test_a_file_that_is_there_is_not_fetched_again(tmp_path, server):
    (tmp_path / "file.bin").write_bytes(CONTENT)
    fetch(pinned(server.url), [], tmp_path / "file.bin")
    assert server.ranges == []


def test_the_catalogue_is_whole():
    catalogue = load_catalogue(Path(__file__).parents[2] / "config" / "datasets.yaml")
    pairs = {"europarl-v7", "commoncrawl", "news-commentary-v9", "newstest2013", "newstest2014", "newstest2015"}
    assert pairs <= set(catalogue)
    for name, entry in catalogue.items():
        assert entry["licence"], name
        for languages in [key.split("-") for key in entry.get("members", {})] or [list(entry["files"])]:
            for text in corpus_texts(name, entry, languages).values():
                download = find_download(catalogue, text.file)
                assert len(download.checksum) == {"sha256": 64, "md5": 32}[download.algorithm]
                assert download.url is None or download.url.startswith("https://")
