"""The workflow as snakemake sees it: what an experiment computes, and what makes a system train again."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "workflow", "profiles", "config", "nmt")  # what a run needs of the project
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
TINY = "config/tiny.yaml"
TINY_SYSTEMS = 5


def snakemake(folder: Path, *arguments: str, seconds: int = 120) -> subprocess.CompletedProcess[str]:
    """Run snakemake in a folder that holds the project's parts."""
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip


def planned(folder: Path, *arguments: str) -> dict[str, int]:
    """How many jobs of each rule a dry run lists."""
    found = snakemake(folder, "--dry-run", *arguments)
    assert found.returncode == 0, found.stdout + found.stderr
    statistics = (found.stdout + found.stderr).rpartition("Job stats:")[2].partition("total")[0]
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", statistics, re.MULTILINE)}


def copy_project(folder: Path) -> Path:
    """The parts of the project that a run needs, in a folder of their own."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which nothing was computed; its folder's name wants quoting."""
    folder = tmp_path_factory.mktemp("project") / "a 'copy' of it"
    folder.mkdir()
    return copy_project(folder)


def test_the_paper_is_planned_in_full(project: Path) -> None:
    jobs = planned(project, "--configfile=config/luong2015.yaml")
    assert jobs["train"] == jobs["system"] == 20
    assert jobs["extract"] + jobs["extract_gold"] == 8  # 3 training corpora, dev, 3 tests, gold
    assert jobs["fetch"] == 7  # newstest2015 of both directions lies in one archive
    # en-de: 14 systems and the ensemble on newstest2014, the ensemble on newstest2015; de-en: 4 systems
    assert jobs["translate"] == jobs["score"] == 14 + 1 + 1 + 4
    assert jobs["score_alignment"] == 10 + 1 and jobs["score_aligner"] == 1
    assert jobs["table"] + jobs["samples"] == 8
    assert jobs["learning_curves"] == jobs["bleu_by_length"] == jobs["alignment_matrices"] == 1
    assert "generate" not in jobs  # nothing of the default experiment


def test_the_default_experiment_is_the_miniature(project: Path) -> None:
    jobs = planned(project)
    assert jobs["generate"] == 1 and "fetch" not in jobs
    assert jobs == planned(project, "--configfile=config/miniature.yaml")


def test_a_table_alone_needs_its_systems_only(project: Path) -> None:
    jobs = planned(project, "--configfile=config/luong2015.yaml", "results/luong2015/tables/table3.csv")
    assert jobs["train"] == 4 and jobs["table"] == 1 and "report" not in jobs


def test_errors_are_said_in_a_line(project: Path) -> None:
    found = snakemake(project, "-n", f"--configfile={TINY}", "--config", "titel=x")
    assert found.returncode == 1
    assert (
        "config/tiny.yaml: at the top level: unknown key `titel`: did you mean `title`?" in found.stdout + found.stderr
    )
    (project / "config" / "twice.yaml").write_text("name: twice\nsystems:\n  a: {}\n  a: {}\n")
    found = snakemake(project, "-n", "--configfile=config/twice.yaml")
    assert "twice.yaml:4: `a` stands already in line 3" in found.stdout + found.stderr


def test_values_reach_no_shell_unquoted(project: Path) -> None:
    title = 'it\'s "quoted" $(touch pwned) `touch pwned`; touch pwned & {braces} %s \\n * | > pwned'
    config = yaml.safe_load((project / TINY).read_text()) | {"name": "quoting", "title": title}
    (project / "config" / "quoting.yaml").write_text(yaml.safe_dump(config))
    found = snakemake(project, "--configfile=config/quoting.yaml", "results/quoting/config.yaml")
    assert found.returncode == 0, found.stdout + found.stderr
    assert yaml.safe_load((project / "results/quoting/config.yaml").read_text())["title"] == title
    assert not list(project.rglob("pwned"))


def test_paths_of_ones_own_files_reach_no_shell_unquoted(project: Path) -> None:
    """And one that is not there is named before anything runs."""
    config = yaml.safe_load((project / TINY).read_text()) | {"name": "own"}
    files = {language: f'it\'s $HOME; touch pwned `touch pwned` & "{language}".txt' for language in ("en", "de")}
    config["data"]["dev"] = {"name": "mine", "files": files}
    (project / "config" / "own.yaml").write_text(yaml.safe_dump(config))
    target = ("--configfile=config/own.yaml", "results/own/raw/mine.en")
    (project / files["en"]).write_text("a\n")
    found = snakemake(project, *target)
    assert found.returncode == 1
    assert "Missing input files for rule extract" in found.stdout + found.stderr
    assert files["de"] in found.stdout + found.stderr
    (project / files["de"]).write_text("b\n")
    found = snakemake(project, *target)
    assert found.returncode == 0, found.stdout + found.stderr
    assert (project / "results/own/raw/mine.de").read_text() == "b\n"
    assert not list(project.rglob("pwned"))


