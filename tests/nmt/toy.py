"""A tiny translation model whose distributions depend on the source and on the whole history."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.interface import Batch, Forced, Step, TranslationModel, positions_before


@dataclass(frozen=True)
class ToyMemory:
    """Word vectors of the source, and its length."""

    annotations: Tensor  # (batch, source [+ 1], hidden)
    length: Tensor  # (batch,)
    attended: Tensor  # (batch, source [+ 1]) bool

    def select(self, rows: Tensor) -> ToyMemory:
        """The given sentences."""
        return ToyMemory(self.annotations[rows], self.length[rows], self.attended[rows])


@dataclass(frozen=True)
class ToyState:
    """The decoder's hidden vector."""

    hidden: Tensor  # (rows, hidden)

    def select(self, rows: Tensor) -> ToyState:
        """The given hypotheses."""
        return ToyState(self.hidden[rows])


class ToyModel(TranslationModel):
    """A plain recurrent decoder with dot attention and large random weights, in float64.

    bias: word -> what is added to its logit; with attend_end the source's `</s>` is a column of its own.
    """

    def __init__(
        self,
        vocabulary: int = 5,
        seed: int = 0,
        bias: dict[int, float] | None = None,
        attention: bool = True,
        attend_end: bool = False,
    ) -> None:
        super().__init__()
        hidden, source_vocabulary = 6, 9
        generator = torch.Generator().manual_seed(seed)

        def weight(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64))

        self.source_embedding = weight(source_vocabulary, hidden)
        self.target_embedding = weight(vocabulary, hidden)
        self.recurrent = weight(hidden, hidden)
        self.output = weight(2 * hidden, vocabulary)
        self.bias = torch.zeros(vocabulary, dtype=torch.float64)
        for word, value in (bias or {}).items():
            self.bias[word] = value
        self.attention, self.attend_end = attention, attend_end
        self.calls = 0  # steps so far
        self.rows: list[int] = []  # hypotheses of each step

    def encode(self, source: Tensor, source_length: Tensor) -> ToyMemory:
        """Word vectors, with `</s>` appended where it is attended to."""
        if self.attend_end:
            source = torch.cat([source, source[:, :1]], dim=1).scatter(1, source_length.unsqueeze(1), 2)
        attended = positions_before(source_length + int(self.attend_end), source.shape[1])
        return ToyMemory(self.source_embedding[source], source_length, attended)

    def start(self, memory: ToyMemory) -> ToyState:
        """The sum of the source's word vectors, squashed."""
        return ToyState((memory.annotations * memory.attended.unsqueeze(2)).sum(1).tanh())

    def step(self, memory: ToyMemory, state: ToyState, previous: Tensor) -> Step:
        """One step of the recurrence, attention and softmax."""
        self.calls += 1
        self.rows.append(len(previous))
        beam = len(previous) // len(memory.length)
        hidden = (state.hidden @ self.recurrent + self.target_embedding[previous]).tanh()  # (rows, hidden)
        grouped = hidden.unflatten(0, (-1, beam))  # (batch, beam, hidden)
        score = grouped @ memory.annotations.transpose(1, 2)  # (batch, beam, source)
        weights = score.masked_fill(~memory.attended.unsqueeze(1), -torch.inf).softmax(2)
        context = (weights @ memory.annotations).flatten(0, 1)  # (rows, hidden)
        logits = torch.cat([hidden, context], dim=1) @ self.output + self.bias
        return Step(logits.log_softmax(1), weights.flatten(0, 1) if self.attention else None, ToyState(hidden))

    def forward(self, batch: Batch) -> Forced:
        """Teacher forcing, by steps."""
        memory = self.encode(batch.source, batch.source_length)
        state, likelihoods, attention = self.start(memory), [], []
        for t in range(batch.target_input.shape[1]):
            step = self.step(memory, state, batch.target_input[:, t])
            state = step.state
            likelihoods.append(step.log_probability.gather(1, batch.target_output[:, t : t + 1]))
            attention.append(step.attention)
        log_likelihood = torch.cat(likelihoods, dim=1) * batch.target_mask()
        return Forced(log_likelihood, torch.stack(attention, dim=1) if self.attention else None)
