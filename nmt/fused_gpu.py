"""The fast path on a GPU: recurrences and word likelihoods as autograd functions over Triton kernels (`kernels`).

The same equations as the plain path, held to it in tests. As in `fused`, products that do not wait for the recurrence
are taken once for all steps, the weights' gradients among them. What remains of a step is a product and one kernel a
layer, and, for attention, a product of h_t and one kernel; no step waits for the host, so that all can be recorded.
Precision is autocast's: products read bfloat16 and give float32 gradients of float32 weights, while cell states,
softmaxes, the centre of local-p and the loss are float32. Time comes first: (time, batch, ...).
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt import attention as plain
from nmt import fused

if TYPE_CHECKING:
    from nmt.attention import Attended, Attention
    from nmt.luong import LuongMemory, LuongModel

HAS_TRITON = importlib.util.find_spec("triton") is not None  # torch's builds for a GPU come with it


def available(device: torch.device) -> bool:
    """Whether this path serves a device."""
    return device.type == "cuda" and HAS_TRITON


def kernels() -> ModuleType:
    """`nmt.kernels`, loaded when first needed, since it takes triton to be read."""
    return importlib.import_module("nmt.kernels")


def precision(like: Tensor) -> torch.dtype:
    """What products read: autocast's type, where it is on."""
    device = like.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else like.dtype


def weight_gradient(d_outputs: Tensor, inputs: Tensor) -> Tensor:
    """sum_t d_outputs_t^T inputs_t in float32; (time, batch, outputs) and (time, batch, inputs)."""
    left, right = d_outputs.flatten(0, -2).t(), inputs.flatten(0, -2)
    if left.is_cuda and left.dtype != torch.float32:
        return torch.mm(left, right, out_dtype=torch.float32)
    return (left @ right).float()


# ---------------------------------------------------------------- one layer of LSTM


class Layer:
    """An LSTM layer step by step, and its gradients; see `kernels.lstm_step` and `kernels.lstm_back`."""

    def __init__(self, gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, accumulate: bool) -> None:
        """gates: (time, batch, 4 hidden), to hold i, f, g, o; with `accumulate` it holds a summand of their arguments.
        weight: (4 hidden, read), of what a step reads, h_{t-1} last. hidden, cell: before the first step.
        """
        (time, batch, _), size = gates.shape, hidden.shape[1]
        self.gates, self.weight, self.beta, self.size = gates, weight, int(accumulate), size
        self.read = gates.new_empty(time + 1, batch, weight.shape[1])
        self.inputs, self.states = self.read[:, :, :-size], self.read[:, :, -size:]  # (time + 1, batch, ...)
        self.cells = gates.new_empty(time + 1, batch, size, dtype=torch.float32)
        self.states[0], self.cells[0] = hidden, cell
        self.readers: Tensor | None = None  # (time, batch, hidden) where h_t is read next but by this layer
        self.masks: Tensor | None = None  # (time, batch, hidden) dropout's factors on the way there

    def step(self, t: int) -> None:
        """Write h_t to states[t + 1] and to its reader, once inputs[t] is written."""
        self.gates[t].addmm_(self.read[t], self.weight.t(), beta=self.beta)
        reader = (at(self.readers, t), at(self.masks, t))
        kernels().lstm_step(self.gates[t], *self.cells[t : t + 2], self.states[t + 1], *reader)

    def prepare(self) -> None:
        """Start of the backward pass."""
        self.d_later: Tensor | None = None
        self.d_cell = torch.zeros_like(self.cells[0])

    def back(self, t: int, d_read: Tensor | None, d_output: Tensor | None) -> Tensor:
        """Gradient of inputs[t]; d_read: of what the reader got of h_t, d_output: of h_t itself."""
        read_by = (d_read, at(self.masks, t), d_output, self.d_later)
        kernels().lstm_back(self.gates[t], *self.cells[t : t + 2], *read_by, self.d_cell)
        d_all = self.gates[t] @ self.weight  # (batch, read)
        self.d_later = d_all[:, -self.size :]
        return d_all[:, : -self.size]

    def d_weights(self) -> tuple[Tensor, Tensor]:
        """Of what multiplies the inputs and of what multiplies h_{t-1}, each one product over all steps."""
        return weight_gradient(self.gates, self.inputs[:-1]), weight_gradient(self.gates, self.states[:-1])


def at(values: Tensor | None, t: int) -> Tensor | None:
    """A step's part; None beyond the last."""
    return values[t] if values is not None and t < len(values) else None


