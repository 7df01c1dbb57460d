"""The GRU encoder-decoders of Bahdanau, Cho and Bengio (2015): RNNencdec and RNNsearch."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt import fused_gpu
from nmt.attention import Additive, Attended, Attention, AttentionConfig, Global, Readings
from nmt.bahdanau_fast import AttentiveRecurrence, GatedRecurrence
from nmt.fused import WordLikelihood
from nmt.interface import Batch, Forced, Step, TranslationModel, positions_before
from nmt.vocab import EOS


@dataclass(frozen=True)
class BahdanauConfig:
    """One model of the family; sizes and scales as in the paper's appendices A and B unless given."""

    source_vocabulary: int
    target_vocabulary: int
    hidden: int = 1000  # n, units of each direction of the encoder and of the decoder
    embedding: int = 620  # m
    maxout: int = 500  # l, maxout units of the deep output
    attention: AttentionConfig | None = field(  # None: RNNencdec
        default_factory=lambda: AttentionConfig(scope="global", score="additive")
    )
    initialisation: float = 0.01  # standard deviation of the weights that are neither recurrent nor the alignment's
    alignment_initialisation: float = 0.001  # standard deviation of W_a and U_a
    fast: bool = True  # the recurrences of `bahdanau_fast` where they apply; False: the plain loops


@dataclass(frozen=True)
class BahdanauMemory:
    """What the encoder hands over, in original order; RNNencdec has a single annotation, h_T."""

    length: Tensor  # (batch,) source words
    source: Attended  # annotations h_j, `</s>` included
    inputs: Tensor  # (batch, annotations, 3 hidden) C_z h_j, C_r h_j, C h_j: the unit's inputs are linear in c_i
    initial: Tensor  # (batch, hidden) s_0

    def select(self, rows: Tensor) -> BahdanauMemory:
        """The given sentences."""
        return BahdanauMemory(
            self.length.index_select(0, rows),
            self.source.select(rows),
            self.inputs.index_select(0, rows),
            self.initial.index_select(0, rows),
        )


@dataclass(frozen=True)
class BahdanauState:
    """The decoder between two words."""

    hidden: Tensor  # (rows, hidden) s_{i-1}
    time: int  # words read so far

    def select(self, rows: Tensor) -> BahdanauState:
        """The given hypotheses."""
        return BahdanauState(self.hidden.index_select(0, rows), self.time)


Matrices = tuple[Tensor, Tensor]  # (units, hidden, 2 hidden) and (units, hidden, hidden), see `gated_step`


