"""The documentation is true: every example runs, every link and named file is there, the recipes work as written."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from nmt.attention import Readings
from tests.fork_server import write_client
from tests.nmt.copying import INVERSE, SYSTEM, environment, invoke, train, write_texts

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODELS = Path("results/miniature/models")


def blocks(page: Path, language: str) -> list[str]:
    """The fenced examples of a page in one language."""
    return [text for kind, text in FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The copy task's texts and models."""
    folder = tmp_path_factory.mktemp("docs")
    write_texts(folder)
    for name, system in (("model", SYSTEM), ("inverse", INVERSE)):
        train(folder, name, system)
    return folder


@pytest.fixture(scope="module")
def workspace(texts, tmp_path_factory):
    """A folder where what the examples name is there, as after `./reproduce`, only that the models are tiny."""
    folder = tmp_path_factory.mktemp("workspace")
    names = {"local-p-general-feed": "model", "global-dot-feed": "model", "de-en-global-dot-dropout-feed": "inverse"}
    for name, model in names.items():
        shutil.copytree(texts / model, folder / MODELS / name)
    for kind, name, original in (
        ("text", "miniature-test.en", "test.en"),
        ("text", "miniature-test.de", "test.de"),
        ("dictionary", "en-de.tsv", "dictionary.tsv"),
    ):
        (folder / "results/miniature" / kind).mkdir(exist_ok=True)
        shutil.copy(texts / original, folder / "results/miniature" / kind / name)
    for kind in ("systems", "vocabulary", "binary"):
        (folder / "results/miniature" / kind).mkdir()
    system = SYSTEM | {"training": SYSTEM["training"] | {"epochs": 1}}
    (folder / "results/miniature/systems/global-dot-feed.json").write_text(json.dumps(system))
    for language in ("en", "de"):
        shutil.copy(texts / f"{language}.txt", folder / "results/miniature/vocabulary")
        for part, text in itertools.product(("ids", "offsets"), ("train", "dev")):
            binary = folder / f"results/miniature/binary/{text}.{language}.{part}.npy"
            shutil.copy(texts / f"train.{language}.{part}.npy", binary)
    return folder


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Variables under which `python -m nmt` is answered by a server that has torch loaded."""
    folder = tmp_path_factory.mktemp("bin")
    command = [sys.executable, "-m", "tests.fork_server", str(folder / "socket")]
    server = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        write_client(folder / "python", folder / "socket")
        yield environment() | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    finally:
        server.kill()
        server.wait()


def test_shell_examples_run(workspace, shell):
    assert [page.stem for page in PAGES if blocks(page, "bash")] == ["command-line"]
    examples = enumerate(blocks(ROOT / "docs/command-line.md", "bash"), start=1)
    script = "\n".join(f"echo 'example {i}' >&2\n{text}" for i, text in examples)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=workspace, env=shell, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    source = (workspace / "results/miniature/text/miniature-test.en").read_text()
    assert (workspace / "replaced.de").read_text() == source.upper()
    assert (workspace / "plain.de").read_text() == source.upper().replace("E", "<unk>")
    assert (workspace / "ensemble.de").read_text() == source.upper().replace("E", "<unk>")
    assert (workspace / "test.talp").read_text().splitlines()[0].startswith("1-1")
    assert len((workspace / "my-model/curve.jsonl").read_text().splitlines()) == 1
    assert "<svg" in (workspace / "attention.svg").read_text()
    n_best = [line.split(" ||| ") for line in done.stdout.splitlines() if line.startswith("0 ||| ")]
    assert [len(row) for row in n_best] == [3, 3, 3]


def test_python_examples_run(workspace, monkeypatch, capsys):
    monkeypatch.chdir(workspace)
    page = ROOT / "docs/python.md"
    names: dict = {}
    for text in blocks(page, "python"):
        exec(compile(text, str(page), "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("A B C -")
    assert "copy + copy ('en', 'de')" in printed
    assert "A E" in printed  # by the dictionary
    assert printed[-2:] == ["[(0, 0), (1, 1)]", "[(0, 0)]"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_files_and_experiments_exist(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert (page.parent / target).exists(), target
    for anchored, anchor in re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", text):
        headings = re.findall(r"^#+ (.*)$", (page.parent / (anchored or page.name)).read_text(), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    for name in re.findall(r"`((?:nmt|workflow|tests|config)/[\w./-]*)`", text):
        assert (ROOT / name).exists() or name == "config/NAME.yaml", name
    for name in re.findall(r"\./reproduce ([a-z]\w+)", text):
        assert name in ("test", "setup") or (ROOT / "config" / f"{name}.yaml").exists(), name


def test_every_command_and_switch_is_described():
    help_text = invoke("--help")
    commands = re.findall(r"^  (\w+)  ", help_text.split("Commands:")[1], re.MULTILINE)
    described = (ROOT / "docs/command-line.md").read_text()
    assert len(commands) == 9
    for command in commands:
        assert f"`{command}`" in described, command
        assert "Examples:" in invoke(command, "--help")
    readings = (ROOT / "docs/readings.md").read_text()
    columns = {"paper": 3, "as_coded": 4, "corrected": 5}
    rows = {cells[1].strip("` "): cells for cells in (line.split("|") for line in readings.splitlines()) if cells[1:]}
    for name, column in columns.items():
        for switch, value in asdict(Readings.named(name)).items():
            assert rows[switch][column].strip("` ") == value, (name, switch)


def test_the_fields_of_files_are_described(texts, tmp_path):
    described = set(re.findall(r"`([^`\n]+)`", (ROOT / "docs/file-formats.md").read_text()))
    pair = ["--source", texts / "test.en", "--target", texts / "test.de"]
    invoke("force", "--model", texts / "model", *pair, "--output", tmp_path / "forced.json")
    invoke("translate", "--model", texts / "model", *pair[:2], "--output", tmp_path / "test.jsonl", "--n-best", "2",
           "--beam", "2", "--replace-unknown")  # fmt: skip
    invoke("replace", "--translations", tmp_path / "test.jsonl", *pair[:2], "--dictionary", texts / "dictionary.tsv",
           "--output", tmp_path / "r", "--plain", tmp_path / "p", "--counts", tmp_path / "counts.json")  # fmt: skip
    paths = [tmp_path / name for name in ("forced.json", "test.jsonl", "counts.json")]
    paths += [texts / "model" / name for name in ("config.json", "curve.jsonl", "provenance.json")]
    for path in paths:
        text = path.read_text()
        record = json.loads(text.splitlines()[0] if path.suffix == ".jsonl" else text)
        assert set(record) - described == set(), path.name


def apply_changes(page: Path, folder: Path) -> None:
    """Apply the page's diffs to a copy: the lines that are context or taken away must be there, once."""
    for text in blocks(page, "diff"):
        head, *lines = text.splitlines()
        path = folder / head.removeprefix("+++ ")
        before, after = (
            "".join(line[1:] + "\n" for line in lines if line[:1] in ("", " ", sign)) for sign in ("-", "+")
        )
        content = path.read_text()
        assert content.count(before) == 1, f"{path.name} has no longer:\n{before}"
        path.write_text(content.replace(before, after))