class Recurrence(torch.autograd.Function):
    """One LSTM layer over a whole sequence: h_1 .. h_T (time, batch, hidden), and c_T."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, hidden: Tensor, cell: Tensor, of_input: Tensor, of_state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """inputs: (time, batch, input); hidden, cell: (batch, hidden); of_input: (4 hidden, input); of_state."""
        kind = precision(of_input)
        with torch.autocast(inputs.device.type, enabled=False):
            inputs, of_input, of_state = (value.to(kind) for value in (inputs, of_input, of_state))
            layer = Layer(inputs @ of_input.t(), of_state, hidden, cell, accumulate=True)
            for t in range(len(inputs)):
                layer.step(t)
        ctx.layer, ctx.inputs, ctx.of_input, ctx.kinds = layer, inputs, of_input, (hidden.dtype, cell.dtype)
        return layer.states[1:], layer.cells[-1].to(cell.dtype, copy=True)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_states: Tensor, d_cell: Tensor) -> tuple[Tensor, ...]:
        layer = ctx.layer
        layer.prepare()
        layer.d_cell += d_cell
        for t in reversed(range(len(d_states))):
            layer.back(t, None, d_states[t])
        return (
            layer.gates @ ctx.of_input,
            layer.d_later.to(ctx.kinds[0]),
            layer.d_cell.to(ctx.kinds[1]),
            weight_gradient(layer.gates, ctx.inputs),
            weight_gradient(layer.gates, layer.states[:-1]),
        )


def run_layer(layer: nn.LSTM, inputs: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The fast form of `recurrence.unroll`."""
    states, cell = Recurrence.apply(inputs, hidden, cell, layer.weight_ih_l0, layer.weight_hh_l0)
    return states, states[-1], cell


# ---------------------------------------------------------------- attention


class ProductAttend:
    """h~_t = tanh(sum_s a_t(s) W_c1 hbar_s + W_c2 h_t) with scores h_t . keys_s: a product and a launch a step.

    `queries` holds every product of h_t: W_c2 h_t, which becomes h~_t, and W_p h_t (local-p), which becomes its tanh.
    A local scope reads its window alone.
    """

    def __init__(
        self, attention: Attention, source: Attended, projected: Tensor, of_query: Tensor, keys: Tensor, time: int
    ) -> None:
        """projected: (batch, source, hidden) W_c1 hbar_s; of_query: (queries, hidden)."""
        (batch, positions, size), scope = projected.shape, attention.scope
        self.projected, self.keys, self.of_query, self.length = projected, keys, of_query, source.length
        self.predictive, self.weigh, self.share, self.pull = isinstance(scope, plain.LocalPredictive), None, None, 1.0
        self.queries = projected.new_empty(time, batch, len(of_query))
        self.attentional = self.queries[:, :, :size]  # (time, batch, hidden) h~_t
        self.weights = projected.new_zeros(time, batch, positions, dtype=torch.float32)  # a_t
        if self.predictive:
            self.weigh = scope.weigh.weight.flatten()  # (hidden,) v_p
            self.share = self.weights.new_empty(time, batch)  # p_t / S
            self.pull = 0.5 if scope.readings.gaussian_gradient == "half" else 1.0
        self.constants = kernels().attend_constants(scope, positions, size)

    def step(self, t: int, state: Tensor, reader: Tensor | None, mask: Tensor | None) -> None:
        """From h_t, (batch, hidden): h~_t, and where `reader` is given h~_t times `mask` there."""
        torch.mm(state, self.of_query.t(), out=self.queries[t])
        kernels().attend_step(
            *(state, self.keys, self.projected, self.queries[t], self.weigh, at(self.share, t), self.weights[t]),
            *(self.length, reader, mask, t + 1, self.constants),
        )

    def alignment(self) -> Tensor:
        """a_t of all steps; (batch, time, source)."""
        return self.weights.transpose(0, 1)

    def prepare(self) -> None:
        """Room for what the backward steps leave behind."""
        self.d_queries, self.d_scores = torch.empty_like(self.queries), torch.zeros_like(self.weights)
        self.d_logit = None if self.share is None else torch.empty_like(self.share)  # of sigmoid's argument

    def back(self, t: int, d_read: Tensor | None, mask: Tensor | None, d_output: Tensor) -> Tensor:
        """Gradient of h_t, (batch, hidden); d_read: of what the reader got of h~_t, d_output: of h~_t itself."""
        d_state = torch.empty_like(self.attentional[t], memory_format=torch.contiguous_format)
        kernels().attend_back(
            *(d_output, d_read, mask, self.queries[t], self.d_queries[t], self.keys, self.projected, self.weigh),
            *(at(self.share, t), self.weights[t], self.length, self.d_scores[t], at(self.d_logit, t), d_state),
            *(t + 1, self.pull, self.constants),
        )
        return d_state.addmm_(self.d_queries[t], self.of_query)

    def gradients(self, states: Tensor) -> tuple[Tensor | None, ...]:
        """Of W_c1 hbar_s, of what multiplies h_t, of keys, v_a and v_p; states: (time, batch, hidden) h_t."""
        kind, size = states.dtype, states.shape[2]
        d_projected = self.weights.to(kind).permute(1, 2, 0) @ self.d_queries[:, :, :size].transpose(0, 1)
        d_keys = self.d_scores.to(kind).permute(1, 2, 0) @ states.transpose(0, 1)
        d_weigh = None
        if self.predictive:
            d_weigh = self.d_logit.reshape(1, -1) @ self.queries[:, :, size:].flatten(0, 1).float()
        return d_projected, weight_gradient(self.d_queries, states), d_keys, None, d_weigh


