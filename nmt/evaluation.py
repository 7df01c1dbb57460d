"""Perplexity of a translation model on a parallel corpus."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from nmt.batching import batches
from nmt.corpus import ParallelCorpus
from nmt.interface import TranslationModel


def perplexity(
    model: TranslationModel,
    corpus: ParallelCorpus,
    batch_size: int,
    device: torch.device | str,
    before_batch: Callable[[], None] = lambda: None,
) -> tuple[float, int]:
    """Total negative log-likelihood (nats) of the targets, and their words, `</s>` included.

    Perplexity is exp(nll / words). Sentences of like length go together, `batch_size` pairs at a time. Pairs with an
    empty side are left out; ValueError if none is left. `before_batch` may raise to break off.
    """
    order = evaluation_order(corpus)
    plan = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    nll, words, was_training = torch.zeros((), dtype=torch.float64, device=device), 0, model.training
    model.eval()
    try:
        with torch.inference_mode():
            for batch in batches(corpus, plan):
                before_batch()
                words += batch.target_words
                nll -= model(batch.to(device)).log_likelihood.sum(dtype=torch.float64)
    finally:
        model.train(was_training)
    return nll.item(), words


def evaluation_order(corpus: ParallelCorpus) -> np.ndarray:
    """Pairs with words on both sides, by target length and then source length; ValueError if there is none."""
    source, target = corpus.source.lengths, corpus.target.lengths
    full = np.flatnonzero((source > 0) & (target > 0))
    if not len(full):
        raise ValueError(
            f"{corpus.source.prefix}, {corpus.target.prefix}: of {len(corpus)} pairs found none with words on both "
            "sides to evaluate on; give another corpus"
        )
    return full[np.lexsort((source[full], target[full]))]