def test_a_score_is_added_as_described(texts, tmp_path):
    page = ROOT / "docs/adding-a-score.md"
    for name in ("nmt", "workflow", "config"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    apply_changes(page, tmp_path)
    (test,) = blocks(page, "python")
    (systems,) = blocks(page, "yaml")
    model = SYSTEM["model"] | {"attention": {"scope": "local-p", "score": "scaled_dot"}, "input_feeding": True}
    system = SYSTEM | {"name": "scaled", "model": model, "training": SYSTEM["training"] | {"epochs": 1}}
    script = f"""{test}
test_scaled_dot()
from pathlib import Path
from tests.nmt.copying import train, invoke
from workflow.experiment import load, read_yaml
import nmt.attention
assert nmt.attention.__file__.startswith({str(tmp_path)!r})
texts = Path({str(texts)!r})
train(texts, "scaled", {system!r})
assert len(invoke("translate", "--model", texts / "scaled", "--source", texts / "test.en").splitlines()) == 12
config = read_yaml(Path("config/miniature.yaml"))
config["systems"] |= {yaml.safe_load(systems)["systems"]!r}
config["tables"] = {{"mine": {{"title": "t", "columns": ["perplexity"], "test": "main",
                              "rows": [{{"label": "scaled", "system": "global-scaled-dot-feed"}}]}}}}
config["show"] = ["mine"]
resolved = load(config, Path("config"))["systems"]["global-scaled-dot-feed"]
assert resolved["model"]["attention"]["score"] == "scaled_dot", resolved
"""
    variables = environment() | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
