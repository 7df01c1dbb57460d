"""The recurrences of the Bahdanau family with their backward passes written out.

The same numbers and gradients as the plain loops of `bahdanau.py`, faster: what does not wait for the step before is
computed for all steps at once, the gradient of every weight among it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable


class GatedRecurrence(torch.autograd.Function):
    """`gated_step` over a whole sequence, for several units side by side."""

    @staticmethod
    def forward(ctx: FunctionCtx, inputs: Tensor, initial: Tensor, gates: Tensor, candidate: Tensor) -> Tensor:
        """States before the first and after each step.

        inputs: (time, units, rows, 3 hidden); initial: (units, rows, hidden); gates, candidate: as `gated_step` takes
        them. Returns (time + 1, units, rows, hidden).
        """
        size = initial.shape[2]
        states = inputs.new_empty(len(inputs) + 1, *initial.shape)
        opened = inputs.new_empty(*inputs.shape[:3], 2 * size)  # z, r
        proposed = inputs.new_empty(*inputs.shape[:3], size)  # h~
        states[0] = initial
        z, r = opened.split(size, 3)
        to_gates, to_candidate = inputs.split((2 * size, size), 3)
        steps = (to_gates, to_candidate, opened, z, r, proposed, states[:-1], states[1:])
        for into_gates, into_candidate, gate, update, reset, new, hidden, after in zip(
            *map(torch.unbind, steps), strict=True
        ):
            torch.sigmoid(torch.baddbmm(into_gates, hidden, gates), out=gate)
            torch.tanh(torch.baddbmm(into_candidate, reset * hidden, candidate), out=new)
            torch.lerp(hidden, new, update, out=after)
        ctx.save_for_backward(states, opened, proposed, gates, candidate)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Gradients of inputs, initial, gates and candidate."""
        states, opened, proposed, gates, candidate = ctx.saved_tensors
        size, hidden = candidate.shape[1], states[:-1]
        slopes = GatedSlopes(hidden, opened, proposed)
        grad_inputs = opened.new_empty(*opened.shape[:3], 3 * size)
        steps = zip(*map(torch.unbind, (*grad_inputs.split((2 * size, size), 3), grad[:-1])), strict=True)
        carried = grad[-1]
        for t, (grad_gates, grad_candidate, grad_state) in reversed(list(enumerate(steps))):
            carried = slopes.back(t, carried, candidate.mT, grad_gates, grad_candidate)
            carried = torch.baddbmm(carried, grad_gates, gates.mT).add_(grad_state)
        r_hidden = opened[..., size:] * hidden
        return (
            grad_inputs,
            carried,
            by_unit(hidden).mT @ by_unit(grad_inputs[..., : 2 * size]),
            by_unit(r_hidden).mT @ by_unit(grad_inputs[..., 2 * size :]),
        )


