"""What every translation model is to the rest of the package: encode, start, step, and a teacher-forced forward.

Training, beam search, forced decoding and ensembles know only this; an ensemble is itself a `TranslationModel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as padded word indices, in original order.

    The source holds words only: a model that reads the source's `</s>` appends it itself. The padding value is any
    valid index; lengths alone say what is real.
    """

    source: Tensor  # (batch, source) int64, right-padded
    source_length: Tensor  # (batch,)
    target_input: Tensor  # (batch, target) `<s> y_1 .. y_n`
    target_output: Tensor  # (batch, target) `y_1 .. y_n </s>`
    target_length: Tensor  # (batch,) n + 1

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return Batch(**{name: value.to(device, non_blocking=True) for name, value in vars(self).items()})

    def pinned(self) -> Batch:
        """The same batch in page-locked memory of the host."""
        return Batch(**{name: value.pin_memory() for name, value in vars(self).items()})

    def target_mask(self) -> Tensor:
        """True at the real positions of the target; (batch, target)."""
        return positions_before(self.target_length, self.target_input.shape[1])

    @property
    def target_words(self) -> int:
        """Predicted words, each sentence's `</s>` included."""
        return int(self.target_length.sum())


class Rows(Protocol):
    """Tensors with one row a sentence or a hypothesis."""

    def select(self, rows: Tensor) -> Self:
        """The given rows (int64 indices, repeats allowed), in the order given."""
        ...


class Memory(Rows, Protocol):
    """What the encoder hands to the decoder, one row a sentence, in original order."""

    length: Tensor  # (batch,) number of source words, `</s>` not counted


class State(Rows, Protocol):
    """What the decoder carries from word to word, one row a hypothesis."""


@dataclass(frozen=True)
class Step:
    """The outcome of one decoding step for each hypothesis."""

    log_probability: Tensor  # (rows, vocabulary) normalised
    attention: Tensor | None  # (rows, source words [+ 1 for `</s>`]) original order; None without attention
    state: State


@dataclass(frozen=True)
class Forced:
    """The outcome of reading a batch with the reference as input (teacher forcing)."""

    log_likelihood: Tensor  # (batch, target) of each reference word, 0 at padding
    attention: Tensor | None  # (batch, target, source words [+ 1]) row i: the step that predicts word i


class TranslationModel(nn.Module, ABC):
    """A model of p(target | source)."""

    @abstractmethod
    def encode(self, source: Tensor, source_length: Tensor) -> Memory:
        """Read source sentences: (batch, source) words in original order, right-padded, and their (batch,) lengths."""

    @abstractmethod
    def start(self, memory: Memory) -> State:
        """The decoder's state before the first word, one row a sentence."""

    @abstractmethod
    def step(self, memory: Memory, state: State, previous: Tensor) -> Step:
        """Read one word a hypothesis and predict the next.

        previous: (rows,) with rows = batch x beam, the hypotheses of one sentence side by side; the memory keeps one
        row a sentence, so that no hypothesis holds a copy of it.
        """

    @abstractmethod
    def forward(self, batch: Batch) -> Forced:
        """Log-likelihood of the references and the attention of each predicting step."""

    @property
    def recordable(self) -> bool:
        """Whether `forward` never waits for the host, so that a GPU can record it (`recorded`)."""
        return False


def positions_before(length: Tensor, size: int) -> Tensor:
    """True where a position lies inside its row's length; (batch, size)."""
    return torch.arange(size, device=length.device) < length.unsqueeze(1)