class AnyAttend:
    """The scores that have no kernel, by `fused.Attend` in float32; the interface of `ProductAttend`."""

    def __init__(
        self,
        attention: Attention,
        source: Attended,
        projected: Tensor,
        of_query: Tensor,
        keys: Tensor | None,
        time: int,
    ) -> None:
        source = plain.Attended(source.annotations, source.keys if keys is None else keys.float(), source.length)
        self.attend = fused.Attend(attention, source, projected.float(), of_query.float(), time)
        self.attentional, self.alignment = self.attend.attentional, self.attend.alignment
        self.prepare = self.attend.prepare

    def step(self, t: int, state: Tensor, reader: Tensor | None, mask: Tensor | None) -> None:
        """See `ProductAttend.step`."""
        attentional = self.attend.step(t, state.float())
        if reader is not None:
            reader.copy_(attentional if mask is None else attentional * mask)

    def back(self, t: int, d_read: Tensor | None, mask: Tensor | None, d_output: Tensor) -> Tensor:
        """See `ProductAttend.back`."""
        d_attentional = d_output.float()
        if d_read is not None:
            d_attentional = d_attentional + (d_read if mask is None else d_read * mask)
        return self.attend.back(t, d_attentional)

    def gradients(self, states: Tensor) -> tuple[Tensor | None, ...]:
        """See `ProductAttend.gradients`."""
        return self.attend.gradients(states.float())


# ---------------------------------------------------------------- the decoder


