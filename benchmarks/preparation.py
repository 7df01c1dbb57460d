"""Seconds and memory of a parallel text's way to word indices, on one and on more processes, beside sacremoses alone.

The pipeline's own scripts run as snakemake runs them: prepare (tokenise, filter), vocabulary, and binarise, of which
each language is a job of its own. In each round they run on every number of processes, and before each as many
processes tokenise a sample by sacremoses alone, which have nothing to do with each other: their efficiency is what the
machine itself allows. Seconds are medians of the rounds, and efficiency is their ratio. Memory is what all processes of
a step hold together (pages that they share counted once), looked at once a second, the most of any round.
"""

from __future__ import annotations

import csv
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import psutil
import typer
from sacremoses import MosesTokenizer

from nmt.files import read_json
from nmt.provenance import processor
from workflow.cleaning import clean, raw_lines
from workflow.cli import labelled_path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = ["step", "processes", "pairs", "seconds", "sentences_per_second", "to_sacremoses_a_core", "efficiency"]
COLUMNS += ["peak_mb", "rounds", "cpu", "python", "sacremoses", "numpy"]
SAMPLE = 5_000  # lines of each language
VOCABULARY = 50_000
SECONDS_BETWEEN_LOOKS = 1.0  # at the memory, which takes the processes' time, too


def held(processes: list[subprocess.Popen]) -> float:
    """MB that the processes and their children hold together."""
    total = 0
    for process in processes:
        try:
            family = psutil.Process(process.pid)
            total += sum(each.memory_full_info().pss for each in [family, *family.children(recursive=True)])
        except (psutil.NoSuchProcess, psutil.AccessDenied):  # it has just ended
            continue
    return total / 1e6


def at_once(commands: list[list[str]], processes: int) -> tuple[float, float]:
    """Run the commands, so many at a time; wall seconds and the most MB."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    waiting, running, most, begun = list(commands), [], 0.0, time.perf_counter()
    due = begun + SECONDS_BETWEEN_LOOKS
    while waiting or running:
        while waiting and len(running) < processes:
            running.append(subprocess.Popen([sys.executable, *waiting.pop(0)], cwd=ROOT, env=environment))
        if time.perf_counter() > due:
            most, due = max(most, held(running)), time.perf_counter() + SECONDS_BETWEEN_LOOKS
        time.sleep(0.02)
        for process in [each for each in running if each.poll() is not None]:
            running.remove(process)
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, process.args)
    return time.perf_counter() - begun, most


def steps(texts: list[tuple[str, Path]], folder: Path, processes: int, max_length: int) -> dict[str, list[list[str]]]:
    """The commands of each step."""
    languages = dict.fromkeys(language for language, _ in texts)
    script = {name: f"workflow/scripts/{name}.py" for name in ("prepare", "vocabulary", "binarise")}
    prepare = [script["prepare"], "--filter", "--max-length", str(max_length), "--quiet", "--threads", str(processes)]
    for language, path in texts:
        prepare += ["--text", f"{language}={path.resolve()}"]
    vocabulary = [script["vocabulary"], "--texts", str(folder), "--output", str(folder), "--threads", str(processes)]
    for language in languages:
        prepare += ["--output", f"{language}={folder / f'train.{language}'}"]
        vocabulary += ["--size", f"{language}={VOCABULARY}"]
    prepare += ["--report", str(folder / "train.json")]
    binarise = []
    for language in languages:
        files = {"text": f"train.{language}", "vocabulary": f"{language}.txt", "output": f"binary/train.{language}"}
        binarise.append([script["binarise"], *(f"--{option}={folder / file}" for option, file in files.items())])
    return {"prepare": [prepare], "vocabulary": [vocabulary], "binarise": binarise}


def sacremoses_alone(sample: dict[str, list[str]]) -> float:
    """Seconds it takes a process, once it is loaded."""
    tokenisers = {language: MosesTokenizer(lang=language) for language in sample}
    begun = time.perf_counter()
    for language, lines in sample.items():
        for line in lines:
            tokenisers[language].tokenize(line, escape=False)
    return time.perf_counter() - begun


def draw(texts: list[tuple[str, Path]]) -> dict[str, list[str]]:
    """Cleaned lines of each language, drawn at random."""
    lines = defaultdict(list)
    for language, path in texts:
        lines[language] += map(clean, raw_lines(path))
    return {language: random.Random(1).sample(each, min(SAMPLE, len(each))) for language, each in lines.items()}


def main(
    text: Annotated[list[str], typer.Option(help="a raw text, LANGUAGE=PATH (plain or .gz); repeat, texts are joined")],
    processes: Annotated[int, typer.Option(help="to compare with one")] = 2,
    max_length: Annotated[int, typer.Option(help="leave out pairs over this many words")] = 50,
    rounds: Annotated[int, typer.Option(help="of which the median is taken")] = 3,
    output: Annotated[Path | None, typer.Option(help="CSV file to write; otherwise to the screen")] = None,
) -> None:
    """Prepare a parallel text on one and on more processes and say how long it took."""
    texts = list(map(labelled_path, text))
    sample = draw(texts)
    seconds, most = defaultdict(list), defaultdict(float)
    with tempfile.TemporaryDirectory() as name:
        for _ in range(rounds):
            for count in (1, processes):
                with ProcessPoolExecutor(count) as pool:  # each the whole sample
                    taken = max(pool.map(sacremoses_alone, [sample] * count))
                seconds["sacremoses", count].append(taken / count)
                whole = 0.0
                for step, commands in steps(texts, Path(name), count, max_length).items():
                    taken, memory = at_once(commands, count)
                    whole += taken
                    for key in ((step, count), ("all", count)):
                        most[key] = max(most[key], memory)
                    seconds[step, count].append(taken)
                seconds["all", count].append(whole)
        report = read_json(Path(name, "train.json"))
    sampled = sum(map(len, sample.values()))
    alone = sampled / statistics.median(seconds["sacremoses", 1])
    rows = []
    for (step, count), times in seconds.items():
        median = statistics.median(times)
        pairs = report["lines_out"] if step in ("vocabulary", "binarise") else report["lines_in"]
        speed = (sampled if step == "sacremoses" else len(sample) * pairs) / median
        ratio = f"{speed / count / alone:.1f}" if step in ("sacremoses", "prepare") else ""
        efficiency = f"{statistics.median(seconds[step, 1]) / count / median:.2f}"
        row = [step, count, "" if step == "sacremoses" else pairs, f"{median:.2f}", f"{speed:.0f}", ratio, efficiency]
        row += [f"{most[step, count]:.0f}" if step != "sacremoses" else "", len(times), processor()]
        rows.append([*row, platform.python_version(), version("sacremoses"), version("numpy")])
    if output is None:
        csv.writer(sys.stdout).writerows([COLUMNS, *rows])
        return
    output.parent.mkdir(exist_ok=True)
    with output.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


if __name__ == "__main__":
    typer.run(main)
