"""Several models that translate as one."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.interface import Batch, Forced, Memory, State, Step, TranslationModel, positions_before

AVERAGES = ("logits", "probabilities")


@dataclass(frozen=True)
class Member:
    """A model of an ensemble, with the name and the vocabularies its outputs are read by."""

    name: str
    model: TranslationModel
    source_words: Sequence[str]
    target_words: Sequence[str]


@dataclass(frozen=True)
class EnsembleMemory:
    """The memory of each member."""

    members: tuple[Memory, ...]
    length: Tensor  # (batch,)

    def select(self, rows: Tensor) -> EnsembleMemory:
        """The given sentences."""
        return EnsembleMemory(tuple(member.select(rows) for member in self.members), self.length[rows])


@dataclass(frozen=True)
class EnsembleState:
    """The state of each member."""

    members: tuple[State, ...]

    def select(self, rows: Tensor) -> EnsembleState:
        """The given hypotheses."""
        return EnsembleState(tuple(member.select(rows) for member in self.members))


class Ensemble(TranslationModel):
    """The average of several models with equal vocabularies (Luong et al. 2015, section 4.1: "ensemble 8 models").

    `logits` averages before the softmax, as the authors' code does; `probabilities` averages after it, the usual
    reading. A member's log-probabilities differ from its logits by one constant for each row, and so does the mean
    of the members': renormalising the mean log-probability is therefore the softmax of the mean logits (a geometric
    mean of the distributions).

    Attention is the mean over the members that have it. Where only some of them attend to the source's `</s>`, its
    column is dropped, and the weights sum to at most 1.
    """

    def __init__(self, members: Sequence[Member], average: str = "logits") -> None:
        """Raises ValueError without members, for an unknown average, and names a member with other vocabularies."""
        super().__init__()
        if not members:
            raise ValueError("ensemble: found no members, expected at least one model")
        if average not in AVERAGES:
            raise ValueError(f"ensemble: average is {average!r}, expected one of {', '.join(AVERAGES)}")
        for member in members[1:]:
            _require_equal("source", members[0].name, members[0].source_words, member.name, member.source_words)
            _require_equal("target", members[0].name, members[0].target_words, member.name, member.target_words)
        self.average = average
        self.models = nn.ModuleList(member.model for member in members)

    def encode(self, source: Tensor, source_length: Tensor) -> EnsembleMemory:
        """Each member reads the source once."""
        return EnsembleMemory(tuple(model.encode(source, source_length) for model in self.models), source_length)

    def start(self, memory: EnsembleMemory) -> EnsembleState:
        """The members' states before the first word."""
        return EnsembleState(tuple(model.start(read) for model, read in zip(self.models, memory.members, strict=True)))

    def step(self, memory: EnsembleMemory, state: EnsembleState, previous: Tensor) -> Step:
        """One step of each member, averaged."""
        steps = [
            model.step(read, carried, previous)
            for model, read, carried in zip(self.models, memory.members, state.members, strict=True)
        ]
        log_probability = self._average([step.log_probability for step in steps])
        attention = _mean_attention([step.attention for step in steps if step.attention is not None], memory.length)
        return Step(log_probability, attention, EnsembleState(tuple(step.state for step in steps)))

    def forward(self, batch: Batch) -> Forced:
        """The references scored step by step, since averaging takes the members' whole distributions."""
        memory = self.encode(batch.source, batch.source_length)
        state = self.start(memory)
        log_likelihood, attention = [], []
        for previous, word in zip(batch.target_input.unbind(1), batch.target_output.unbind(1), strict=True):
            step = self.step(memory, state, previous)
            state = step.state
            log_likelihood.append(step.log_probability.gather(1, word.unsqueeze(1)).squeeze(1))
            attention.append(step.attention)
        return Forced(
            torch.stack(log_likelihood, dim=1).masked_fill(~batch.target_mask(), 0.0),  # (batch, target)
            None if attention[0] is None else torch.stack(attention, dim=1),  # (batch, target, source)
        )

    def _average(self, log_probabilities: list[Tensor]) -> Tensor:
        """The members' distributions as one; (rows, vocabulary) each."""
        if self.average == "logits":
            return (sum(log_probabilities) / len(log_probabilities)).log_softmax(dim=1)
        return functools.reduce(torch.logaddexp, log_probabilities) - math.log(len(log_probabilities))


def _mean_attention(weights: list[Tensor], length: Tensor) -> Tensor | None:
    """Mean of (rows, source [+ 1]) weights over the columns that all have; length: (batch,) source words."""
    if not weights:
        return None
    columns = min(member.shape[1] for member in weights)
    mean = sum(member[:, :columns] for member in weights) / len(weights)  # (rows, columns)
    if all(member.shape[1] == columns for member in weights):
        return mean
    words = positions_before(length, columns).repeat_interleave(len(mean) // len(length), dim=0)
    return mean.masked_fill(~words, 0.0)


def _require_equal(side: str, first: str, expected: Sequence[str], name: str, found: Sequence[str]) -> None:
    """Raise ValueError naming the member whose vocabulary is not that of the first."""
    if len(found) != len(expected):
        difference = f"{len(found)} words, expected {len(expected)}"
    else:
        place = next((i for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]), None)
        if place is None:
            return
        difference = f"{found[place]!r} in line {place + 1}, expected {expected[place]!r}"
    raise ValueError(
        f"ensemble: the {side} vocabulary of member {name!r} is not that of member {first!r}: found {difference}; "
        "leave the member out or train it with the same vocabularies"
    )