class GatedUnit(nn.Module):
    """Gated recurrent unit (Cho et al. 2014; appendix A.1.1): z = sigmoid(W_z x + U_z h), r = sigmoid(W_r x + U_r h),
    h~ = tanh(W x + U [r * h]), h' = (1 - z) * h + z * h~.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.project = nn.Linear(inputs, 3 * hidden)  # W_z, W_r, W, and the three biases
        self.gates = nn.Linear(hidden, 2 * hidden, bias=False)  # U_z, U_r
        self.candidate = nn.Linear(hidden, hidden, bias=False)  # U

    def recurrent_matrices(self) -> list[Tensor]:
        """U_z, U_r and U; each (hidden, hidden)."""
        return [*self.gates.weight.chunk(2), self.candidate.weight]

    def transposed(self) -> Matrices:
        """The recurrent matrices as `gated_step` takes them, for this unit alone."""
        return self.gates.weight.T.unsqueeze(0), self.candidate.weight.T.unsqueeze(0)


def gated_step(inputs: Tensor, hidden: Tensor, gates: Tensor, candidate: Tensor) -> Tensor:
    """One step of as many units side by side.

    inputs: (units, rows, 3 hidden), W_z x, W_r x and W x with their biases; hidden: (units, rows, hidden);
    gates, candidate: (units, hidden, 2 hidden) and (units, hidden, hidden), transposed U_z, U_r and U.
    """
    size = hidden.shape[2]
    z, r = torch.sigmoid(torch.baddbmm(inputs[..., : 2 * size], hidden, gates)).chunk(2, 2)
    proposed = torch.tanh(torch.baddbmm(inputs[..., 2 * size :], r * hidden, candidate))
    return torch.lerp(hidden, proposed, z)


class BahdanauModel(TranslationModel):
    """p(y_i | y_<i, x) is proportional to exp(y_i . W_o t_i), t_i = maxout(U_o s_{i-1} + V_o E y_{i-1} + C_o c_i),
    s_i = GRU(s_{i-1}, y_{i-1}, c_i), c_i = sum_j alpha_ij h_j (appendix A.2).
    """

    def __init__(self, config: BahdanauConfig) -> None:
        super().__init__()
        self.config = config
        hidden, embedding, maxout = config.hidden, config.embedding, config.maxout
        directions = 1 if config.attention is None else 2
        annotation = directions * hidden
        self.source_embedding = nn.Embedding(config.source_vocabulary, embedding)  # shared by the two directions
        self.target_embedding = nn.Embedding(config.target_vocabulary, embedding)  # E
        self.encoder = nn.ModuleList(GatedUnit(embedding, hidden) for _ in range(directions))  # forward [, backward]
        self.attention = None
        if config.attention is not None:
            self.attention = Attention(config.attention, hidden, False, Readings(), annotation)
        self.initial = nn.Linear(hidden, hidden)  # W_s
        self.decoder = GatedUnit(embedding, hidden)
        self.context = nn.Linear(annotation, 3 * hidden, bias=False)  # C_z, C_r, C
        self.deep_state = nn.Linear(hidden, 2 * maxout)  # U_o, and the bias of t~_i
        self.deep_word = nn.Linear(embedding, 2 * maxout, bias=False)  # V_o
        self.deep_context = nn.Linear(annotation, 2 * maxout, bias=False)  # C_o
        self.output = nn.Linear(maxout, config.target_vocabulary)  # W_o

    def initialise(self, generator: torch.Generator) -> None:
        """Appendix B.1: recurrent matrices orthogonal, v_a and biases zero, the rest Gaussian."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias") or name == "attention.score.weigh.weight":
                nn.init.zeros_(parameter)
            else:
                aligns = name.startswith("attention.")
                deviation = self.config.alignment_initialisation if aligns else self.config.initialisation
                nn.init.normal_(parameter, 0, deviation, generator=generator)
        for unit in [*self.encoder, self.decoder]:
            for matrix in unit.recurrent_matrices():
                nn.init.orthogonal_(matrix, generator=generator)

    # ------------------------------------------------------------ encoder

    def encode(self, source: Tensor, source_length: Tensor) -> BahdanauMemory:
        """See `TranslationModel.encode`."""
        length = source_length + 1
        source = F.pad(source, (0, 1)).scatter(1, source_length.unsqueeze(1), EOS)
        embedded = self.source_embedding(source)  # (batch, source, embedding)
        if self.attention is None:
            states = self._encode([embedded])[0]
            summary = states.gather(1, (length - 1).view(-1, 1, 1).expand(-1, -1, states.shape[2]))  # h_T
            attended = Attended(summary, summary, torch.ones_like(length))
            initial = summary.squeeze(1)
        else:
            order = backward_order(length, source.shape[1]).unsqueeze(2)  # (batch, source, 1)
            forward, backward = self._encode([embedded, embedded.gather(1, order.expand_as(embedded))])
            backward = backward.gather(1, order.expand_as(backward))
            annotations = torch.cat([forward, backward], 2)  # (batch, source, 2 hidden)
            annotations = annotations * positions_before(length, source.shape[1]).unsqueeze(2)
            attended = self.attention.prepare(annotations, length)
            initial = backward[:, 0]
        return BahdanauMemory(
            source_length, attended, self.context(attended.annotations), torch.tanh(self.initial(initial))
        )

    def _encode(self, embedded: list[Tensor]) -> Tensor:
        """States of each direction, in the order in which it reads; what follows a sentence is noise.

        embedded: for each direction (batch, source, embedding); returns (directions, batch, source, hidden).
        """
        inputs = torch.stack(
            [unit.project(words.transpose(0, 1)) for unit, words in zip(self.encoder, embedded, strict=True)], 1
        )  # (source, directions, batch, 3 hidden)
        initial = inputs.new_zeros(*inputs.shape[1:3], self.config.hidden)
        gates, candidate = (torch.cat(side) for side in zip(*(unit.transposed() for unit in self.encoder), strict=True))
        states = self._unroll(inputs, initial, (gates, candidate))[1:]
        return states.permute(1, 2, 0, 3)

    def _unroll(self, inputs: Tensor, hidden: Tensor, matrices: Matrices) -> Tensor:
        """States before the first and after each step; inputs, hidden as in `gated_step`, inputs of all steps."""
        if self._fast(inputs):
            return GatedRecurrence.apply(inputs, hidden, *matrices)
        states = [hidden]
        for step in inputs.unbind(0):
            states.append(gated_step(step, states[-1], *matrices))
        return torch.stack(states)  # (time + 1, units, rows, hidden)

    def _fast(self, like: Tensor) -> bool:
        """Whether the written-out backward passes apply: they know one precision."""
        return self.config.fast and not torch.is_autocast_enabled(like.device.type)

    # ------------------------------------------------------------ decoder

    def start(self, memory: BahdanauMemory) -> BahdanauState:
        """See `TranslationModel.start`: s_0 = tanh(W_s h_1) of the backward states, of h_T for RNNencdec."""
        return BahdanauState(memory.initial, 0)

    def step(self, memory: BahdanauMemory, state: BahdanauState, previous: Tensor) -> Step:
        """See `TranslationModel.step`."""
        embedded = self.target_embedding(previous)  # (rows, embedding)
        matrices = self.decoder.transposed()
        hidden, weights = self._advance(memory, state, self.decoder.project(embedded), matrices)
        context = (weights @ memory.source.annotations).flatten(0, 1)  # (rows, annotation) c_i
        log_probability = torch.log_softmax(self.output(self._deep(state.hidden, embedded, context)), 1)
        attention = None if self.attention is None else weights.flatten(0, 1)
        return Step(log_probability, attention, BahdanauState(hidden, state.time + 1))

    def _advance(
        self, memory: BahdanauMemory, state: BahdanauState, inputs: Tensor, matrices: Matrices
    ) -> tuple[Tensor, Tensor]:
        """Read one word: (rows, 3 hidden) W_z, W_r and W times E y_{i-1} to s_i (rows, hidden) and alpha_i
        (batch, beam, annotations), which looks from s_{i-1}.
        """
        query = state.hidden.unflatten(0, (len(memory.length), -1))  # (batch, beam, hidden)
        if self.attention is None:
            weights = query.new_ones(*query.shape[:2], 1)
        else:
            time = torch.full((1,), state.time + 1, device=query.device)
            weights = self.attention.weights(query, memory.source, time)
        inputs = inputs + (weights @ memory.inputs).flatten(0, 1)
        hidden = gated_step(inputs.unsqueeze(0), state.hidden.unsqueeze(0), *matrices)
        return hidden.squeeze(0), weights

    def _deep(self, hidden: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """t_i: the larger of each pair of t~_i; all (rows, ...), returns (rows, maxout)."""
        proposed = self.deep_state(hidden) + self.deep_word(embedded) + self.deep_context(context)
        return proposed.unflatten(1, (-1, 2)).max(2).values

    # ------------------------------------------------------------ teacher forcing

    def forward(self, batch: Batch) -> Forced:
        """See `TranslationModel.forward`."""
        memory = self.encode(batch.source, batch.source_length)
        embedded = self.target_embedding(batch.target_input)  # (batch, target, embedding)
        hidden, weights = self._read(memory, self.decoder.project(embedded))
        context = weights @ memory.source.annotations  # (batch, target, annotation)
        mask = batch.target_mask()  # (batch, target)
        attention = None if self.attention is None else weights
        if self.recordable:  # how much is padding, the host would have to wait for
            deep = self._deep(*(value.flatten(0, 1) for value in (hidden, embedded, context))).unflatten(0, mask.shape)
            likelihood = fused_gpu.WordLikelihood.apply(*self._with_bias(deep), batch.target_output, mask)
            return Forced(likelihood, attention)
        deep = self._deep(hidden[mask], embedded[mask], context[mask])  # (words, maxout): never sees padding
        word_likelihood = self._word_likelihood(deep, batch.target_output[mask])
        return Forced(word_likelihood.new_zeros(mask.shape).masked_scatter(mask, word_likelihood), attention)

    @property
    def recordable(self) -> bool:
        """See `TranslationModel.recordable`."""
        return self.config.fast and fused_gpu.available(self.output.weight.device)

    def _word_likelihood(self, deep: Tensor, words: Tensor) -> Tensor:
        """log softmax(W_o t_i + b) of the given words: (words, maxout) and (words,) to (words,)."""
        if not self._fast(deep):
            return -F.cross_entropy(self.output(deep), words, reduction="none")
        words = words.unsqueeze(0)
        real = torch.ones_like(words, dtype=torch.bool)
        return WordLikelihood.apply(*self._with_bias(deep.unsqueeze(0)), words, real).squeeze(0)

    def _with_bias(self, deep: Tensor) -> tuple[Tensor, Tensor]:
        """[t_i; 1] and [W_o, b], the product of which is W_o t_i + b."""
        return F.pad(deep, (0, 1), value=1.0), torch.cat([self.output.weight, self.output.bias.unsqueeze(1)], 1)

    def _read(self, memory: BahdanauMemory, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """s_{i-1} (batch, target, hidden) and alpha_i (batch, target, annotations) of each step i.

        inputs: (batch, target, 3 hidden) W_z, W_r and W times E y_{i-1}.
        """
        if self.attention is None:  # nothing to wait for: c is the same at every step
            steps = (inputs + memory.inputs).transpose(0, 1).unsqueeze(1)  # (target, 1, batch, 3 hidden)
            states = self._unroll(steps, memory.initial.unsqueeze(0), self.decoder.transposed())[:-1]
            return states.squeeze(1).transpose(0, 1), inputs.new_ones(*inputs.shape[:2], 1)
        if (
            self._fast(inputs)
            and isinstance(self.attention.score, Additive)
            and isinstance(self.attention.scope, Global)
        ):
            return self._read_fast(memory, inputs)
        state, hidden, weights = self.start(memory), [], []
        matrices = self.decoder.transposed()
        for step in inputs.unbind(1):
            hidden.append(state.hidden)
            after, attention = self._advance(memory, state, step, matrices)
            state = BahdanauState(after, state.time + 1)
            weights.append(attention)
        return torch.stack(hidden, 1), torch.cat(weights, 1)

    def _read_fast(self, memory: BahdanauMemory, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """`_read` for global additive attention."""
        score = self.attention.score
        states, weights = AttentiveRecurrence.apply(
            inputs.transpose(0, 1),
            memory.initial,
            memory.source.keys,
            memory.inputs,
            ~memory.source.inside(),
            torch.cat([score.project_query.weight, self.decoder.gates.weight]).T,
            score.weigh.weight.squeeze(0),
            self.decoder.candidate.weight.T,
        )
        return states.transpose(0, 1), weights.transpose(0, 1)


def backward_order(length: Tensor, source: int) -> Tensor:
    """The position (0-based) of the word that a right-to-left reader of each sentence meets at each slot, and the slot
    at which it meets each position: the order is its own inverse. Padding stays where it is. (batch, source).
    """
    slot = torch.arange(source, device=length.device)
    return torch.where(positions_before(length, source), length.unsqueeze(1) - 1 - slot, slot)
