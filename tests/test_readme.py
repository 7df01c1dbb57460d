"""A newcomer's path: every command of the README, word for word and in its order, in a clean clone.

By default the clone's miniature is cut down to the sizes of config/tiny.yaml, and it borrows the virtual environment
that runs the tests. NEWCOMER=full leaves the miniature as it is (ten minutes) and has `./reproduce` set up an
environment of its own. `./reproduce test` leaves the walk out, since it takes minutes; .ci/run and
`./reproduce test -m newcomer` take it.
"""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FULL = os.environ.get("NEWCOMER") == "full"

# The commands that are run otherwise than they stand there: what is run instead, and why.
INSTEAD = {
    "./reproduce test": ("./reproduce test tests/nmt/test_unk.py", "the whole suite is what comes before this test"),
    "./reproduce luong2015 --profile profiles/slurm": (
        "./reproduce luong2015 --profile profiles/slurm -n",
        "needs a cluster, GPUs and WMT's data; tests/slurm/run has a cluster",
    ),
    "./reproduce luong2015 --cores 16 --resources gpu=4": (
        "./reproduce luong2015 --cores 16 --resources gpu=4 -n",
        "needs four GPUs and WMT's data",
    ),
}
# What a sentence of the README adds to its blocks; `./reproduce NAME` for each NAME of the table is listed, not run.
SENTENCES = [
    "./reproduce luong2015 -n",
    "./reproduce miniature tables",
    "snakemake --cores 1 tables",
    "./reproduce multi30k tables",
]


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the configuration that the sentence before it names."""

    language: str
    text: str
    file: str | None

    def commands(self) -> list[str]:
        """The commands of a bash block, a line each, without the comments beside them."""
        return [line.split("  #")[0].strip() for line in self.text.splitlines()]


def blocks() -> list[Block]:
    """The fenced blocks in their order."""
    found = []
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL):
        named = re.findall(r"`(config/\w+\.yaml)`[^`]*\Z", README[: match.start()])
        found.append(Block(match[1], match[2], named[-1] if named else None))
    return found


def listed() -> list[str]:
    """The commands of the table of experiments, but for those whose text one has to bring."""
    rows = re.findall(r"^\| `(\./reproduce[\w -]*)` \| (.*?) \|", README, re.MULTILINE)
    return [command for command, text in rows if "that you bring" not in text]


class Newcomer:
    """Someone with a shell in a fresh clone, who has read nothing but the README."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        inherited = {"PYTHONPATH", "VIRTUAL_ENV", "VENV", "NEWCOMER", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"}
        self.variables = {key: value for key, value in os.environ.items() if key not in inherited}
        own = str(Path(sys.prefix) / "bin")
        paths = [path for path in os.environ["PATH"].split(os.pathsep) if path != own]
        self.variables |= {"PATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}

    def types(self, script: str) -> str:
        """What a script prints, on both streams; the test fails with it if the script does."""
        # who manages an environment of their own has it on the path
        path = f"{self.folder / '.venv' / 'bin'}:" if script.lstrip().startswith("snakemake") else ""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.variables | {"PATH": path + self.variables["PATH"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout[-4000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory):
    """Someone whose clone is of what is committed."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is nothing to clone")
    folder = tmp_path_factory.mktemp("newcomer") / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    if not FULL:
        if not list(Path(sys.prefix).glob(".installed-*")):
            pytest.skip("the environment that runs the tests was not set up by ./reproduce, which would do it again")
        (folder / ".venv").symlink_to(sys.prefix)
        tiny = (folder / "config" / "tiny.yaml").read_text()
        assert "name: tiny\n" in tiny
        (folder / "config" / "miniature.yaml").write_text(tiny.replace("name: tiny\n", "name: miniature\n"))
    return Newcomer(folder)


def bring_data(folder: Path) -> None:
    """The files that the experiment on one's own data names: a few lines of the miniature's."""
    (folder / "data").mkdir()
    for name, lines, ending in (("train", 300, ".gz"), ("dev", 20, ""), ("test", 20, "")):
        for language in ("en", "de"):
            raw = folder / "results" / "miniature" / "raw" / f"miniature-{name}.{language}"
            text = b"".join(raw.read_bytes().splitlines(keepends=True)[:lines])
            path = folder / "data" / f"{name}.{language}{ending}"
            path.write_bytes(gzip.compress(text) if ending else text)


@pytest.mark.newcomer
def test_the_readmes_path(newcomer):
    folder, results = newcomer.folder, newcomer.folder / "results"
    printed = {}
    for block in blocks():
        if block.language == "yaml":
            (folder / block.file).write_text(block.text)
        else:
            first, *_ = commands = block.commands()
            printed[first] = newcomer.types("\n".join(INSTEAD.get(command, (command,))[0] for command in commands))
        if first == "./reproduce" and not (folder / "data").exists():
            bring_data(folder)

    assert "The report: results/miniature/report.html" in printed["./reproduce"]
    page = results / "miniature" / "report.html"
    assert "Alignment explorer" in page.read_text() and page.stat().st_size < 5_000_000
    assert {path.suffix for path in (results / "miniature" / "tables").glob("table1.*")} >= {".csv", ".md", ".tex"}
    assert "Nothing to be done" in printed["snakemake --cores 2 --configfile config/miniature.yaml"]
    assert "local-p-general-feed" in printed["source .venv/bin/activate"]
    for name, table in (("mine", "table1"), ("wider", "widths")):
        assert (results / name / "tables" / f"{table}.csv").stat().st_size
        assert (results / name / "report.html").stat().st_size
    for command in SENTENCES:
        newcomer.types(command)
    for command in listed():
        newcomer.types(f"{command} -n")


def test_every_command_is_run_or_has_a_reason_not_to_be():
    """What the walk does not know of would be a new kind of block or of command."""
    found = blocks()
    assert {block.language for block in found} == {"bash", "yaml"}
    assert README.count("```") == 2 * len(found)
    commands = [command for block in found if block.language == "bash" for command in block.commands()]
    assert set(INSTEAD) <= set(commands)
    assert all(instead.startswith(command) and reason for command, (instead, reason) in INSTEAD.items())
    assert [block.file for block in found if block.language == "yaml"] == ["config/mine.yaml", "config/wider.yaml"]
    assert len(listed()) == 6
    assert all(f"`{command}`" in README.replace("\n", " ") for command in SENTENCES)


def test_links_pictures_and_names():
    for target in re.findall(r"\]\(([^)#\s]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
    headings = [
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", README, re.MULTILINE)
    ]
    for anchor in re.findall(r"\]\(#([^)]+)\)", README):
        assert anchor in headings, anchor
    for name in re.findall(r"`((?:nmt|workflow|tests|config|profiles)/[\w./-]*)`", README):
        assert (ROOT / name).exists() or name in ("config/NAME.yaml", "config/mine.yaml", "config/wider.yaml"), name
    for picture in (ROOT / "docs" / "images").iterdir():
        assert picture.stat().st_size < 200_000 and f"docs/images/{picture.name}" in README, picture.name
