"""Atomic writing and strict line reading."""

import gzip
import json

import pytest

from nmt.files import (
    atomic_path,
    iterate_lines,
    open_text,
    read_json,
    read_lines,
    write_json,
    write_lines,
)


def test_atomic_path_names_the_file_on_success_only(tmp_path):
    path = tmp_path / "deep" / "file.npy"
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert temporary.parent == path.parent
        assert temporary.suffix == ".npy"
        assert not path.exists()
    assert path.read_text() == "new"
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_json_round_trip_and_errors(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"ü": [1, None]})
    assert read_json(path) == {"ü": [1, None]}
    assert "ü" in path.read_text(encoding="utf-8")
    with pytest.raises(ValueError):
        write_json(path, {"loss": float("nan")})
    assert json.loads(path.read_text()) == {"ü": [1, None]}
    path.write_text('{\n"a": }')
    with pytest.raises(ValueError, match=r"a\.json, line 2"):
        read_json(path)


def test_only_newline_ends_a_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("one\u2028still\r\ntwo\x85\rstill\n\nlast".encode())
    assert read_lines(path) == ["one\u2028still", "two\x85\rstill", "", "last"]
    write_lines(path, ["a\u2028", "", "b\r"])
    assert path.read_bytes() == "a\u2028\n\nb\r\n".encode()
    with open_text(path) as file:
        assert list(file) == ["a\u2028\n", "\n", "b\r\n"]


def test_gzip_is_read_alike(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"x\r\ny\n"))
    assert read_lines(path) == ["x", "y"]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"a\.gz.*damaged"):
        read_lines(path)


def test_bad_utf8_names_file_and_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"fine\nna\xefve\n")
    lines = iterate_lines(path)
    assert next(lines) == "fine"
    with pytest.raises(ValueError, match=r"a\.txt, line 2: expected UTF-8, found the bytes ef 76 65 0a at byte 3"):
        next(lines)
