"""The stacking-LSTM encoder-decoder of Luong, Pham and Manning (2015), with and without attention."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt import fused, fused_gpu
from nmt.attention import Attended, Attention, AttentionConfig, Readings
from nmt.config import from_mapping
from nmt.interface import Batch, Forced, Step, TranslationModel, positions_before
from nmt.recurrence import RunLayer, StackedLSTM, unroll
from nmt.vocab import EOS


@dataclass(frozen=True)
class LuongConfig:
    """One model of the family; sizes as in the paper's section 4.1 unless given."""

    source_vocabulary: int
    target_vocabulary: int
    layers: int = 4
    hidden: int = 1000
    embedding: int = 1000
    reverse: bool = True  # read the source right to left
    dropout: float = 0.0
    input_feeding: bool = False
    attention: AttentionConfig | None = None
    initialisation: float = 0.1  # every parameter from U[-x, x]
    reading: Literal["paper", "as_coded", "corrected"] = "paper"
    readings: dict = field(default_factory=dict)  # single switches that differ from `reading`
    fast: bool = True  # the fast path where one serves (`fused`, `fused_gpu`); False: the plain loops

    def switches(self) -> Readings:
        """The named reading with the single switches set."""
        named = asdict(Readings.named(self.reading))
        return from_mapping(Readings, {**named, **self.readings}, "model.readings")


@dataclass(frozen=True)
class LuongMemory:
    """What the encoder hands over, in original order."""

    length: Tensor  # (batch,) source words
    source: Attended
    hidden: Tensor  # (layers, batch, hidden) the encoder's last states
    cell: Tensor

    def select(self, rows: Tensor) -> LuongMemory:
        """The given sentences."""
        return LuongMemory(
            self.length.index_select(0, rows),
            self.source.select(rows),
            self.hidden.index_select(1, rows),
            self.cell.index_select(1, rows),
        )


@dataclass(frozen=True)
class LuongState:
    """The decoder between two words."""

    hidden: Tensor  # (layers, rows, hidden)
    cell: Tensor
    attentional: Tensor  # (rows, hidden) h~_{t-1}, fed to the next step; zero before the first
    time: int  # words read so far

    def select(self, rows: Tensor) -> LuongState:
        """The given hypotheses."""
        states = (self.hidden.index_select(1, rows), self.cell.index_select(1, rows))
        return LuongState(*states, self.attentional.index_select(0, rows), self.time)


