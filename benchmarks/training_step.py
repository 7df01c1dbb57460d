"""Target words a second of a training step (forward, backward, clipping, SGD), plain path against fast path, on a GPU
also the fast path recorded as a CUDA graph.

The variants and paths take turns, so that whatever else the machine does falls on all alike; each figure is the median
of the turns. Utilisation is the arithmetic of the model's products (3 times the forward pass) over what the machine's
own product of square matrices reaches in the same run.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer
from common import seconds

from nmt.attention import AttentionConfig
from nmt.interface import Batch
from nmt.luong import LuongConfig, LuongModel
from nmt.optimiser import TrainingConfig, make_optimiser
from nmt.recorded import CudaRecorder
from nmt.training import step as training_step

VARIANTS = ["none", "none-feed", "global-location-feed", "global-dot-feed", "global-general-feed"]
VARIANTS += ["global-concat-feed", "local-m-general-feed", "local-p-dot-feed", "local-p-general-feed", "global-general"]
COLUMNS = ["variant", "path", "layers", "hidden", "vocabulary", "batch", "words", "threads", "milliseconds"]
COLUMNS += ["words_per_second", "speedup", "utilisation", "gflops", "torch", "device", "precision"]


def parse_variant(variant: str) -> tuple[AttentionConfig | None, bool]:
    """`SCOPE-SCORE[-feed]` or `none[-feed]`: the attention, and whether h~ is fed."""
    name, feed = variant.removesuffix("-feed"), variant.endswith("-feed")
    if name == "none":
        return None, feed
    scope, score = name.rsplit("-", 1)
    return AttentionConfig(scope, score), feed


def make_batch(vocabulary: int, size: int, words: int, device: str) -> Batch:
    """Sentences of `words` source words and `words` target words, `</s>` included, without padding."""
    source, target = torch.randint(3, vocabulary, (2, size, words), device=device)
    length = torch.full((size,), words, device=device)
    return Batch(source, length, target.roll(1, 1), target, length)


def make_step(config: LuongConfig, batch: Batch, device: str, precision: str, recorded: bool) -> Callable[[], None]:
    """One update as training makes it; recorded as training on a GPU does, but for reading the batch."""
    torch.manual_seed(1)
    model = LuongModel(config)
    model.initialise(torch.Generator().manual_seed(1))
    model.to(device).train()
    training = TrainingConfig(batch_size=len(batch.source), precision=precision)
    optimiser = make_optimiser(model, training)
    optimiser.learning_rate = 0.1
    go_on = torch.tensor(False, device=device)  # not stopped

    def step() -> None:
        training_step(model, batch, training, optimiser, go_on)

    if recorded:
        recorder = CudaRecorder(torch.device(device))
        recorder.run(step)
        return recorder.record(step).replay
    return step


def product_rate(device: str, precision: str = "float32") -> float:
    """Floating-point operations a second of a square product, the best of ten."""
    size = 1024 if device == "cpu" else 8192
    a, b, out = torch.randn(3, size, size, device=device, dtype=getattr(torch, precision))
    return 2 * size**3 / min(seconds(lambda: torch.mm(a, b, out=out), device) for _ in range(10))


def operations(config: LuongConfig, words: int) -> float:
    """Of the products a target word takes part in, forward and backward, as many source words as target words."""
    n, e = config.hidden, config.embedding
    lstm = 8 * n * (e + n + (config.layers - 1) * 2 * n)
    total = 2 * lstm + 8 * n * n * config.input_feeding + 2 * n * config.target_vocabulary
    if config.attention is not None:
        projections = {"general": 1, "concat": 2, "concat_identity": 1}.get(config.attention.score, 0)
        projections += 2 + (config.attention.scope == "local-p")
        total += 2 * n * n * projections + 4 * n * words
    return 3 * total


def measure(
    configs: dict[tuple[str, str], LuongConfig], batch: Batch, runs: int, device: str, precision: str
) -> dict[tuple[str, str], float]:
    """Median seconds of a step of each variant and path."""
    steps = {
        (name, path): make_step(config, batch, device, precision, path == "recorded")
        for (name, path), config in configs.items()
    }
    taken: dict[tuple[str, str], list[float]] = {key: [] for key in steps}
    for turn in range(runs + 2):
        for key, step in steps.items():
            passed = seconds(step, device)
            if turn >= 2:  # after two to warm up
                taken[key].append(passed)
    return {key: statistics.median(times) for key, times in taken.items()}


def main(
    layers: Annotated[int, typer.Option(help="LSTM layers of encoder and of decoder")] = 1,
    hidden: Annotated[int, typer.Option(help="units of a layer, and width of the embeddings")] = 96,
    vocabulary: Annotated[int, typer.Option(help="words of either vocabulary")] = 800,
    batch: Annotated[int, typer.Option(help="sentence pairs")] = 16,
    words: Annotated[int, typer.Option(help="words of a sentence, `</s>` included")] = 12,
    dropout: Annotated[float, typer.Option(help="share of a layer's input that is dropped")] = 0.0,
    threads: Annotated[int, typer.Option(help="of torch")] = 1,
    precision: Annotated[str, typer.Option(help="float32 or bfloat16")] = "float32",
    runs: Annotated[int, typer.Option(help="timed steps, of which the median is taken")] = 30,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    variant: Annotated[list[str] | None, typer.Option(help="SCOPE-SCORE[-feed] or none[-feed]; repeatable")] = None,
    output: Annotated[Path | None, typer.Option(help="CSV file to append to; otherwise to the screen")] = None,
) -> None:
    """Measure each variant's training step by the plain and by the fast path."""
    torch.set_num_threads(threads)
    configs = {}
    for name in variant or VARIANTS:
        attention, feed = parse_variant(name)
        for path in ("plain", "fast") if device == "cpu" else ("plain", "fast", "recorded"):
            configs[name, path] = LuongConfig(
                source_vocabulary=vocabulary, target_vocabulary=vocabulary, layers=layers, hidden=hidden,
                embedding=hidden, dropout=dropout, input_feeding=feed, attention=attention, fast=path != "plain",
            )  # fmt: skip
    rate = product_rate(device, precision)
    taken = measure(configs, make_batch(vocabulary, batch, words, device), runs, device, precision)
    rate = max(rate, product_rate(device, precision))
    rows = []
    for (name, path), median in taken.items():
        speed = batch * words / median
        utilisation = operations(configs[name, path], words) * speed / rate
        row = [name, path, layers, hidden, vocabulary, batch, words, threads, f"{median * 1e3:.2f}", f"{speed:.0f}"]
        row += [f"{taken[name, 'plain'] / median:.2f}", f"{utilisation:.3f}", f"{rate / 1e9:.0f}"]
        rows.append([*row, torch.__version__, device, precision])
    if output is None:
        csv.writer(sys.stdout).writerows([COLUMNS, *rows])
        return
    fresh = not output.exists()
    with output.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *rows] if fresh else rows)


if __name__ == "__main__":
    typer.run(main)
