"""Sentences a second of batched beam search: this package and OpenNMT-py in turns, on a CPU, with the same weights.

The model (input feeding, general score; 2 x 256 with 8,000 words, or the miniature's size) is trained here for a minute
or so to repeat sentences that count up, so that its distributions are as sharp as a trained model's and hypotheses end
by themselves. Both systems search it in their own process and their own Python; OpenNMT-py at the fastest of a few
batch sizes. The share of sentences that both translate alike is told: their rules for when to stop differ.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from common import RESULTS, ROOT, Worker, machine, write_csv

from nmt.attention import AttentionConfig
from nmt.batching import make_batch
from nmt.luong import LuongConfig, LuongModel
from nmt.vocab import BOS, SPECIALS

SIZES = {
    "2 x 256": {"layers": 2, "hidden": 256, "vocabulary": 8000, "threads": 2},
    "miniature": {"layers": 1, "hidden": 96, "vocabulary": 800, "threads": 1},
}
COUNTED = 40  # words that occur
BATCHES = (16, 32, 64, 128)  # sentences, of which OpenNMT-py's fastest is taken


def draw(rng: np.random.Generator, pairs: int, shortest: int, longest: int) -> list[np.ndarray]:
    """Sentences that count up from a random word."""
    lengths = rng.integers(shortest, longest + 1, pairs)
    return [len(SPECIALS) + (rng.integers(COUNTED) + np.arange(length)) % COUNTED for length in lengths]


def train(path: Path, sizes: dict[str, int], updates: int) -> None:
    """Write the weights and 3,000 sentences to translate.

    Only the words that occur are trained. The others get embeddings of zero and twice the output row of `<s>`, which
    never occurs either, so that the softmax is as wide as asked for and gives them next to nothing.
    """
    rng = np.random.default_rng(1)
    known, layers, hidden = len(SPECIALS) + COUNTED, sizes["layers"], sizes["hidden"]
    model = LuongModel(
        LuongConfig(known, known, layers, hidden, hidden, input_feeding=True, attention=AttentionConfig())
    )
    model.initialise(torch.Generator().manual_seed(1))
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    for update in range(updates):
        length = rng.integers(5, 29)
        sentences = draw(rng, 32, length - 1, length + 1)
        batch = make_batch(sentences, sentences)
        loss = -model(batch).log_likelihood.sum() / batch.target_words
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        if update % 25 == 0:
            print(f"update {update} of {updates}: cost a word {loss.item():.3f}", file=sys.stderr)
    weights, never = model.state_dict(), 2 * model.output.weight.detach()[BOS]
    for name, row in (("source_embedding", 0 * never), ("target_embedding", 0 * never), ("output", never)):
        new = row.expand(sizes["vocabulary"] - known, hidden)
        weights[f"{name}.weight"] = torch.cat([weights[f"{name}.weight"], new])
    sources = [sentence.tolist() for sentence in draw(rng, 3000, 5, 28)]
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"weights": weights, "sources": sources}, path)


def measure(workers: list[Worker], beam: int, sentences: int, turns: int, shown: dict[str, Any]) -> list[dict]:
    """A row a system, ours first."""
    fastest = {worker: {"beam": beam} for worker in workers}
    for worker in workers[1:]:
        requests = [{"beam": beam, "batch": size} for size in BATCHES]
        fastest[worker] = min(requests, key=lambda request: worker.ask(**request)["seconds"])
    answers = {worker: [worker.ask(**fastest[worker])] for worker in workers}
    for _ in range(turns):
        for worker in workers:
            answers[worker].append(worker.ask(**fastest[worker]))
    medians = [statistics.median(answer["seconds"] for answer in answers[worker][1:]) for worker in workers]
    ours = answers[workers[0]][0]["translations"]
    rows = []
    for worker, median in zip(workers, medians, strict=True):
        found = answers[worker][0]["translations"]
        rows.append({
            **shown, "beam": beam, "system": worker.facts["system"],
            "batch": fastest[worker].get("batch", ""),
            "sentences": sentences,
            "seconds": f"{median:.2f}",
            "sentences_per_second": f"{sentences / median:.1f}",
            "ours_is_faster_by": f"{median / medians[0]:.2f}",
            "words_per_sentence": f"{statistics.mean(map(len, found)):.1f}",
            "same_as_ours": f"{statistics.mean(a == b for a, b in zip(ours, found, strict=True)):.3f}",
            "turns": turns,
            **{key: worker.facts[key] for key in ("torch", "python")},
            "machine": machine(),
        })  # fmt: skip
    return rows


def main(
    opennmt: Annotated[Path | None, typer.Option(help="Python that has OpenNMT-py 3.5.1")] = None,
    size: Annotated[list[str] | None, typer.Option(help=f"of {', '.join(SIZES)}; repeatable; all if left out")] = None,
    beam: Annotated[list[int] | None, typer.Option(help="repeatable; 5 and 12 if left out")] = None,
    sentences: Annotated[int, typer.Option(help="to translate")] = 64,
    turns: Annotated[int, typer.Option(help="of each system, after one to warm up")] = 5,
    updates: Annotated[int, typer.Option(help="to train for, if the model is not there")] = 150,
    models: Annotated[Path, typer.Option(help="folder of the models; made if not there")] = ROOT / "results" / "search",
    output: Annotated[Path, typer.Option(help="CSV file")] = RESULTS / "decoding_cpu.csv",
) -> None:
    """Measure ours, and OpenNMT-py beside it if its Python is given."""
    rows = []
    pythons = {"decode_ours": Path(sys.executable), "decode_opennmt": opennmt}
    for name in size or SIZES:
        sizes, model = SIZES[name], models / f"{name.replace(' ', '')}.pt"
        torch.set_num_threads(sizes["threads"])
        if not model.exists():
            train(model, sizes, updates)
        asked = {**sizes, "device": "cpu", "model": str(model.resolve()), "sentences": sentences}
        workers = [Worker(python, script, asked) for script, python in pythons.items() if python is not None]
        for b in beam or (5, 12):
            rows += measure(workers, b, sentences, turns, {"what": f"{name}, beam {b}", **sizes})
        for worker in workers:
            worker.close()
    write_csv(output, rows)


if __name__ == "__main__":
    typer.run(main)