class LuongModel(TranslationModel):
    """p(y_t | y_<t, x) = softmax(W_s h~_t), h~_t = tanh(W_c [c_t; h_t]) (eq. 5 and 6); h~_t = h_t without attention."""

    def __init__(self, config: LuongConfig) -> None:
        super().__init__()
        self.config, self.switches = config, config.switches()
        hidden, fed = config.hidden, config.hidden if config.input_feeding else 0
        self.source_embedding = nn.Embedding(config.source_vocabulary, config.embedding)
        self.target_embedding = nn.Embedding(config.target_vocabulary, config.embedding)
        self.encoder = StackedLSTM(config.embedding, hidden, config.layers, config.dropout)
        self.decoder = StackedLSTM(config.embedding + fed, hidden, config.layers, config.dropout)
        self.attention, self.combine = None, None
        if config.attention is not None:
            self.attention = Attention(config.attention, hidden, config.reverse, self.switches)
            self.combine = nn.Linear(2 * hidden, hidden, bias=False)  # W_c
        self.output = nn.Linear(hidden, config.target_vocabulary, bias=False)  # W_s

    def initialise(self, generator: torch.Generator) -> None:
        """Every parameter from U[-x, x], in the order of `parameters()`."""
        bound = self.config.initialisation
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def fast_path(self) -> ModuleType | None:
        """The fast path that serves this device and precision; None: the plain one."""
        device = self.output.weight.device
        if not self.config.fast:
            return None
        if fused_gpu.available(device):
            return fused_gpu
        return None if torch.is_autocast_enabled(device.type) else fused

    @property
    def recordable(self) -> bool:
        """See `TranslationModel.recordable`."""
        return self.fast_path() is fused_gpu and fused.supports(self)

    def _run_layer(self) -> RunLayer:
        """What runs a layer of LSTM over a sequence."""
        fast = self.fast_path()
        return unroll if fast is None else fast.run_layer

    # ------------------------------------------------------------ encoder

    def encode(self, source: Tensor, source_length: Tensor) -> LuongMemory:
        """See `TranslationModel.encode`."""
        source, length = self._with_end(source, source_length)
        order = reading_order(length, source.shape[1], self.config.reverse)  # (batch, source)
        real = order >= 0
        words = source.gather(1, order.clamp(min=0))
        embedded = self.source_embedding(words) * real.unsqueeze(2)  # (batch, source, embedding)
        zeros = embedded.new_zeros(self.config.layers, len(source), self.config.hidden)
        states, hidden, cell = self.encoder(embedded.transpose(0, 1), zeros, zeros, self._run_layer())
        annotations = self._original_order(states.transpose(0, 1), length)
        if self.attention is None:
            attended = Attended(annotations, annotations, length)
        else:
            attended = self.attention.prepare(annotations, length)
        return LuongMemory(source_length, attended, hidden, cell)

    def _with_end(self, source: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        """The source as it is read: with `</s>`, unless the reading leaves it out."""
        if self.switches.source_end == "absent":
            return source, length
        return F.pad(source, (0, 1)).scatter(1, length.unsqueeze(1), EOS), length + 1

    def _original_order(self, states: Tensor, length: Tensor) -> Tensor:
        """Undo the reading order; zero at padding; (batch, source, hidden)."""
        source = states.shape[1]
        slot = torch.arange(source, device=states.device).expand(len(states), source)
        padding = source - length.unsqueeze(1)
        slot = source - 1 - slot if self.config.reverse else (slot + padding).clamp(max=source - 1)
        ordered = states.gather(1, slot.unsqueeze(2).expand_as(states))
        return ordered * positions_before(length, source).unsqueeze(2)

    # ------------------------------------------------------------ decoder

    def start(self, memory: LuongMemory) -> LuongState:
        """See `TranslationModel.start`: decoder layer l starts from the encoder's last states of layer l."""
        return LuongState(memory.hidden, memory.cell, torch.zeros_like(memory.hidden[0]), 0)

    def step(self, memory: LuongMemory, state: LuongState, previous: Tensor) -> Step:
        """See `TranslationModel.step`."""
        embedded = self.target_embedding(previous)
        if self.fast_path() is fused and not (self.training or torch.is_grad_enabled()):
            *states, attention = fused.advance(self, memory, state, embedded)
            state = LuongState(*states, state.time + 1)
            logits = self.output(state.attentional)
            return Step(torch.log_softmax(logits, 1, out=logits), attention, state)
        state, attention = self._advance(memory, state, embedded)
        return Step(torch.log_softmax(self.output(state.attentional), 1), attention, state)

    def _advance(self, memory: LuongMemory, state: LuongState, embedded: Tensor) -> tuple[LuongState, Tensor | None]:
        """Read one embedded word a row: the new state, and a_t (rows, source)."""
        inputs = torch.cat([embedded, state.attentional], 1) if self.config.input_feeding else embedded
        hidden, cell = self.decoder.step(inputs, state.hidden, state.cell)
        top = hidden[-1].unflatten(0, (len(memory.length), -1))  # (batch, beam, hidden)
        time = torch.full((1,), state.time + 1, device=top.device)
        attentional, weights = self._attend(top, memory, time)
        weights = None if weights is None else weights.flatten(0, 1)
        return LuongState(hidden, cell, attentional.flatten(0, 1), state.time + 1), weights

    def _attend(self, top: Tensor, memory: LuongMemory, time: Tensor) -> tuple[Tensor, Tensor | None]:
        """h~_t of (batch, queries, hidden) top states, and a_t (batch, queries, source)."""
        if self.attention is None:
            return top, None
        context, weights = self.attention(top, memory.source, time)
        return torch.tanh(self.combine(torch.cat([context, top], 2))), weights

    # ------------------------------------------------------------ teacher forcing

    def forward(self, batch: Batch) -> Forced:
        """See `TranslationModel.forward`."""
        memory = self.encode(batch.source, batch.source_length)
        embedded, mask = self.target_embedding(batch.target_input), batch.target_mask()  # (batch, target ...)
        fast = self.fast_path() if fused.supports(self) else None
        if not self.config.input_feeding:
            attentional, weights = self._read_at_once(memory, embedded)
        elif fast is not None:
            attentional, weights = fast.read_fed(self, memory, embedded)
        else:
            attentional, weights = self._read_fed(memory, embedded)
        if fast is not None:
            words = fast.WordLikelihood.apply(attentional, self.output.weight, batch.target_output, mask)
            return Forced(words, weights)
        logits = self.output(attentional[mask])  # (words, vocabulary): the softmax never sees padding
        word_likelihood = -F.cross_entropy(logits, batch.target_output[mask], reduction="none")
        return Forced(word_likelihood.new_zeros(mask.shape).masked_scatter(mask, word_likelihood), weights)

    def _read_at_once(self, memory: LuongMemory, embedded: Tensor) -> tuple[Tensor, Tensor | None]:
        """Without input feeding the recurrence does not wait for attention: all steps together."""
        states, _, _ = self.decoder(embedded.transpose(0, 1), memory.hidden, memory.cell, self._run_layer())
        time = torch.arange(1, embedded.shape[1] + 1, device=embedded.device)
        return self._attend(states.transpose(0, 1), memory, time)

    def _read_fed(self, memory: LuongMemory, embedded: Tensor) -> tuple[Tensor, Tensor | None]:
        """With input feeding each step reads the h~ of the one before."""
        state, attentional, weights = self.start(memory), [], []
        for word in embedded.unbind(1):
            state, attention = self._advance(memory, state, word)
            attentional.append(state.attentional)
            weights.append(attention)
        if self.attention is None:
            return torch.stack(attentional, 1), None
        return torch.stack(attentional, 1), torch.stack(weights, 1)


def reading_order(length: Tensor, source: int, reverse: bool) -> Tensor:
    """Which word (0-based, original order) the encoder reads at each slot; negative at padding, which comes first.

    length: (batch,); returns (batch, source).
    """
    slot = torch.arange(source, device=length.device).expand(len(length), source)
    padding = (source - length).unsqueeze(1)
    order = source - 1 - slot if reverse else slot - padding
    return torch.where(slot >= padding, order, -1)
