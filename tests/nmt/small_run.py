"""A tiny model and corpora for the tests of training; as a script, a run that is killed again and again.

As a script: `python -m tests.nmt.small_run FOLDER KILLS SEED` trains in a child process that is killed (SIGKILL) at
seeded moments and started anew, then prints the digest of the final weights and the number of kills that hit.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from nmt.corpus import BinaryText, ParallelCorpus, ids_path, offsets_path
from nmt.interface import Batch, Forced, TranslationModel
from nmt.training import TrainingConfig, TrainingResult, train

VOCABULARY = 12


class NoDecoder(TranslationModel):
    """Leaves out what training does not need."""

    def encode(self, source, source_length):
        raise NotImplementedError

    def start(self, memory):
        raise NotImplementedError

    def step(self, memory, state, previous):
        raise NotImplementedError

    def likelihood(self, logits: Tensor, batch: Batch) -> Forced:
        """From logits (batch, target, vocabulary)."""
        chosen = logits.log_softmax(-1).gather(-1, batch.target_output.unsqueeze(-1)).squeeze(-1)  # (batch, target)
        return Forced(chosen.masked_fill(~batch.target_mask(), 0.0), None)


class Unigram(NoDecoder):
    """p(y) = softmax(bias), whatever the source: its gradient can be worked out by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.linspace(-1.0, 1.0, VOCABULARY))

    def forward(self, batch: Batch) -> Forced:
        return self.likelihood(self.bias.expand(*batch.target_output.shape, -1), batch)


class Recurrent(NoDecoder):
    """A GRU decoder, with dropout, that starts from the mean of the source's embeddings."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.dropout = nn.Dropout(0.3)
        self.gru = nn.GRU(8, 8, batch_first=True)
        self.output = nn.Linear(8, VOCABULARY)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.3, 0.3, generator=generator)

    def forward(self, batch: Batch) -> Forced:
        source = self.embedding(batch.source).mean(1)  # (batch, 8)
        states, _ = self.gru(self.dropout(self.embedding(batch.target_input)), source.unsqueeze(0))
        return self.likelihood(self.output(states), batch)


def write_text(prefix: Path, sentences: list[list[int]]) -> BinaryText:
    """A binary text of the given word indices."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    np.save(ids_path(prefix), np.array([word for sentence in sentences for word in sentence], dtype=np.int32))
    np.save(offsets_path(prefix), np.cumsum([0, *map(len, sentences)]).astype(np.int64))
    return BinaryText(prefix)


def write_corpus(prefix: Path, pairs: list[tuple[list[int], list[int]]]) -> ParallelCorpus:
    """A corpus of the given pairs."""
    source, target = zip(*pairs, strict=True)
    return ParallelCorpus(write_text(prefix / "source", list(source)), write_text(prefix / "target", list(target)))


def random_corpus(prefix: Path, size: int, seed: int) -> ParallelCorpus:
    """The target counts up from the source's first word."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(size):
        first, length = draw.randrange(3, VOCABULARY), draw.randrange(1, 6)
        words = [3 + (first + place) % (VOCABULARY - 3) for place in range(length)]
        pairs.append(([first] * draw.randrange(1, 4), words))
    return write_corpus(prefix, pairs)


def small_run(folder: Path, state: str, **changes) -> tuple[TranslationModel, TrainingResult]:
    """Train Recurrent on 40 pairs, 3 epochs of 5 batches unless changed; corpora and state lie in `folder`."""
    values = {"batch_size": 8, "fetch": 16, "epochs": 3, "halve_after": 1, "learning_rate": 0.5}
    model = Recurrent()
    result = train(
        model,
        random_corpus(folder / "train", changes.pop("size", 40), seed=1),
        random_corpus(folder / "dev", 10, seed=2),
        TrainingConfig.from_dict({**values, **changes}),
        seed=3,
        state_dir=folder / state,
        curve=random_corpus(folder / "curve", 10, seed=4),
        progress=False,
    )
    return model, result


def outcome(model: nn.Module, result: TrainingResult) -> str:
    """Digest of all that must not depend on interruptions: weights and the curve less its times."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode() + value.numpy().tobytes())
    for record in result.curve:
        digest.update(repr({key: record[key] for key in record if "second" not in key}).encode())
    digest.update(repr((result.best_perplexity, result.best_update, result.updates, result.epochs)).encode())
    return digest.hexdigest()


LONG = {"size": 40, "epochs": 12, "save_minutes": 0, "evaluate_every": 3}


def killed_run(folder: Path, kills: int, seed: int) -> tuple[str, int]:
    """Outcome of a run killed up to `kills` times, and how often the kill came before the end."""
    moments, hits = random.Random(seed), 0
    while hits < kills:
        child = os.fork()
        if child == 0:
            small_run(folder, "killed", **LONG)
            os._exit(0)
        time.sleep(moments.uniform(0.02, 0.15))
        os.kill(child, signal.SIGKILL)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            break
        hits += 1
    return outcome(*small_run(folder, "killed", **LONG)), hits


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(*killed_run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
