"""One set of versions, whichever way the environment is made."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def pins(lines: list[str]) -> dict[str, str]:
    """Package -> version specifier, names as PyPI compares them."""
    found = {}
    for line in lines:
        name, specifier = re.fullmatch(r"([A-Za-z0-9._-]+)(.*)", line).groups()
        found[re.sub(r"[-_.]+", "-", name).lower()] = specifier
    return found


def requirements() -> dict[str, str]:
    lines = [line.partition("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    return pins([line for line in lines if line])


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def declared() -> dict[str, str]:
    return pins(project()["dependencies"] + project()["optional-dependencies"]["test"])


def environment() -> dict:
    return yaml.safe_load((ROOT / "environment.yml").read_text())


def test_environment_yml_is_pyproject() -> None:
    (from_pypi,) = [entry["pip"] for entry in environment()["dependencies"] if isinstance(entry, dict)]
    assert pins(from_pypi) == declared()
    assert f"python{project()['requires-python']}" in environment()["dependencies"]


def test_requirements_hold_what_pyproject_declares() -> None:
    pinned = requirements()
    assert {name: pinned.get(name) for name in declared()} == declared()


def test_all_but_torch_are_exact() -> None:
    inexact = {name for name, specifier in requirements().items() if not re.fullmatch(r"==[0-9][\w.]*", specifier)}
    assert inexact == {"torch"}
    assert requirements()["torch"] == ">=2.10,<2.14"  # the bound that keeps machines without a GPU on the CPU build


def test_what_is_imported_is_declared() -> None:
    imported = set()
    for path in [*ROOT.glob("nmt/**/*.py"), *ROOT.glob("workflow/**/*.py"), *ROOT.glob("workflow/rules/*.smk")]:
        imported |= set(re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    named_otherwise = {"yaml": "pyyaml", "thot": "sil-thot"}
    third_party = {named_otherwise.get(name, name) for name in imported} & set(requirements())
    assert third_party <= set(declared())
