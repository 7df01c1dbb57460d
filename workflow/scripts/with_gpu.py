"""Run a command with GPUs of its own: `with_gpu.py --count 1 -- python -m nmt train ...`.

Each device has a lock file. A lock belongs to the open file that the command inherits, so that the system itself frees
it when the command ends, however it ends. The folder of the locks is this machine's and this user's, so that two
experiments share the devices too. A scheduler that has already given the job its devices is not second-guessed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from workflow.cli import run

VISIBLE = "CUDA_VISIBLE_DEVICES"
SECONDS_BETWEEN_TRIES = 1.0


def lock_folder() -> Path:
    """Where the locks lie if not told otherwise: local to the machine, since devices are."""
    return Path(tempfile.gettempdir()) / f"gpu-locks-{os.getuid()}"


def visible_devices() -> list[str]:
    """The devices that a job may use: those of CUDA_VISIBLE_DEVICES, else all that the driver lists."""
    if VISIBLE in os.environ:
        return [device for device in os.environ[VISIBLE].replace(" ", "").split(",") if device]
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    return listed.stdout.split() if listed.returncode == 0 else []


def lock_devices(devices: list[str], count: int, folder: Path) -> list[str] | None:
    """Take the locks of `count` devices for this process and what it becomes; None, and no lock, if too few are free.

    One process at a time looks for devices, so that two that want several never hold half each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "choosing").open("w") as choosing:
        fcntl.flock(choosing, fcntl.LOCK_EX)
        taken: dict[str, int] = {}
        for device in devices:
            file = os.open(folder / device.replace("/", "_"), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                continue
            taken[device] = file
            if len(taken) == count:
                for descriptor in taken.values():
                    os.set_inheritable(descriptor, True)
                return list(taken)
        for descriptor in taken.values():
            os.close(descriptor)
        return None


def main(
    command: Annotated[list[str], typer.Argument(help="what to run, after --")],
    count: Annotated[int, typer.Option(min=1, help="devices it needs")] = 1,
    locks: Annotated[Path | None, typer.Option(help="folder of the locks; default: in the machine's own")] = None,
) -> None:
    """Become a command that sees `count` GPUs which no other such command sees; wait until they are free."""
    devices = visible_devices()
    scheduled = "SLURM_JOB_ID" in os.environ and len(devices) <= count
    if not devices and not scheduled:
        print(f"warning: {count} GPUs asked for, none found; running without", file=sys.stderr, flush=True)
    elif not scheduled:
        if len(devices) < count:
            raise ValueError(f"{count} GPUs asked for, found {', '.join(devices)}; lower `gpu:` under resources")
        told = False
        while (mine := lock_devices(devices, count, locks or lock_folder())) is None:
            if not told:
                print(f"waiting for {count} of the GPUs {', '.join(devices)}", file=sys.stderr, flush=True)
            told = True
            time.sleep(SECONDS_BETWEEN_TRIES)
        os.environ[VISIBLE] = ",".join(mine)
    os.execvp(command[0], command)


if __name__ == "__main__":
    run(main)
