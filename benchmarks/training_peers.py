"""Target words a second of training: this package, OpenNMT-py and JoeyNMT in turns.

Each system makes whole updates (forward, backward, clipping, SGD) by its own classes, in its own process and its own
Python. Ours goes through `nmt.training.train`. One works while the others wait; a figure is the median over the turns
of an update's mean time in one, the product rate the median over the turns of the best of ten square products.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from common import RESULTS, Worker, machine, write_csv
from training_step import operations, product_rate

from nmt.attention import AttentionConfig
from nmt.luong import LuongConfig


@dataclass(frozen=True)
class Sizes:
    """What is trained: as many source words as target words, `</s>` counted in the latter."""

    layers: int
    hidden: int  # and width of the embeddings
    vocabulary: int  # of both sides
    batch: int  # sentence pairs
    words: int
    threads: int
    device: str = "cpu"
    precision: str = "float32"  # of ours; the peers train in float32
    scope: str = "global"  # of our attention; that of the peers

    def operations(self) -> float:
        """Floating-point operations of our model's products a target word."""
        config = LuongConfig(
            self.vocabulary, self.vocabulary, self.layers, self.hidden, self.hidden,
            input_feeding=True, attention=AttentionConfig(self.scope),
        )  # fmt: skip
        return operations(config, self.words)


SIZES = {
    "2 x 256": Sizes(2, 256, 8000, 64, 12, threads=2),
    "miniature": Sizes(1, 96, 800, 16, 12, threads=1),
    "paper": Sizes(4, 1000, 50_000, 128, 28, threads=8, device="cuda", precision="bfloat16", scope="local-p"),
}
UPDATES_A_TURN = {"2 x 256": 2, "miniature": 20, "paper": 20}


def measure(name: str, pythons: dict[str, Path], turns: int) -> list[dict[str, Any]]:
    """A row a system; pythons: by the name of its worker, ours first."""
    sizes = SIZES[name]
    torch.set_num_threads(sizes.threads)
    workers = [Worker(python, script, asdict(sizes)) for script, python in pythons.items()]
    seconds: list[list[float]] = [[] for _ in workers]
    rates = []
    for turn in range(turns + 1):
        rates.append(product_rate(sizes.device, sizes.precision))
        for worker, taken in zip(workers, seconds, strict=True):
            answer = worker.ask(steps=UPDATES_A_TURN[name])
            if turn > 0:  # the first is to warm up
                taken.append(answer["seconds"])
    for worker in workers:
        worker.close()
    rate, medians = statistics.median(rates), [statistics.median(taken) for taken in seconds]
    rows = []
    for worker, median in zip(workers, medians, strict=True):
        speed = sizes.batch * sizes.words / median
        rows.append({
            "size": name, "system": worker.facts["system"], **asdict(sizes),
            "milliseconds": f"{median * 1e3:.1f}",
            "words_per_second": f"{speed:.0f}",
            "ours_is_faster_by": f"{median / medians[0]:.2f}",
            "gflops_of_products": f"{rate / 1e9:.0f}",
            "utilisation": f"{sizes.operations() * speed / rate:.3f}",
            "updates": len(seconds[0]) * UPDATES_A_TURN[name],
            **{key: worker.facts[key] for key in ("torch", "python")},
            "machine": machine(sizes.device),
        })  # fmt: skip
    return rows


def main(
    opennmt: Annotated[Path | None, typer.Option(help="Python that has OpenNMT-py 3.5.1")] = None,
    joeynmt: Annotated[Path | None, typer.Option(help="Python that has JoeyNMT 2.3.0")] = None,
    size: Annotated[
        list[str] | None, typer.Option(help=f"of {', '.join(SIZES)}; repeatable; those of a CPU if left out")
    ] = None,
    turns: Annotated[int, typer.Option(help="of each system, after one to warm up")] = 12,
    output: Annotated[Path, typer.Option(help="CSV file")] = RESULTS / "training_cpu.csv",
) -> None:
    """Measure the systems whose Python is given beside ours."""
    pythons = {"train_ours": Path(sys.executable), "train_opennmt": opennmt, "train_joeynmt": joeynmt}
    given = {script: python for script, python in pythons.items() if python is not None}
    names = size or [name for name, sizes in SIZES.items() if sizes.device == "cpu"]
    write_csv(output, [row for name in names for row in measure(name, given, turns)])


if __name__ == "__main__":
    typer.run(main)
