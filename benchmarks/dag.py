"""How much of an experiment's run is its jobs' own work, and how much is snakemake, starting processes and importing.

A fresh clone of the last commit runs `./reproduce NAME` with this environment. Each Python process of the run says at
its end how much processor time it took, and how much of it before its first line and in import statements. What is
left of a job is its own work; the rest of wall time x cores is outside it, cores that had nothing to do among it.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer

from nmt.provenance import processor

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = ["experiment", "what", "processes", "cpu_seconds", "start_seconds", "import_seconds", "work_seconds"]
COLUMNS += ["wall_seconds", "cores", "outside_share", "cpu", "python", "commit"]
WATCH = """
import atexit, builtins, json, os, resource, sys, time

started, depth, imports, original = time.process_time(), 0, 0.0, builtins.__import__


def timed(*arguments, **keywords):
    global depth, imports
    if depth:
        return original(*arguments, **keywords)
    depth, begun = 1, time.process_time()
    try:
        return original(*arguments, **keywords)
    finally:
        depth, imports = 0, imports + time.process_time() - begun


def say(process=os.getpid()):
    if os.getpid() == process:  # not one that was forked
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        record = {"arguments": sys.orig_argv, "process": process, "parent": os.getppid(), "start": started}
        record |= {"imports": imports, "own": own.ru_utime + own.ru_stime}
        record |= {"children": children.ru_utime + children.ru_stime}
        with open(os.path.join(os.environ["WATCHED"], f"{process}-{time.time_ns()}.json"), "w") as file:
            json.dump(record, file)


builtins.__import__ = timed
atexit.register(say)
"""


def what(arguments: list[str]) -> str:
    """A process by its command line: snakemake, a script's name, or nmt and the command."""
    for index, argument in enumerate(arguments):
        if argument == "nmt" and arguments[index - 1] == "-m":
            return f"nmt {arguments[index + 1]}"
        if argument.endswith((".py", "snakemake")):
            return Path(argument).name
    return "other"


def summed(records: list[dict]) -> dict[str, dict[str, float]]:
    """Processor seconds by kind of process; those of children that say nothing themselves are their parent's work."""
    told: dict[int, float] = defaultdict(float)
    for record in records:
        told[record["parent"]] += record["own"] + record["children"]
    kinds: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(("processes", "cpu", "start", "imports"), 0))
    for record in records:
        kind = kinds[what(record["arguments"])]
        children = 0 if what(record["arguments"]) == "snakemake" else record["children"] - told[record["process"]]
        kind["processes"] += 1
        kind["cpu"] += record["own"] + max(children, 0)
        kind["start"] += record["start"]
        kind["imports"] += record["imports"]
    for name, kind in kinds.items():
        kind["work"] = 0 if name == "snakemake" else kind["cpu"] - kind["start"] - kind["imports"]
    return kinds


def main(
    name: Annotated[str, typer.Argument(help="an experiment, config/NAME.yaml")] = "miniature",
    cores: Annotated[int, typer.Option(help="of snakemake")] = os.cpu_count() or 1,
    output: Annotated[Path | None, typer.Option(help="CSV file to write; otherwise to the screen")] = None,
    keep: Annotated[Path | None, typer.Option(help="folder to leave the clone in, with its results")] = None,
) -> None:
    """Run an experiment in a fresh clone and say where its time went."""
    with tempfile.TemporaryDirectory() as folder:
        clone, watched, hook = (Path(folder, part) for part in ("clone", "watched", "hook"))
        watched.mkdir()
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        environment = {**os.environ, "VENV": sys.prefix, "PYTHONPATH": str(hook), "WATCHED": str(watched)}
        begun = time.monotonic()
        subprocess.run(["./reproduce", name, "--cores", str(cores)], cwd=clone, env=environment, check=True)
        wall = time.monotonic() - begun
        records = [json.loads(path.read_text(encoding="utf-8")) for path in watched.iterdir()]
        describe = ["git", "-C", str(clone), "describe", "--always"]
        commit = subprocess.run(describe, check=True, capture_output=True, text=True).stdout.strip()
        if keep is not None:
            shutil.move(clone, keep)
    kinds = dict(sorted(summed(records).items(), key=lambda item: -item[1]["cpu"]))
    everything = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = {key: sum(kind[key] for kind in kinds.values()) for key in ("processes", "start", "imports", "work")}
    kinds["all"] = total | {"cpu": everything.ru_utime + everything.ru_stime}
    rows = []
    for kind, taken in kinds.items():
        row = [name, kind, taken["processes"], *(f"{taken[key]:.2f}" for key in ("cpu", "start", "imports", "work"))]
        run = [f"{wall:.1f}", cores, f"{1 - taken['work'] / (wall * cores):.3f}", processor()] if kind == "all" else []
        rows.append([*row, *run, *([platform.python_version(), commit] if run else [])])
    rows = [row + [""] * (len(COLUMNS) - len(row)) for row in rows]
    if output is None:
        csv.writer(sys.stdout).writerows([COLUMNS, *rows])
        return
    with output.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


if __name__ == "__main__":
    typer.run(main)
