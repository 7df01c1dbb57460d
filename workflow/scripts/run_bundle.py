"""Train, translate and read by force what a bundle holds, as far as the time goes; run again to continue.

Needs torch, numpy, safetensors and typer alone. What is finished is packed into new archives, results-1.zip and so on,
each once; unpacked into the results at home they take the place of what snakemake would have computed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.interruption import TEMPORARY_FAILURE
from workflow.bundling import pack, unpack
from workflow.cli import run

GRACE = 60.0  # seconds that training has to save its state
VOLUME = 12 * 2**20  # bytes of an archive at which the next one is begun


class Runner:
    """Runs `python -m nmt` until a point in time."""

    def __init__(self, results: Path, manifest: dict[str, Any], device: str, deadline: float) -> None:
        self.results, self.manifest, self.device, self.deadline = results, manifest, device, deadline

    def command(self, system: str, name: str, *arguments: object) -> bool:
        """Run one command, its output in a log; whether it came to its end in time. RuntimeError if it failed."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            return False
        log = self.results / "logs" / f"{system}-{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "nmt", *map(str, arguments), "--device", self.device]
        with log.open("a") as file, subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT) as process:
            try:
                code = process.wait(left)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
                try:
                    code = process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    return False
        if code not in (0, TEMPORARY_FAILURE, -signal.SIGTERM):
            raise RuntimeError(f"{system}: `nmt {name}` failed with exit code {code}; see {log}")
        return code == 0

    def train(self, system: str) -> bool:
        """Train a system, or go on with it; whether its model is there."""
        folder, source, target = self.results, *self.manifest["directions"][system].split("-")
        model = folder / "models" / system
        if (model / "provenance.json").exists():  # what is written last
            return True
        text = {
            option: [folder / "binary" / f"{name}.{language}" for language in (source, target)]
            for option, name in (("--train", "train"), ("--dev", "dev"), ("--curve", self.manifest["curve"]))
        }
        return self.command(
            system, "train", "train", "--system", folder / "systems" / f"{system}.json",
            "--source-vocabulary", folder / "vocabulary" / f"{source}.txt",
            "--target-vocabulary", folder / "vocabulary" / f"{target}.txt",
            *(word for option, pair in text.items() for word in (option, *pair)),
            "--state", folder / "state" / system, "--output", model,
        )  # fmt: skip

    def measure(self, system: str) -> bool:
        """Translate a system's texts and read them by force; whether all of it is done."""
        folder, source, target = self.results, *self.manifest["directions"][system].split("-")
        ensemble = self.manifest["ensembles"].get(system)
        models = [word for member in (ensemble or {"members": [system]})["members"]
                  for word in ("--model", folder / "models" / member)]  # fmt: skip
        models += ["--average", ensemble["average"]] if ensemble else []
        search = {key: value for key, value in self.manifest["decoding"][system].items() if key != "alignment_step"}
        texts = self.manifest["measurements"][system]
        done = True
        for text in texts["translate"]:
            output = folder / "translations" / system / f"{text}.jsonl"
            shown = text in self.manifest["attention"].get(system, [])
            matrices = output.with_suffix(".attention.npz")  # written last
            done &= (matrices if shown else output).exists() or self.command(
                system, "translate", "translate", *models, "--source", folder / "text" / f"{text}.{source}",
                "--decoding", json.dumps(search), "--output", output, *(["--attention", matrices] if shown else []),
                "--quiet",
            )  # fmt: skip
        for text in texts["force"]:
            output = folder / "forced" / system / f"{text}.json"
            attention = ["--attention", output.with_suffix(".attention.npz")] if text not in texts["translate"] else []
            done &= output.exists() or self.command(
                system, "force", "force", *models, "--source", folder / "text" / f"{text}.{source}",
                "--target", folder / "text" / f"{text}.{target}", "--output", output, *attention, "--quiet",
            )  # fmt: skip
        return done


def main(
    bundle: Annotated[Path, typer.Option(help="What bundle.py packed.")],
    results: Annotated[Path, typer.Option(help="Folder to work in; it must stay there for the next call.")],
    output: Annotated[Path, typer.Option(help="Folder for results-N.zip.")],
    minutes: Annotated[float, typer.Option(help="Training is told to stop after this long, with a minute to save.")],
    system: Annotated[list[str] | None, typer.Option(help="Only this one; repeat, the most telling first.")] = None,
    parallel: Annotated[int, typer.Option(min=1, help="Systems at a time.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
    volume: Annotated[int, typer.Option(help="Bytes at which the next archive is begun.")] = VOLUME,
) -> None:
    """Run what a bundle holds as far as the time goes. Exit code 75: not finished, the same command continues."""
    deadline = time.monotonic() + 60 * minutes
    manifest = unpack(bundle, results)
    chosen = list(system or manifest["measurements"])
    if unknown := [name for name in chosen if name not in manifest["measurements"]]:
        raise ValueError(
            f"{bundle}: no system is called {unknown[0]!r}; there are {', '.join(manifest['measurements'])}"
        )
    runner = Runner(results, manifest, device, deadline)
    single = [name for name in chosen if name not in manifest["ensembles"]]
    try:
        with ThreadPoolExecutor(parallel) as pool:
            state = dict(
                zip(single, pool.map(lambda name: runner.train(name) and runner.measure(name), single), strict=True)
            )
        for name in (name for name in chosen if name in manifest["ensembles"]):
            members = manifest["ensembles"][name]["members"]
            trained = all((results / "models" / member / "provenance.json").exists() for member in members)
            state[name] = trained and runner.measure(name)
    finally:
        written = pack(results, output, volume)
    for name in chosen:
        print(f"{name}: {'done' if state[name] else 'to be continued'}")
    print(f"to bring back: {', '.join(map(str, written)) or 'nothing new'}")
    sys.exit(0 if all(state.values()) else TEMPORARY_FAILURE)


if __name__ == "__main__":
    run(main)