class AttentiveRecurrence(torch.autograd.Function):
    """RNNsearch's decoder with global additive attention over a whole sequence.

    tanh x = 2 sigmoid(2x) - 1, and on a CPU the sigmoid is several times faster; the -1 leaves the softmax as it is.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        words: Tensor,
        initial: Tensor,
        keys: Tensor,
        annotations: Tensor,
        outside: Tensor,
        query: Tensor,
        weigh: Tensor,
        candidate: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """States before each step and the weights of the step.

        words: (time, rows, 3 hidden), W_z, W_r and W times E y_{i-1}, with biases; initial: (rows, hidden) s_0;
        keys: (rows, source, n') U_a h_j; annotations: (rows, source, 3 hidden) C_z h_j, C_r h_j, C h_j;
        outside: (rows, source) True at padding; query: (hidden, n' + 2 hidden), transposed W_a, U_z and U_r;
        weigh: (n') v_a; candidate: (hidden, hidden) transposed U.
        Returns (time, rows, hidden) and (time, rows, source).
        """
        time, size, width = len(words), initial.shape[1], len(weigh)
        states = words.new_empty(time, *initial.shape)
        opened = words.new_empty(time - 1, len(initial), 2 * size)  # z, r; no word waits for the state after the last
        proposed = words.new_empty(time - 1, *initial.shape)  # s~
        halves = words.new_empty(time, *keys.shape)  # sigmoid(2 (W_a s_{i-1} + U_a h_j))
        weights = words.new_empty(time, *keys.shape[:2])
        states[0] = initial
        doubled_keys, doubled_query = 2 * keys, torch.cat([2 * query[:, :width], query[:, width:]], 1)
        to_gates, to_candidate = words[:-1].split((2 * size, size), 2)
        z, r = opened.split(size, 2)
        gated = [
            *zip(*map(torch.unbind, (to_gates, to_candidate, opened, z, r, proposed, states[1:])), strict=True),
            None,
        ]
        for hidden, half, weight, unit in zip(*map(torch.unbind, (states, halves, weights)), gated, strict=True):
            asked = hidden @ doubled_query  # (rows, n' + 2 hidden)
            torch.add(doubled_keys, asked[:, :width].unsqueeze(1), out=half).sigmoid_()
            torch.softmax((half @ (2 * weigh)).masked_fill_(outside, -torch.inf), 1, out=weight)
            if unit is None:
                break
            into_gates, into_candidate, gates, update, reset, new, after = unit
            context = (weight.unsqueeze(1) @ annotations).squeeze(1)  # (rows, 3 hidden) C_z c_i, C_r c_i, C c_i
            torch.sigmoid(asked[:, width:].add_(into_gates).add_(context[:, : 2 * size]), out=gates)
            torch.tanh(torch.addmm(context[:, 2 * size :], reset * hidden, candidate).add_(into_candidate), out=new)
            torch.lerp(hidden, new, update, out=after)
        ctx.save_for_backward(states, weights, opened, proposed, halves, annotations, query, weigh, candidate)
        return states, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, grad_states: Tensor, grad_weights: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of forward's arguments."""
        states, weights, opened, proposed, halves, annotations, query, weigh, candidate = ctx.saved_tensors
        time, (size, width) = len(states), (states.shape[2], len(weigh))
        slopes = GatedSlopes(states[:-1], opened, proposed)
        grad_words = states.new_zeros(time, states.shape[1], 3 * size)
        grad_asked = states.new_zeros(time, states.shape[1], width + 2 * size)
        grad_scores = torch.empty_like(weights)
        grad_keys = torch.zeros_like(halves[0])
        carried = torch.zeros_like(states[0])
        grad_query, grad_query_gates = grad_asked.split((width, 2 * size), 2)
        of_unit = (grad_words, *grad_words.split((2 * size, size), 2), grad_query_gates)
        of_attention = (weights, grad_weights, halves, grad_scores, grad_query, grad_asked, grad_states)
        unit, attention = ([*zip(*map(torch.unbind, values), strict=True)] for values in (of_unit, of_attention))
        by_annotation, of_query, fourfold = annotations.mT, query.mT, 4 * weigh
        for i in reversed(range(time)):
            weight, grad_weight, half, grad_score, grad_width, grad_all, grad_state = attention[i]
            if i < time - 1:
                grad_word, grad_gates, grad_candidate, grad_same_gates = unit[i]
                carried = slopes.back(i, carried, candidate.mT, grad_gates, grad_candidate)
                grad_same_gates.copy_(grad_gates)
                grad_weight = grad_weight + (grad_word.unsqueeze(1) @ by_annotation).squeeze(1)
            weighted = weight * grad_weight
            torch.addcmul(weighted, weight, weighted.sum(1, keepdim=True), value=-1, out=grad_score)
            slope = torch.addcmul(half, half, half, value=-1)  # a quarter of tanh'
            torch.mul((grad_score.unsqueeze(1) @ slope).squeeze(1), fourfold, out=grad_width)
            grad_keys.addcmul_(grad_score.unsqueeze(2), slope)
            carried = torch.addmm(grad_state, grad_all, of_query).add_(carried)
        r_hidden = opened[..., size:] * states[:-1]
        return (
            grad_words,
            carried,
            grad_keys * fourfold,
            weights.permute(1, 2, 0) @ grad_words.transpose(0, 1),
            None,
            states.flatten(0, 1).mT @ grad_asked.flatten(0, 1),
            2 * (halves.flatten(0, 2).mT @ grad_scores.flatten()),  # a sentence's score gradients sum to 0
            r_hidden.flatten(0, 1).mT @ grad_words[:-1, :, 2 * size :].flatten(0, 1),
        )


class GatedSlopes:
    """What the backward step of a gated unit needs of its forward one; all steps at once."""

    def __init__(self, hidden: Tensor, opened: Tensor, proposed: Tensor) -> None:
        z, reset = opened.chunk(2, -1)
        keep = 1 - z
        to_candidate, to_update = z * (1 - proposed.square()), (proposed - hidden) * z * keep
        factors = (keep, reset, to_candidate, to_update, hidden * reset * (1 - reset))
        self.steps = [*zip(*map(torch.unbind, factors), strict=True)]

    def back(self, t: int, grad: Tensor, candidate: Tensor, grad_gates: Tensor, grad_candidate: Tensor) -> Tensor:
        """Fill the gradients of step t's inputs to z, r and h~; return that of its state, but for the way through z, r.

        grad: of the state after the step; candidate: U, not transposed.
        """
        keep, reset, to_candidate, to_update, to_reset = self.steps[t]
        grad_update, grad_reset = grad_gates.chunk(2, -1)
        torch.mul(grad, to_candidate, out=grad_candidate)
        grad_r_hidden = grad_candidate @ candidate
        torch.mul(grad, to_update, out=grad_update)
        torch.mul(grad_r_hidden, to_reset, out=grad_reset)
        return torch.addcmul(grad * keep, grad_r_hidden, reset)


def by_unit(values: Tensor) -> Tensor:
    """(time, units, rows, features) as (units, time * rows, features)."""
    return values.transpose(0, 1).flatten(1, 2)
