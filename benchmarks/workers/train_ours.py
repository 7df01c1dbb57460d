"""Training steps of this package, through `nmt.training.train`: batches cut from a corpus, checks and sums included."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from turns import Steps, begin

from nmt import training
from nmt.attention import AttentionConfig
from nmt.corpus import BinaryText, ParallelCorpus, ids_path, offsets_path
from nmt.luong import LuongConfig, LuongModel
from nmt.optimiser import TrainingConfig
from nmt.progress import Progress
from nmt.vocab import SPECIALS


def random_text(prefix: Path, vocabulary: int, sentences: int, words: int) -> BinaryText:
    """Sentences of one length."""
    drawn = np.random.default_rng(0).integers(len(SPECIALS), vocabulary, sentences * words)
    np.save(ids_path(prefix), drawn.astype(np.int32))
    np.save(offsets_path(prefix), np.arange(sentences + 1) * words)
    return BinaryText(prefix)


def main() -> None:
    """Train without end; `Progress`, which is told of every update, waits for the next turn."""
    sizes = begin("ours")
    vocabulary, hidden, words = sizes["vocabulary"], sizes["hidden"], sizes["words"]
    model = LuongModel(
        LuongConfig(
            vocabulary,
            vocabulary,
            sizes["layers"],
            hidden,
            hidden,
            input_feeding=True,
            attention=AttentionConfig(sizes["scope"]),
        )
    )
    model.initialise(torch.Generator().manual_seed(1))

    class Turns(Progress):
        def __init__(self, *_: object) -> None:
            super().__init__(total=1, done=0, shown=False)
            self.steps = Steps()

        def trained(self, update: int, words: int, cost: Callable[[], float]) -> None:
            self.steps.done(cost)

    training.Progress = Turns
    config = TrainingConfig(
        batch_size=sizes["batch"], learning_rate=0.1, epochs=10**6, halve_after=None, precision=sizes["precision"]
    )
    with tempfile.TemporaryDirectory() as folder:
        corpora = []
        for name, sentences in (("train", 200 * sizes["batch"]), ("dev", 1)):
            source = random_text(Path(folder) / f"{name}.source", vocabulary, sentences, words)
            target = random_text(Path(folder) / f"{name}.target", vocabulary, sentences, words - 1)  # and `</s>`
            corpora.append(ParallelCorpus(source, target))
        training.train(model, *corpora, config, seed=1, state_dir=Path(folder) / "state", device=sizes["device"])


if __name__ == "__main__":
    main()