def test_a_place_for_results_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    folder = copy_project(tmp_path)
    (folder / "results").write_text("a file, for instance")
    found = snakemake(folder, f"--configfile={TINY}", "results/tiny/config.yaml")
    assert found.returncode == 1
    assert "results: results go here, expected a folder that can be written to" in found.stdout + found.stderr
    assert "Traceback" not in found.stdout + found.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which config/tiny.yaml was run to its end."""
    folder = copy_project(tmp_path_factory.mktemp("finished"))
    found = snakemake(folder, f"--configfile={TINY}", seconds=600)
    assert found.returncode == 0, (found.stdout + found.stderr)[-5000:]
    return folder


@pytest.fixture
def edited(finished: Path) -> Iterator[Callable[[str, str, str], None]]:
    """Replaces text in a file of the finished project, and puts it back after the test."""
    before: dict[Path, str] = {}

    def edit(name: str, old: str, new: str) -> None:
        path = finished / name
        before.setdefault(path, path.read_text())
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    yield edit
    for path, text in before.items():
        path.write_text(text)


@pytest.mark.end_to_end
def test_every_table_and_figure_is_there(finished: Path) -> None:
    results = finished / "results" / "tiny"
    shown = yaml.safe_load((results / "config.yaml").read_text())
    for name in shown["tables"]:
        for form in ("csv", "md", "tex"):
            assert (results / "tables" / f"{name}.{form}").stat().st_size, name
    for name in shown["figures"]:
        for form in ("svg", "png"):
            assert (results / "figures" / f"{name}.{form}").stat().st_size, name
    report = (results / "report.html").read_text()
    titles = [each["title"].partition("{test}")[0] for kind in ("tables", "figures") for each in shown[kind].values()]
    places = [report.index(title) for title in titles]
    assert places == sorted(places)


@pytest.mark.end_to_end
def test_a_second_run_has_nothing_to_do(finished: Path) -> None:
    assert planned(finished, f"--configfile={TINY}") == {}


@pytest.mark.end_to_end
def test_what_must_not_train_again(finished: Path, edited: Callable) -> None:
    extra = "{name: extra, files: {en: results/tiny/raw/miniature-dev.en, de: results/tiny/raw/miniature-dev.de}}"
    edited(
        TINY,
        "title: Every station once",
        "title: Another title  # and a comment\nmirror: [elsewhere]\ntensorboard: true",
    )
    edited(TINY, "data: {memory_mb: 500, minutes: 5}", "data: {threads: 2, memory_mb: 700, minutes: 6}")
    edited(TINY, "train: {memory_mb: 1000, minutes: 5}", "train: {threads: 2, memory_mb: 2000, minutes: 7, gpu: 1}")
    edited(TINY, "decoding: {beam: 2}", "decoding: {beam: 3}")
    edited(TINY, "label: Base,", "label: The base system,")
    edited(TINY, "tests: {", f"tests: {{extra: {extra}, ")
    edited("workflow/rules/train.smk", "rule train:\n", "# a comment\nrule train:\n")
    edited("workflow/rules/train.smk", "> {log:q} 2>&1", ">> {log:q} 2>&1")
    edited("workflow/scripts/prepare.py", "import os\n", "import os  # a comment\n")
    edited("nmt/luong.py", "import torch\n", "import torch  # a comment\n")
    jobs = planned(finished, f"--configfile={TINY}", "--cores", "1")
    assert not {"train", "generate", "prepare_training", "vocabulary", "system"} & set(jobs)
    assert jobs["translate"] == 7 and jobs["table"] > 0  # the beam and the label did change something


@pytest.mark.end_to_end
def test_touched_files_are_no_other_files(finished: Path) -> None:
    for path in (finished / "results" / "tiny").rglob("*"):
        if path.parent.name in ("raw", "text", "vocabulary", "binary", "systems"):
            path.touch()
    assert planned(finished, f"--configfile={TINY}") == {}


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("name", "old", "new", "systems"),
    [
        (TINY, "dropout: {training: {epochs: 1,", "base: {seed: 2}\n  dropout: {training: {epochs: 1,", TINY_SYSTEMS),
        (TINY, "systems:\n", "systems:\n  local-m-general-feed: {model: {attention: {window: 3}}}\n", 1),
        ("config/papers/luong2015.yaml", "scope: local-p, score: general", "scope: local-p, score: dot", 1),
        (TINY, "epochs: 1, halve_after: 1}\n  decoding", "epochs: 2, halve_after: 1}\n  decoding", 2),
        (TINY, "vocabulary: {en: 100", "vocabulary: {en: 99", TINY_SYSTEMS),
        (TINY, "seed: 7", "seed: 8", TINY_SYSTEMS),
    ],
    ids=[
        "seed of what all extend",
        "one system",
        "one system of the paper",
        "defaults that others override",
        "vocabulary",
        "text",
    ],
)
def test_what_must_train_again(finished: Path, edited: Callable, name: str, old: str, new: str, systems: int) -> None:
    edited(name, old, new)
    assert planned(finished, f"--configfile={TINY}")["train"] == systems


@pytest.mark.end_to_end
def test_a_killed_run_goes_on(finished: Path) -> None:
    """A model that was lost comes back from its training state, not from training anew."""
    results = finished / "results" / "tiny"
    weights = results / "models" / "base" / "model.safetensors"
    before = weights.read_bytes()
    weights.unlink()
    found = snakemake(finished, f"--configfile={TINY}", str(weights.relative_to(finished)))
    assert found.returncode == 0, found.stdout + found.stderr
    assert weights.read_bytes() == before


SYSTEM, TEST = "de-en-global-location", "miniature-test2"
STATIONS = (  # a log of each, in the order of the data's way; it is there once the job has begun
    "generate", "prepare/train", "vocabulary", "binarise/train.en", "dictionary", f"train/{SYSTEM}",
    f"translate/{SYSTEM}/{TEST}", f"replace/{SYSTEM}/{TEST}", f"score/{SYSTEM}/{TEST}",
    "table/table3",
)  # fmt: skip


def kill_within(folder: Path, arguments: list[str], log: Path, delay: float) -> None:
    """Start snakemake, and kill it (SIGKILL), its jobs with it, `delay` seconds after a log appeared."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    with (folder / "output").open("w") as output:
        run = subprocess.Popen(
            command, cwd=folder, env=ENVIRONMENT, stdout=output, stderr=output, start_new_session=True
        )
        end = time.monotonic() + 120
        while not log.exists() and run.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(delay)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()


