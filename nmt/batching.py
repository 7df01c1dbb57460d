"""Sentences as padded tensors."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from nmt.corpus import ParallelCorpus
from nmt.interface import Batch
from nmt.vocab import BOS, EOS

BATCHES_AHEAD = 8


def pad(sentences: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Right-pad sentences with `</s>` (lengths say what is real); (batch, longest) int64 and lengths (batch,)."""
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)  # (batch,)
    padded = np.full((len(sentences), lengths.max(initial=0)), EOS, dtype=np.int64)  # (batch, longest)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate([np.empty(0, np.int64), *sentences])
    return torch.from_numpy(padded), torch.from_numpy(lengths)


def make_batch(sources: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> Batch:
    """Sentence pairs, words only, as a batch: `<s>` and `</s>` are put around the targets here.

    Raises ValueError if there are not as many targets as sources.
    """
    if len(sources) != len(targets):
        raise ValueError(f"found {len(sources)} sources and {len(targets)} targets, expected equally many")
    source, source_length = pad(sources)
    target_input, target_length = pad([np.concatenate([[BOS], target]) for target in targets])
    target_output, _ = pad([np.concatenate([target, [EOS]]) for target in targets])
    return Batch(source, source_length, target_input, target_output, target_length)


def batches(corpus: ParallelCorpus, plan: Sequence[np.ndarray]) -> Iterator[Batch]:
    """The batches of a plan (`corpus.plan_batches`, `evaluation_plan`), in its order."""
    for indices in plan:
        yield batch_of(corpus, indices)


def batch_of(corpus: ParallelCorpus, indices: np.ndarray) -> Batch:
    """The given sentence pairs as a batch."""
    return make_batch([corpus.source[i] for i in indices], [corpus.target[i] for i in indices])


def batches_ahead(corpus: ParallelCorpus, plan: Sequence[np.ndarray]) -> Iterator[Batch]:
    """As `batches`, for a GPU: a thread makes them, and in memory from which a GPU copies while the host goes on."""
    with ThreadPoolExecutor(1) as maker:
        waiting = deque()
        try:
            for indices in plan:
                waiting.append(maker.submit(lambda indices: batch_of(corpus, indices).pinned(), indices))
                if len(waiting) > BATCHES_AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            maker.shutdown(cancel_futures=True)


def evaluation_plan(lengths: np.ndarray, words: int) -> list[np.ndarray]:
    """Every sentence once, sentences of like length together: at most `words` padded words a batch (or one sentence).

    lengths: (sentences,), for instance source + target. The plan's batches, concatenated, are a permutation that
    `np.argsort` turns back.
    """
    plan: list[np.ndarray] = []
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or lengths[order[end]] * (end + 1 - start) > words:
            plan.append(order[start:end])
            start = end
    return plan
