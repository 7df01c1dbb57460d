"""What is written beside an artefact."""

from __future__ import annotations

import hashlib
import json
import platform
import socket

import numpy
import torch

from nmt import provenance as module
from nmt.provenance import checksum, provenance


def test_a_record_is_json_and_names_no_host(tmp_path):
    (tmp_path / "data").write_bytes(b"ein Satz\n")
    data = {"train.de": checksum(tmp_path / "data")}
    record = json.loads(json.dumps(provenance({"epochs": 3}, 7, data, "cpu", 12.34567)))
    assert record["config"] == {"epochs": 3}
    assert record["seed"] == 7
    assert record["data"] == {"train.de": hashlib.sha256(b"ein Satz\n").hexdigest()}
    assert record["versions"]["python"] == platform.python_version()
    assert record["versions"]["torch"] == torch.__version__
    assert record["versions"]["numpy"] == numpy.__version__
    assert record["device"].startswith("CPU")
    assert record["wall_seconds"] == 12.346
    assert socket.gethostname() not in json.dumps(record)


def test_a_package_outside_its_own_checkout_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "nmt")
    (tmp_path / "nmt").mkdir()
    assert module.git_state() is None
    monkeypatch.setattr(module, "_git", lambda *arguments: {"--show-toplevel": str(tmp_path)}.get(arguments[-1], "f00"))
    assert module.git_state() == {"commit": "f00", "changed": True}
    monkeypatch.setattr(module, "PACKAGE", tmp_path / "library" / "nmt")
    assert module.git_state() is None