@pytest.mark.end_to_end
def test_snakemake_killed_at_every_station_ends_as_if_it_had_not_been(finished: Path, tmp_path: Path) -> None:
    """Each time the same command, after what the message of the first says; what a killed job left is made again."""
    folder, moments = copy_project(tmp_path), random.Random(3)
    arguments = [f"--configfile={TINY}", "--config", "show=[table3]", "--", "results/tiny/tables/table3.csv"]
    kills = 0
    for station in STATIONS:
        log = folder / "results" / "tiny" / "logs" / f"{station}.log"
        if log.exists():  # its turn came before an earlier one's
            continue
        if kills == 1:
            refused = snakemake(folder, *arguments)
            assert refused.returncode == 1
            assert "--unlock" in refused.stdout + refused.stderr
        if kills:
            assert snakemake(folder, "--unlock", *arguments).returncode == 0
        kill_within(folder, arguments, log, moments.uniform(0.0, 0.7))
        assert log.exists(), (folder / "output").read_text()[-3000:]
        kills += 1
    assert kills >= 8
    assert snakemake(folder, "--unlock", *arguments).returncode == 0
    found = snakemake(folder, *arguments)
    assert found.returncode == 0, (found.stdout + found.stderr)[-3000:]
    made = [path for path in (folder / "results" / "tiny").rglob("*") if path.is_file()]
    parts = ("raw", "text", "vocabulary", "binary", "dictionary", "translations", "forced", "scores")
    compared = [path for path in made if path.relative_to(folder / "results" / "tiny").parts[0] in parts]
    compared += [path for path in made if path.name in ("model.safetensors", "table3.csv")]
    assert len(compared) > 30
    for path in compared:
        assert path.read_bytes() == (finished / path.relative_to(folder)).read_bytes(), path
