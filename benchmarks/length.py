"""What a target word costs at growing source lengths: global against local attention, time and memory.

Timed apart, for the same batch: what is done once a sentence (the encoder, and all that attention prepares from its
annotations; the same for every scope), the decoder's training (forward and backward, its output layer included), and
a step of beam search. The variants take turns, so that whatever else the machine does falls on all alike; each figure
is the median of the turns. Memory is the most that one of these allocates beyond what was there before it.
"""

from __future__ import annotations

import csv
import ctypes
import gc
import platform
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from unittest.mock import patch

import torch
import typer
from common import machine, seconds
from torch import Tensor

from nmt import fused
from nmt.attention import AttentionConfig
from nmt.files import atomic_path
from nmt.luong import LuongConfig, LuongMemory, LuongModel
from nmt.search import Decoding, evaluating
from workflow.plotting import COLOURS, line_style, pyplot, save

SCOPES = ["global", "local-m", "local-p"]
LENGTHS = [10, 20, 50, 100, 200, 500, 1000]
ENCODER, TRAINING, STEP = "once a sentence, training", "decoder, training", "decoder, a step of beam search"
COLUMNS = ["work", "scope", "source", "milliseconds_per_word", "megabytes", "score", "layers", "hidden", "vocabulary"]
COLUMNS += ["batch", "words", "beam", "window", "threads", "runs", "device", "torch", "python"]
VOCABULARY = 1000


@dataclass(frozen=True)
class Work:
    """One thing to be timed."""

    name: str
    scope: str
    source: int
    words: int  # target words that it covers
    run: Callable[[], object]


def leaf(value: Tensor | None) -> Tensor | None:
    """The same numbers, whose gradient ends here."""
    return None if value is None else value.detach().requires_grad_(value.is_floating_point())


def works(model: LuongModel, scope: str, source: int, batch: int, words: int, beam: int) -> list[Work]:
    """What is timed of one model at one source length; the encoder only with global attention."""
    device = model.output.weight.device
    text = torch.randint(3, VOCABULARY, (batch, source - 1), device=device)  # `</s>` makes up the length
    length = torch.full((batch,), source - 1, device=device)
    target = torch.randint(3, VOCABULARY, (batch, words), device=device)
    mask = torch.ones_like(target, dtype=torch.bool)
    fast = model.fast_path()

    def encode() -> tuple[LuongMemory, tuple[Tensor | None, ...]]:
        memory = model.encode(text, length)
        return memory, fused.attention_parts(model, memory.source)

    def encode_and_back() -> None:
        sum(part.sum() for part in encode()[1] if part is not None).backward()
        model.zero_grad(set_to_none=True)

    memory, parts = encode()
    memory = replace(
        memory,
        source=replace(memory.source, annotations=leaf(memory.source.annotations), keys=leaf(memory.source.keys)),
        hidden=leaf(memory.hidden),
        cell=leaf(memory.cell),
    )
    parts = [leaf(part) for part in parts]
    given = (memory.hidden, memory.cell, *parts)
    leaves = [*model.parameters(), *(value for value in given if value is not None)]

    def train() -> None:
        with patch.object(fused, "attention_parts", return_value=parts):  # the encoder's share is done
            states, _ = fast.read_fed(model, memory, model.target_embedding(target))
        fast.WordLikelihood.apply(states, model.output.weight, target, mask).sum().backward()
        for value in leaves:
            value.grad = None

    with torch.inference_mode():
        state = model.start(memory).select(torch.arange(batch, device=device).repeat_interleave(beam))
        state = replace(state, time=words)
    previous, decoding = target[:, 0].repeat_interleave(beam), Decoding(beam)

    def step() -> None:
        with evaluating(model, decoding, device):
            model.step(memory, state, previous)

    found = [Work(TRAINING, scope, source, batch * words, train), Work(STEP, scope, source, batch, step)]
    return [Work(ENCODER, "any", source, batch * words, encode_and_back), *found] if scope == "global" else found


def megabytes(work: Callable[[], object], device: str) -> float:
    """The most memory that a call takes beyond what was taken before; NaN where the system does not tell."""
    gc.collect()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        return (torch.cuda.max_memory_allocated() - before) / 1e6
    if platform.system() != "Linux":
        return float("nan")
    ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back to the system
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is taken now
    before = resident()
    work()
    return (resident() - before) / 1e3


def resident() -> int:
    """The process's peak of memory, in kilobytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def measure(lengths: Sequence[int], make: Callable[[str, int], list[Work]], runs: int, device: str) -> list[list]:
    """Rows of work, scope, source length, median milliseconds a target word and megabytes."""
    every = [work for source in lengths for scope in SCOPES for work in make(scope, source)]
    memory = [megabytes(work.run, device) for work in every]
    taken: list[list[float]] = [[] for _ in every]
    for turn in range(runs + 1):
        for work, times in zip(every, taken, strict=True):
            passed = seconds(work.run, device)
            if turn > 0:  # after one to warm up
                times.append(passed)
    rows = []
    for work, times, peak in zip(every, taken, memory, strict=True):
        cost = statistics.median(times) / work.words * 1e3
        rows.append([work.name, work.scope, work.source, f"{cost:.4f}", f"{peak:.1f}"])
    return sorted(rows, key=lambda row: ([ENCODER, TRAINING, STEP].index(row[0]), row[1], row[2]))


def series(rows: list[list], work: str, scope: str, column: int) -> tuple[list[int], list[float]]:
    """Source lengths and one column's values."""
    chosen = [row for row in rows if row[:2] == [work, scope]]
    return [row[2] for row in chosen], [float(row[column]) for row in chosen]


