"""Each job a device of its own, and no device lost to a job that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOW = "echo $CUDA_VISIBLE_DEVICES >> seen; echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done"


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[list[subprocess.Popen]]:
    """The jobs of a test, ended with it."""
    started: list[subprocess.Popen] = []
    yield started
    for job in started:
        job.kill()
        job.wait()


def start(
    jobs: list, folder: Path, count: int = 1, visible: str | None = "0,1", shell: str = SHOW, **environment: str
) -> subprocess.Popen:
    """A job on pretended devices."""
    folder.mkdir(exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "CUDA"))}
    command = [sys.executable, ROOT / "workflow/scripts/with_gpu.py", "--count", str(count)]
    command += ["--locks", folder.parent / "locks", "--", "bash", "-c", shell]
    given = {"PYTHONPATH": str(ROOT)} | environment | ({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    job = subprocess.Popen(command, cwd=folder, env=inherited | given, stderr=subprocess.PIPE, text=True)
    jobs.append(job)
    return job


def device(folder: Path, seconds: float = 20.0) -> str:
    """What a job saw, once it runs."""
    end = time.monotonic() + seconds
    while not (folder / "pid").exists():
        assert time.monotonic() < end, f"{folder.name} does not run"
        time.sleep(0.02)
    return (folder / "seen").read_text().strip()


def test_running_jobs_never_share_a_device_and_a_killed_one_frees_its(tmp_path: Path, jobs: list) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    start(jobs, first)
    assert device(first) == "0"
    start(jobs, second)
    assert device(second) == "1"
    waiting = start(jobs, third)
    assert waiting.stderr.readline() == "waiting for 1 of the GPUs 0, 1\n"
    assert not (third / "seen").exists()
    os.kill(int((second / "pid").read_text()), signal.SIGKILL)
    assert device(third) == "1"


def test_a_job_of_two_devices_waits_for_both_and_holds_neither_meanwhile(tmp_path: Path, jobs: list) -> None:
    one, two, more = (tmp_path / name for name in ("one", "two", "more"))
    start(jobs, one)
    assert device(one) == "0"
    waiting = start(jobs, two, count=2)
    assert "waiting for 2" in waiting.stderr.readline()
    start(jobs, more, shell=SHOW.replace("while", "exit; while"))
    assert device(more) == "1"
    (one / "go").touch()
    assert device(two) == "0,1"


def test_the_command_takes_the_place_of_the_script(tmp_path: Path, jobs: list) -> None:
    """Signals reach it, and its exit code is seen."""
    job = start(jobs, tmp_path / "job", shell="exit 75")
    assert job.wait(20) == 75
    job = start(jobs, tmp_path / "signalled")
    device(tmp_path / "signalled")
    assert int((tmp_path / "signalled" / "pid").read_text()) == job.pid


def test_more_devices_than_there_are(tmp_path: Path, jobs: list) -> None:
    job = start(jobs, tmp_path / "job", count=3)
    assert job.wait(20) == 1
    assert job.stderr.read() == "error: 3 GPUs asked for, found 0, 1; lower `gpu:` under resources\n"


def test_without_devices_it_runs_and_says_so(tmp_path: Path, jobs: list) -> None:
    job = start(jobs, tmp_path / "job", visible="", shell="exit 3")
    assert job.wait(20) == 3
    assert "none found" in job.stderr.read()


def test_the_devices_that_slurm_gave_are_taken_as_they_are(tmp_path: Path, jobs: list) -> None:
    """In a job of Slurm's, `0` may be another device than the next job's `0`."""
    for name in ("one", "two"):
        start(jobs, tmp_path / name, visible="0", SLURM_JOB_ID="1")
        assert device(tmp_path / name) == "0"