class FedDecoder(torch.autograd.Function):
    """The input-feeding decoder over all time steps: h~ and a_t, (batch, time, ...); as `fused.FedDecoder`."""

    @staticmethod
    def forward(
        ctx: Any,
        attention: Attention | None,
        source: Attended,
        masks: list[Tensor | None],  # of h~_{t-1}, and of the input of every layer but the first
        embedded: Tensor,  # (time, batch, embedding)
        of_word: Tensor,  # (4 hidden, embedding) the first layer's weights of it
        hidden: Tensor,  # (layers, batch, hidden) before the first step
        cell: Tensor,
        projected: Tensor | None,  # (batch, source, hidden) W_c1 hbar_s
        of_query: Tensor | None,  # (queries, hidden), see `ProductAttend`
        keys: Tensor | None,
        weigh_score: Tensor | None,  # v_a
        weigh_centre: Tensor | None,  # v_p
        *weights: Tensor,  # of each layer: (4 hidden, hidden) of h~ or the state below, and of its own h
    ) -> tuple[Tensor, Tensor | None]:
        kind, time = precision(of_word), len(embedded)
        with torch.autocast(embedded.device.type, enabled=False):
            embedded, of_word, *weights = (value.to(kind) for value in (embedded, of_word, *weights))
            joined = [torch.cat(pair, 1) for pair in zip(weights[::2], weights[1::2], strict=True)]
            first = embedded @ of_word.t()  # (time, batch, 4 hidden)
            gates = [first, *(torch.empty_like(first) for _ in joined[1:])]
            layers = [
                Layer(*each, accumulate=each[0] is first) for each in zip(gates, joined, hidden, cell, strict=True)
            ]
            attend = None
            if attention is not None:
                kernel = isinstance(attention.score, plain.Dot)  # or General, its subclass
                attend = (ProductAttend if kernel else AnyAttend)(
                    attention,
                    source,
                    *(None if value is None else value.to(kind) for value in (projected, of_query, keys)),
                    time,
                )
            for below, above, mask in zip(layers, layers[1:], masks[1:], strict=False):
                below.readers, below.masks = above.inputs, mask
            fed, fed_mask = layers[0].inputs[1:], None if masks[0] is None else masks[0][1:].contiguous()
            layers[0].inputs[0] = 0
            if attend is None:
                layers[-1].readers, layers[-1].masks = fed, fed_mask
            for t in range(time):
                for layer in layers:
                    layer.step(t)
                if attend is not None:
                    attend.step(t, layers[-1].states[t + 1], fed[t], at(fed_mask, t))
        ctx.layers, ctx.attend, ctx.fed_mask, ctx.embedded, ctx.of_word = layers, attend, fed_mask, embedded, of_word
        if attend is None:
            return layers[-1].states[1:].transpose(0, 1), None
        alignment = attend.alignment()
        ctx.mark_non_differentiable(alignment)
        return attend.attentional.transpose(0, 1), alignment

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_attentional: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
        layers, attend = ctx.layers, ctx.attend
        for part in (*layers, *([] if attend is None else [attend])):
            part.prepare()
        d_read = None
        for t, d_output in reversed(list(enumerate(d_attentional.unbind(1)))):
            if attend is not None:
                d_read, d_output = None, attend.back(t, d_read, at(ctx.fed_mask, t), d_output)
            for layer in reversed(layers):
                d_read, d_output = layer.back(t, d_read, d_output), None
        d_gates = layers[0].gates  # (time, batch, 4 hidden)
        return (
            *(None, None, None),
            d_gates @ ctx.of_word,
            weight_gradient(d_gates, ctx.embedded),
            torch.stack([layer.d_later for layer in layers]),
            torch.stack([layer.d_cell for layer in layers]),
            *((None,) * 5 if attend is None else attend.gradients(layers[-1].states[1:])),
            *(gradient for layer in layers for gradient in layer.d_weights()),
        )


def read_fed(model: LuongModel, memory: LuongMemory, embedded: Tensor) -> tuple[Tensor, Tensor | None]:
    """The fast form of `LuongModel._read_fed`: h~ (batch, target, hidden) and a_t (batch, target, source).

    embedded: (batch, target, embedding). No gradient flows through a_t.
    """
    embedded, masks = fused.drop_embedded(model, embedded)
    first, *above = model.decoder.layers
    of_word, of_fed = first.weight_ih_l0.split([model.config.embedding, model.config.hidden], 1)
    weights = [of_fed, first.weight_hh_l0, *(w for layer in above for w in (layer.weight_ih_l0, layer.weight_hh_l0))]
    parts = fused.attention_parts(model, memory.source)
    source = (model.attention, memory.source)
    return FedDecoder.apply(*source, masks, embedded, of_word, memory.hidden, memory.cell, *parts, *weights)


# ---------------------------------------------------------------- words


class WordLikelihood(torch.autograd.Function):
    """log softmax(W_s h~)[word], 0 at padding; one buffer from logits to gradient.

    Padding is computed and left out, not cut out: how much there is, the host would have to wait for.
    """

    @staticmethod
    def forward(ctx: Any, attentional: Tensor, weight: Tensor, words: Tensor, mask: Tensor) -> Tensor:
        """attentional: (batch, target, hidden); words, mask: (batch, target); returns (batch, target)."""
        kind, gradient = precision(weight), any(ctx.needs_input_grad)
        with torch.autocast(weight.device.type, enabled=False):
            states = attentional.transpose(0, 1).flatten(0, 1).to(kind)  # (target * batch, hidden)
            weight = weight.to(kind)
            logits = states @ weight.t()  # (target * batch, vocabulary), with gradient softmax - onehot from here on
            likelihood = kernels().word_likelihood(logits, words.t().flatten(), gradient)
        if gradient:
            ctx.save_for_backward(logits, states, weight, mask)
        return likelihood.view_as(words.t()).t() * mask

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_likelihood: Tensor) -> tuple[Tensor | None, ...]:
        d_logits, states, weight, mask = ctx.saved_tensors
        share = -(d_likelihood * mask).t().reshape(-1, 1)  # (target * batch, 1)
        d_attentional = (d_logits @ weight) * share
        d_weight = weight_gradient(d_logits, (states * share).to(states.dtype))
        return d_attentional.to(states.dtype).view(*mask.t().shape, -1).transpose(0, 1), d_weight, None, None