def write_table(rows: list[list], path: Path) -> None:
    """Milliseconds a target word, and megabytes, a line a source length, as Markdown."""
    kinds = [(work, scope) for work in (ENCODER, TRAINING, STEP) for scope in ("any", *SCOPES)]
    kinds = [(work, scope, series(rows, work, scope, 3), series(rows, work, scope, 4)) for work, scope in kinds]
    kinds = [kind for kind in kinds if kind[2][0]]
    heading = [f"{work}: {scope}" for work, scope, _, _ in kinds]
    lines = ["Milliseconds a target word / megabytes", "", " | ".join(["| source words", *heading]) + " |"]
    lines.append("|---" * (len(kinds) + 1) + "|")
    for i, source in enumerate(kinds[0][2][0]):
        cells = [f"{cost[1][i]:.3f} / {memory[1][i]:.0f}" for _, _, cost, memory in kinds]
        lines.append(" | ".join([f"| {source}", *cells]) + " |")
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw(rows: list[list], output: Path, caption: str) -> None:
    """Two panels, time and memory, on logarithmic axes."""
    figure, panels = pyplot.subplots(1, 2, figsize=(7.2, 3.9))
    for axes, column, label in zip(panels, (3, 4), ("milliseconds a target word", "peak memory, MB"), strict=True):
        for index, scope in enumerate(SCOPES):
            style = line_style(index)
            axes.plot(*series(rows, TRAINING, scope, column), label=f"{scope}, training", **style)
            hollow = {**style, "markerfacecolor": "none", "linewidth": 0.8}
            axes.plot(*series(rows, STEP, scope, column), label=f"{scope}, step of search", **hollow)
        encoder = {**line_style(3), "color": COLOURS[3], "linewidth": 0.8}
        axes.plot(*series(rows, ENCODER, "any", column), label="once a sentence, training", **encoder)
        axes.set(xscale="log", yscale="log", xlabel="source words", ylabel=label)
        axes.set_xticks(LENGTHS, [str(length) for length in LENGTHS], fontsize=8)
        axes.minorticks_off()
    figure.tight_layout()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=4)
    save(figure, output, "Cost of a target word by source length", caption)


def main(
    output: Annotated[Path, typer.Option(help="Path without ending; .csv, .md, .svg, .png, .json are written.")],
    layers: Annotated[int, typer.Option(help="LSTM layers of encoder and of decoder.")] = 1,
    hidden: Annotated[int, typer.Option(help="Units of a layer, and width of the embeddings.")] = 256,
    batch: Annotated[int, typer.Option(help="Sentence pairs.")] = 16,
    words: Annotated[int, typer.Option(help="Target words of a sentence, `</s>` included.")] = 32,
    beam: Annotated[int, typer.Option(help="Hypotheses of a sentence in the search.")] = 12,
    window: Annotated[int, typer.Option(help="D of local attention.")] = 10,
    score: Annotated[
        str, typer.Option(help="dot, general, concat, concat_identity, location or additive.")
    ] = "general",
    threads: Annotated[int, typer.Option(help="Of torch.")] = 2,
    runs: Annotated[int, typer.Option(help="Timed runs, of which the median is taken.")] = 7,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    length: Annotated[list[int] | None, typer.Option(help="Source words; repeatable.")] = None,
) -> None:
    """Measure, write the table as CSV and Markdown, and draw it."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)

    def make(scope: str, source: int) -> list[Work]:
        attention = AttentionConfig(scope, score, window)
        sizes = {"layers": layers, "hidden": hidden, "embedding": hidden}
        model = LuongModel(LuongConfig(VOCABULARY, VOCABULARY, **sizes, input_feeding=True, attention=attention))
        model.initialise(torch.Generator().manual_seed(1))
        return works(model.to(device).train(), scope, source, batch, words, beam)

    rows = measure(length or LENGTHS, make, runs, device)
    name = torch.cuda.get_device_name() if device == "cuda" else machine()
    same = [score, layers, hidden, VOCABULARY, batch, words, beam, window, threads, runs, name]
    same += [torch.__version__, platform.python_version()]
    output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(output.with_name(output.name + ".csv")) as path, path.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *([*row, *same] for row in rows)])
    write_table(rows, output.with_name(output.name + ".md"))
    caption = (
        f"{layers} x {hidden} cells, input feeding, {score} score, D = {window}, {batch} sentences of {words} words,"
    )
    draw(rows, output, f"{caption} beam {beam}; {name}, {threads} threads.")


if __name__ == "__main__":
    typer.run(main)
