"""The fast path: the input-feeding decoder and the word likelihoods as autograd functions with hand-written gradients.

Same equations as `recurrence`, `attention` and `luong`, held to them in tests. What makes it fast:
- products that do not wait for the recurrence are taken once for all steps: the embedding's part of the gates, W_c's
  part of every annotation (W_c [c_t; h_t] = sum_s a_t(s) W_c1 hbar_s + W_c2 h_t), and all the weights' gradients;
- everything that multiplies h_t is one product a step (`Attend`), and so is everything a layer reads;
- the factors of the backward recurrence are computed for all steps at once;
- one `unbind` makes the views of all steps; results are written where the next product reads them;
- tanh x = 2 sigmoid(2x) - 1: on a CPU torch's sigmoid is six times as fast as its tanh.
Time comes first: (time, batch, ...). d_x is the gradient of the loss with respect to x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from nmt import attention as plain
from nmt.attention import Attended, Attention, positions

if TYPE_CHECKING:
    from nmt.luong import LuongMemory, LuongModel, LuongState
    from nmt.recurrence import StackedLSTM


def supports(model: LuongModel) -> bool:
    """Whether the fast decoders can stand in for the plain one: not for two exotic readings."""
    return model.switches.location != "slots" and model.switches.gaussian != "before_softmax"


def run_layer(layer: nn.LSTM, inputs: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The fast form of `recurrence.unroll`: torch's own."""
    states, (hidden, cell) = layer(inputs, (hidden.unsqueeze(0).contiguous(), cell.unsqueeze(0).contiguous()))
    return states, hidden.squeeze(0), cell.squeeze(0)


# ---------------------------------------------------------------- one layer of LSTM


def squash(x: Tensor, minus_one: Tensor) -> Tensor:
    """tanh(x), in place."""
    return torch.add(minus_one, x.add_(x).sigmoid_(), alpha=2, out=x)


def each_step(*values: Tensor) -> list[tuple[Tensor, ...]]:
    """Views of each time step: values[0][t], values[1][t], ..."""
    return list(zip(*(value.unbind(0) for value in values), strict=True))


class Layer:
    """i, f, o = sigmoid(.), g = tanh(.); c = f * c + i * g; h = o * tanh(c), step by step, and its gradients."""

    def __init__(self, gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, accumulate: bool) -> None:
        """gates: (time, batch, 4 hidden), to hold i, f, g, o; with `accumulate` it holds a summand of their arguments.
        weight: (4 hidden, read), of what a step reads, h_{t-1} last. hidden, cell: before the first step.
        """
        (time, batch, _), n = gates.shape, hidden.shape[1]
        self.gates, self.weight, self.beta, self.size = gates, weight, int(accumulate), n
        self.read = gates.new_empty(time + 1, batch, weight.shape[1])
        self.states = self.read[:, :, -n:]  # (time + 1, batch, hidden) h
        self.cells, self.squashed = gates.new_empty(time + 1, batch, n), gates.new_empty(time, batch, n)  # c, tanh(c)
        self.states[0], self.cells[0] = hidden, cell
        self.transposed = weight.t().contiguous()  # (read, 4 hidden)
        for doubled in (self.transposed, gates):  # tanh x = 2 sigmoid(2x) - 1
            doubled[..., 2 * n : 3 * n] *= 2
        self.minus_one = gates.new_full((), -1.0)
        self.inputs = self.read[:, :, :-n].unbind(0)
        after = (self.cells[1:], self.states[1:])
        self.each = each_step(gates, *gates.split(n, 2), self.read[:-1], self.cells[:-1], self.squashed, *after)

    def step(self, t: int) -> Tensor:
        """h_t, (batch, hidden), once `inputs[t]` is written."""
        gates, i, f, g, o, read, cell, squashed, new_cell, state = self.each[t]
        gates.addmm_(read, self.transposed, beta=self.beta).sigmoid_()
        torch.add(self.minus_one, g, alpha=2, out=g)
        torch.mul(f, cell, out=new_cell).addcmul_(i, g)
        torch.add(new_cell, new_cell, out=squashed).sigmoid_()
        torch.add(self.minus_one, squashed, alpha=2, out=squashed)
        return torch.mul(o, squashed, out=state)

    def prepare(self) -> None:
        """The factors of all steps: d_i, d_f and d_g (of the arguments) are theirs times d_c, d_o is its times d_h."""
        i, f, g, o = self.gates.split(self.size, 2)
        factor = torch.empty_like(self.gates).unflatten(2, (4, self.size))  # (time, batch, 4, hidden)
        torch.mul(g, i - i * i, out=factor[:, :, 0])
        torch.mul(self.cells[:-1], f - f * f, out=factor[:, :, 1])
        torch.mul(i, 1 - g * g, out=factor[:, :, 2])
        torch.mul(self.squashed, o - o * o, out=factor[:, :, 3])
        through_tanh = o * (1 - self.squashed * self.squashed)  # d_c += d_h times this
        self.d_gates = factor.flatten(2)  # (time, batch, 4 hidden), a step's once it is done
        self.each_back = each_step(self.d_gates, factor[:, :, :3], factor[:, :, 3], through_tanh, f)
        self.d_hidden, self.d_cell = torch.zeros_like(self.cells[0]), torch.zeros_like(self.cells[0])
        self.d_cell_of_three = self.d_cell.unsqueeze(1)

    def back(self, t: int, d_hidden: Tensor) -> Tensor:
        """Gradient of `inputs[t]`; d_hidden: of h_t, but for what comes from this layer's later steps."""
        d_gates, d_ifg, d_o, through_tanh, f = self.each_back[t]
        d_hidden = d_hidden + self.d_hidden
        self.d_cell.addcmul_(d_hidden, through_tanh)
        d_o.mul_(d_hidden)
        d_ifg.mul_(self.d_cell_of_three)
        self.d_cell.mul_(f)
        d_read = torch.mm(d_gates, self.weight)  # (batch, read)
        self.d_hidden = d_read[:, -self.size :]
        return d_read[:, : -self.size]

    def d_weight(self) -> Tensor:
        """One product over all steps; (4 hidden, read)."""
        return self.d_gates.flatten(0, 1).t() @ self.read[:-1].flatten(0, 1)


# ---------------------------------------------------------------- what a step sees of the source


class Whole:
    """All positions; what attention may not look at is hidden by `bias`."""

    def __init__(self, attention: Attention, source: Attended, centre: Tensor | None, time: int, like: Tensor) -> None:
        """centre: (time, batch, 1) of local-m; None for the others."""
        position = positions(source.annotations.shape[1], source.length)
        self.position = position.to(like.dtype)  # (source,)
        self.each_position = [self.position] * time
        bias = static_bias(attention, source, centre, position.expand(1, len(source.length), -1), like)
        if isinstance(attention.score, plain.Location):
            bias[:, :, attention.score.longest :].clamp_(max=plain.UNKNOWN_POSITION)
        self.bias = bias.expand(time, -1, -1).unbind(0)  # (batch, seen) each

    def move(self, t: int, centre: Tensor) -> None:
        """Step t looks around (batch, 1) whole centres; here it sees all the same."""

    def table(self, values: Tensor) -> Tensor:
        """What the positions hold, (batch, source, hidden), ready for `take`."""
        return values

    def take(self, t: int, table: Tensor) -> Tensor:
        """What step t sees of a table; (batch, seen, hidden)."""
        return table

    def add(self, t: int, d_table: Tensor, d_taken: Tensor) -> None:
        """Add what step t took to a table's gradient."""
        d_table.add_(d_taken)

    def gradient(self, weights: Tensor, d_sums: Tensor) -> Tensor:
        """Of the values if each step made sum_s weights[t](s) values(s) of them and got d_sums[t]."""
        return torch.bmm(weights.permute(1, 2, 0), d_sums.transpose(0, 1))

    def spread(self, weights: Tensor) -> Tensor:
        """Weights of what is seen as weights of the source; (time, batch, source)."""
        return weights


class Window:
    """The 2D + 1 positions around each step's centre, and some more at the ends: no step touches the whole source."""

    def __init__(self, attention: Attention, source: Attended, centre: Tensor | None, time: int, like: Tensor) -> None:
        """centre: (time, batch, 1) of local-m; None for local-p, whose steps `move`."""
        self.half_width, (self.batch, self.source, _) = attention.scope.half_width, source.annotations.shape
        size, length = 2 * self.half_width + 1, source.length.unsqueeze(1)  # (batch, 1)
        self.last = (length - size + 1).clamp(min=1)  # first position of the last window of each sentence
        self.column = torch.arange(size, device=like.device)
        self.row = torch.arange(-1, self.batch * self.source - 1, self.source, device=like.device).unsqueeze(1)
        self.position = length.new_empty(time, self.batch, size)
        self.index = torch.empty_like(self.position)  # in a table
        self.each_position, self.each_index = self.position.unbind(0), self.index.flatten(1).unbind(0)
        if centre is None:  # a sentence shorter than a window has it at its beginning
            position = (self.column + 1).expand(1, self.batch, -1)
        else:
            self.move(slice(None), centre)
            position = self.position
        self.bias = static_bias(attention, source, centre, position, like).expand(time, -1, -1).unbind(0)

    def move(self, t: int | slice, centre: Tensor) -> None:
        first = (centre.long() - self.half_width).clamp(min=1).minimum(self.last)
        torch.add(first, self.column, out=self.position[t])
        torch.add(self.position[t], self.row, out=self.index[t])

    def table(self, values: Tensor) -> Tensor:
        return values.flatten(0, 1)

    def take(self, t: int, table: Tensor) -> Tensor:
        return table.index_select(0, self.each_index[t]).view(self.batch, len(self.column), -1)

    def add(self, t: int, d_table: Tensor, d_taken: Tensor) -> None:
        d_table.index_add_(0, self.each_index[t], d_taken.flatten(0, 1))

    def gradient(self, weights: Tensor, d_sums: Tensor) -> Tensor:
        d_table = d_sums.new_zeros(self.batch * self.source, d_sums.shape[2])
        for t, (weight, d_sum) in enumerate(each_step(weights.unsqueeze(3), d_sums.unsqueeze(2))):
            self.add(t, d_table, weight * d_sum)
        return d_table.view(self.batch, self.source, -1)

    def spread(self, weights: Tensor) -> Tensor:
        return weights.new_zeros(*weights.shape[:2], self.source).scatter_(2, self.position - 1, weights)


def static_bias(
    attention: Attention, source: Attended, centre: Tensor | None, position: Tensor, like: Tensor
) -> Tensor:
    """What scores get that no state changes: -inf where attention may not look; (1 or time, batch, seen).

    centre: (time, batch, 1) of local-m; position: (1 or time, batch, seen).
    """
    scope = attention.scope
    allowed = position <= source.length.unsqueeze(1)
    if centre is not None:
        allowed = allowed & ((position - centre).abs() <= scope.half_width)
    elif isinstance(scope, plain.Global) and not scope.masked:
        allowed = torch.ones_like(allowed)
    return like.new_zeros(allowed.shape).masked_fill_(~allowed, -torch.inf)


# ---------------------------------------------------------------- scores


class ProductScore:
    """dot and general: score of s = h_t . keys_s."""

    def __init__(self, seen: Whole | Window, keys: Tensor) -> None:
        self.seen, self.keys = seen, seen.table(keys)

    def step(self, t: int, hidden: Tensor, query: Tensor, bias: Tensor) -> Tensor:
        keys = self.seen.take(t, self.keys)
        return torch.baddbmm(bias.unsqueeze(1), hidden.unsqueeze(1), keys.transpose(1, 2)).squeeze(1)  # (batch, seen)

    def back(self, t: int, d_scores: Tensor, d_query: Tensor) -> Tensor:
        return torch.bmm(d_scores.unsqueeze(1), self.seen.take(t, self.keys)).squeeze(1)  # (batch, hidden)

    def gradients(self, d_scores: Tensor, hidden: Tensor) -> tuple[Tensor, None]:
        """Of the keys."""
        return self.seen.gradient(d_scores, hidden), None


class LocationScore:
    """score of s = (W_a h_t)_s, which the one product of h_t holds already."""

    def step(self, t: int, hidden: Tensor, query: Tensor, bias: Tensor) -> Tensor:
        return query + bias

    def back(self, t: int, d_scores: Tensor, d_query: Tensor) -> None:
        d_query.copy_(d_scores)

    def gradients(self, d_scores: Tensor, hidden: Tensor) -> tuple[None, None]:
        return None, None


class WindowLocationScore(LocationScore):
    """The same of a window; the last column of the query is for all positions beyond the longest."""

    def __init__(self, seen: Window) -> None:
        self.seen = seen

    def column(self, t: int, query: Tensor) -> Tensor:
        """Of the query, for each position seen."""
        return (self.seen.each_position[t] - 1).clamp_(max=query.shape[1] - 1)

    def step(self, t: int, hidden: Tensor, query: Tensor, bias: Tensor) -> Tensor:
        query[:, -1] = plain.UNKNOWN_POSITION
        return query.gather(1, self.column(t, query)).add_(bias)

    def back(self, t: int, d_scores: Tensor, d_query: Tensor) -> None:
        d_query.zero_().scatter_add_(1, self.column(t, d_query), d_scores)


class AdditiveScore:
    """additive, concat: score of s = v_a . tanh(query + keys_s)."""

    def __init__(self, seen: Whole | Window, keys: Tensor, weigh: Tensor, time: int) -> None:
        self.seen, self.keys, self.weigh = seen, seen.table(keys), weigh  # weigh: (1, hidden)
        self.joint = keys.new_empty(time, *seen.bias[0].shape, keys.shape[2])  # (time, batch, seen, hidden) the tanh
        self.each, self.minus_one, self.shape = self.joint.unbind(0), keys.new_full((), -1.0), keys.shape

    def step(self, t: int, hidden: Tensor, query: Tensor, bias: Tensor) -> Tensor:
        joint = torch.add(query.unsqueeze(1), self.seen.take(t, self.keys), out=self.each[t])
        squash(joint, self.minus_one)
        return torch.addmv(bias.flatten(), joint.flatten(0, 1), self.weigh[0]).view_as(bias)

    def back(self, t: int, d_scores: Tensor, d_query: Tensor) -> None:
        if t == len(self.each) - 1:
            self.d_keys = torch.zeros_like(self.keys)
        joint = self.each[t]
        d_joint = (1 - joint * joint).mul_(self.weigh).mul_(d_scores.unsqueeze(2))  # (batch, seen, hidden)
        torch.sum(d_joint, 1, out=d_query)
        self.seen.add(t, self.d_keys, d_joint)

    def gradients(self, d_scores: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Of the keys and of v_a."""
        return self.d_keys.view(self.shape), d_scores.reshape(1, -1) @ self.joint.flatten(0, 2)


# ---------------------------------------------------------------- scopes


class MaskedSoftmax:
    """global and local-m: a_t = softmax(scores + bias)."""

    def __init__(self, seen: Whole | Window, time: int) -> None:
        self.seen, (batch, size), like = seen, seen.bias[0].shape, seen.bias[0]
        self.weights = like.new_empty(time, batch, size)  # a_t
        self.each, self.minus_one = self.weights.unbind(0), like.new_full((), -1.0)

    def aim(self, t: int, centre: Tensor) -> Tensor:
        """Where step t looks: what its scores get; (batch, seen)."""
        return self.seen.bias[t]

    def step(self, t: int, scores: Tensor) -> Tensor:
        return torch.softmax(scores, 1, out=self.each[t])

    def back(self, t: int, d_weights: Tensor, d_centre: Tensor) -> Tensor:
        return softmax_back(self.each[t], d_weights)

    def gradients(self, centre: Tensor) -> None:
        return None


def softmax_back(weights: Tensor, d_weights: Tensor) -> Tensor:
    """d_scores = a * (d_a - sum a d_a); (batch, seen)."""
    product = weights * d_weights
    return product.addcmul_(weights, product.sum(1, keepdim=True), value=-1)


class GaussianSoftmax(MaskedSoftmax):
    """local-p: p_t = S sigmoid(v_p . tanh(W_p h_t)) (eq. 9); a_t = softmax in the window * Gaussian (eq. 10).

    Renormalised, the same is softmax(scores + exponent of the Gaussian).
    """

    def __init__(self, seen: Whole | Window, time: int, scope: plain.LocalPredictive, length: Tensor) -> None:
        super().__init__(seen, time)
        readings, self.half_width, self.weigh = scope.readings, scope.half_width, scope.weigh.weight
        self.renormalised = readings.gaussian == "renormalised"
        self.length = length.unsqueeze(1).to(self.weights.dtype)  # (batch, 1)
        self.shift = float(readings.centre == "plus_one")
        self.sharpness = 4 / self.half_width**2  # 1 / sigma^2
        self.gradient = self.sharpness * (0.5 if readings.gaussian_gradient == "half" else 1)
        self.share = self.weights.new_empty(time, len(length), 1)  # sigmoid(.)
        self.each_share, self.turned = self.share.unbind(0), self.weigh.t()
        self.each_softmax, self.each_gaussian = (torch.empty_like(self.weights).unbind(0) for _ in range(2))

    def aim(self, t: int, centre: Tensor) -> Tensor:
        torch.mm(squash(centre, self.minus_one), self.turned, out=self.each_share[t])
        share = self.each_share[t].sigmoid_()  # (batch, 1)
        p = (share * self.length).add_(self.shift)
        whole = p.floor()
        self.seen.move(t, whole)
        position, bias = self.seen.each_position[t], self.seen.bias[t]
        exponent = (position - p).square_().mul_(-self.sharpness / 2)  # (batch, seen)
        if self.renormalised:
            bias = bias + exponent
        else:
            torch.exp(exponent, out=self.each_gaussian[t])
        return bias.masked_fill((position - whole).abs_() > self.half_width, -torch.inf)

    def step(self, t: int, scores: Tensor) -> Tensor:
        if self.renormalised:
            return super().step(t, scores)
        return torch.mul(torch.softmax(scores, 1, out=self.each_softmax[t]), self.each_gaussian[t], out=self.each[t])

    def prepare(self, tanh: Tensor) -> None:
        """The factors of all steps; tanh: (time, batch, hidden) of W_p h_t."""
        p = self.share * self.length + self.shift
        pull = (self.seen.position - p) * self.gradient  # d exponent / d p_t
        if not self.renormalised:
            pull *= self.weights
        self.each_pull = pull.unbind(0)
        self.each_slope = ((self.share - self.share.square()) * self.length).unbind(0)
        self.each_through = ((1 - tanh * tanh) * self.weigh).unbind(0)
        self.d_logit = torch.empty_like(self.share)  # of the sigmoid's argument
        self.each_d_logit = self.d_logit.unbind(0)

    def back(self, t: int, d_weights: Tensor, d_centre: Tensor) -> Tensor:
        if self.renormalised:
            d_exponent = d_scores = softmax_back(self.each[t], d_weights)
        else:  # `each_pull` holds the other factor, a_t
            d_exponent = d_weights
            d_scores = softmax_back(self.each_softmax[t], d_weights * self.each_gaussian[t])
        d_p = (d_exponent * self.each_pull[t]).sum(1, keepdim=True)
        torch.mul(self.each_through[t], torch.mul(d_p, self.each_slope[t], out=self.each_d_logit[t]), out=d_centre)
        return d_scores

    def gradients(self, tanh: Tensor) -> Tensor:
        """Of v_p; (1, hidden)."""
        return self.d_logit.reshape(1, -1) @ tanh.flatten(0, 1)


# ---------------------------------------------------------------- attention


class Attend:
    """h~_t = tanh(sum_s a_t(s) W_c1 hbar_s + W_c2 h_t), step by step.

    `queries` holds every product of h_t: W_c2 h_t, which becomes h~_t, W_p h_t (local-p), the score's query.
    """

    def __init__(self, attention: Attention, source: Attended, projected: Tensor, of_query: Tensor, time: int) -> None:
        """projected: (batch, source, hidden) W_c1 hbar_s; of_query: (queries, hidden)."""
        (batch, _, size), self.of_query = projected.shape, of_query
        self.transposed, self.minus_one = of_query.t().contiguous(), of_query.new_full((), -1.0)
        score, scope, centre = attention.score, attention.scope, None
        if isinstance(scope, plain.LocalMonotonic):
            centre = torch.minimum(positions(time, source.length).view(-1, 1, 1), source.length.unsqueeze(1))
        windows = attention.gathers(source.annotations.shape[1], 1)
        self.seen = (Window if windows else Whole)(attention, source, centre, time, projected)
        self.projected = self.seen.table(projected)
        local_p = isinstance(scope, plain.LocalPredictive)
        self.scope = (
            GaussianSoftmax(self.seen, time, scope, source.length) if local_p else MaskedSoftmax(self.seen, time)
        )
        self.score: ProductScore | AdditiveScore | LocationScore
        if isinstance(score, plain.Location):
            self.score = WindowLocationScore(self.seen) if windows else LocationScore()
        elif isinstance(score, plain.Additive):
            self.score = AdditiveScore(self.seen, source.keys, score.weigh.weight, time)
        else:
            self.score = ProductScore(self.seen, source.keys)
        self.queries = projected.new_empty(time, batch, len(of_query))
        self.parts = [size, size if local_p else 0, len(of_query) - size * (1 + local_p)]
        self.each = self.views(self.queries)
        self.attentional = self.queries[:, :, :size]

    def views(self, queries: Tensor) -> list[tuple[Tensor, ...]]:
        """For each step: all, W_c2's part, the centre's and the score's (empty without)."""
        return each_step(queries, *queries.split(self.parts, 2))

    def step(self, t: int, hidden: Tensor) -> Tensor:
        """h~_t, (batch, hidden)."""
        queries, attentional, centre, query = self.each[t]
        torch.mm(hidden, self.transposed, out=queries)
        scores = self.score.step(t, hidden, query, self.scope.aim(t, centre))
        weights = self.scope.step(t, scores)  # (batch, seen)
        context = torch.bmm(weights.unsqueeze(1), self.seen.take(t, self.projected))  # (batch, 1, hidden) W_c1 c_t
        return squash(attentional.add_(context.squeeze(1)), self.minus_one)

    def alignment(self) -> Tensor:
        """a_t of all steps; (batch, time, source)."""
        return self.seen.spread(self.scope.weights).transpose(0, 1)

    def prepare(self) -> None:
        """What the backward pass computes for all steps at once."""
        self.d_queries, self.d_scores = torch.empty_like(self.queries), torch.empty_like(self.scope.weights)
        self.each_d, self.each_d_scores = self.views(self.d_queries), self.d_scores.unbind(0)
        self.each_through = (1 - self.attentional * self.attentional).unbind(0)
        if isinstance(self.scope, GaussianSoftmax):
            self.scope.prepare(self.queries.split(self.parts, 2)[1])

    def back(self, t: int, d_attentional: Tensor) -> Tensor:
        """Gradient of h_t, (batch, hidden)."""
        d_queries, d_sum, d_centre, d_query = self.each_d[t]
        torch.mul(d_attentional, self.each_through[t], out=d_sum)  # of what h~_t is the tanh of
        d_weights = torch.bmm(self.seen.take(t, self.projected), d_sum.unsqueeze(2)).squeeze(2)  # (batch, seen)
        d_scores = self.each_d_scores[t].copy_(self.scope.back(t, d_weights, d_centre))
        d_hidden = self.score.back(t, d_scores, d_query)  # but for what flows through the queries
        if d_hidden is None:
            return torch.mm(d_queries, self.of_query)
        return d_hidden.addmm_(d_queries, self.of_query)

    def gradients(self, hidden: Tensor) -> tuple[Tensor | None, ...]:
        """Of W_c1 hbar_s, of what multiplies h_t, of keys, v_a and v_p; hidden: (time, batch, hidden) h_t."""
        d_sums, _, _ = self.d_queries.split(self.parts, 2)
        _, centre, _ = self.queries.split(self.parts, 2)
        d_projected = self.seen.gradient(self.scope.weights, d_sums)
        d_of_query = self.d_queries.flatten(0, 1).t() @ hidden.flatten(0, 1)
        return d_projected, d_of_query, *self.score.gradients(self.d_scores, hidden), self.scope.gradients(centre)


# ---------------------------------------------------------------- the decoder


class FedDecoder(torch.autograd.Function):
    """The input-feeding decoder over all time steps: h~ and a_t, (batch, time, ...).

    Masks are None or hold dropout's factors. Gradients flow to the tensors after them, in their order; those that
    `attention` and `source` hold as well are given for that reason alone.
    """

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
        of_query: Tensor | None,  # (queries, hidden), see `Attend`
        keys: Tensor | None,
        weigh_score: Tensor | None,  # v_a
        weigh_centre: Tensor | None,  # v_p
        *weights: Tensor,  # (4 hidden, 2 hidden) of each layer: of h~ or the state below, and of its own h
    ) -> tuple[Tensor, Tensor | None]:
        (time, batch, _), size = embedded.shape, hidden.shape[2]
        first = (embedded.flatten(0, 1) @ of_word.t()).view(time, batch, 4 * size)
        gates = [first, *(torch.empty_like(first) for _ in weights[1:])]
        layers = [Layer(*each, accumulate=each[0] is first) for each in zip(gates, weights, hidden, cell, strict=True)]
        attend = None if attention is None else Attend(attention, source, projected, of_query, time)
        steps = [[None] * time if mask is None else mask.unbind(0) for mask in masks]
        attentional = layers[-1].states[1:] if attend is None else attend.attentional  # (time, batch, hidden)
        state = hidden.new_zeros(batch, size)
        for t in range(time):
            for layer, mask in zip(layers, steps, strict=True):
                drop(state, mask[t], layer.inputs[t])
                state = layer.step(t)
            if attend is not None:
                state = attend.step(t, state)
        ctx.layers, ctx.attend, ctx.steps, ctx.embedded, ctx.of_word = layers, attend, steps, embedded, of_word
        if attend is None:
            return attentional.transpose(0, 1), None
        alignment = attend.alignment()
        ctx.mark_non_differentiable(alignment)
        return attentional.transpose(0, 1), alignment

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_attentional: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
        layers, attend, embedded = ctx.layers, ctx.attend, ctx.embedded
        for part in (*layers, *([] if attend is None else [attend])):
            part.prepare()
        d_fed = torch.zeros_like(d_attentional[:, 0])
        for t, d_state in reversed(list(enumerate(d_attentional.unbind(1)))):
            d_state = d_state + d_fed
            if attend is not None:
                d_state = attend.back(t, d_state)
            for layer, mask in reversed(list(zip(layers, ctx.steps, strict=True))):
                d_state = layer.back(t, d_state)
                if mask[t] is not None:
                    d_state = d_state * mask[t]
            d_fed = d_state
        d_gates = layers[0].d_gates.flatten(0, 1)  # (time * batch, 4 hidden)
        return (
            *(None, None, None),
            (d_gates @ ctx.of_word).view_as(embedded),
            d_gates.t() @ embedded.flatten(0, 1),
            torch.stack([layer.d_hidden for layer in layers]),
            torch.stack([layer.d_cell for layer in layers]),
            *((None,) * 5 if attend is None else attend.gradients(layers[-1].states[1:])),
            *(layer.d_weight() for layer in layers),
        )


def drop(state: Tensor, mask: Tensor | None, out: Tensor) -> None:
    """Write a state, with dropout if there is a mask, where the next product reads it."""
    if mask is None:
        out.copy_(state)
    else:
        torch.mul(state, mask, out=out)


def read_fed(model: LuongModel, memory: LuongMemory, embedded: Tensor) -> tuple[Tensor, Tensor | None]:
    """The fast form of `LuongModel._read_fed`: h~ (batch, target, hidden) and a_t (batch, target, source).

    embedded: (batch, target, embedding). No gradient flows through a_t.
    """
    embedded, masks = drop_embedded(model, embedded)
    first, *above = model.decoder.layers
    of_word, of_fed = first.weight_ih_l0.split([model.config.embedding, model.config.hidden], 1)
    weights = [torch.cat([of_fed, first.weight_hh_l0], 1)]
    weights += [torch.cat([layer.weight_ih_l0, layer.weight_hh_l0], 1) for layer in above]
    parts = attention_parts(model, memory.source)
    source = (model.attention, memory.source)
    return FedDecoder.apply(*source, masks, embedded, of_word, memory.hidden, memory.cell, *parts, *weights)


def attention_parts(model: LuongModel, source: Attended) -> tuple[Tensor | None, ...]:
    """W_c1 hbar_s, all that multiplies h_t, the keys, v_a and v_p."""
    if model.attention is None:
        return (None,) * 5
    score, scope = model.attention.score, model.attention.scope
    of_context, of_top = model.combine.weight.split(model.config.hidden, 1)  # W_c1, W_c2
    of_query, keys, weigh_score, weigh_centre = [of_top], source.keys, None, None
    if isinstance(scope, plain.LocalPredictive):
        of_query.append(scope.project.weight)
        weigh_centre = scope.weigh.weight
    if isinstance(score, plain.Additive):
        of_query.append(score.project_query.weight)
        weigh_score = score.weigh.weight
    elif isinstance(score, plain.Location):  # a row a position of the source, or also one for all that are beyond
        columns, keys = source.annotations.shape[1], None  # the longest; zero there
        if model.attention.gathers(columns, 1):
            columns = score.longest + 1
        of_query.append(F.pad(score.project.weight[:columns], (0, 0, 0, max(0, columns - score.longest))))
    return F.linear(source.annotations, of_context), torch.cat(of_query), keys, weigh_score, weigh_centre


def drop_embedded(model: LuongModel, embedded: Tensor) -> tuple[Tensor, list[Tensor | None]]:
    """The embedded words as (target, batch, embedding), dropout done, and the masks of what else the layers read."""
    embedded, masks = embedded.transpose(0, 1), dropout_masks(model.decoder, embedded)
    if masks[0] is not None:
        of_embedded, masks[0] = masks[0].split([model.config.embedding, model.config.hidden], 2)
        embedded = embedded * of_embedded
    return embedded, masks


def dropout_masks(decoder: StackedLSTM, embedded: Tensor) -> list[Tensor | None]:
    """Of the input of each layer, (time, batch, input), drawn as the plain path draws them: one seed, one result.

    But on a GPU all steps at once, since there a call costs more than what it draws.
    """
    if not decoder.training or decoder.dropout == 0:
        return [None] * len(decoder.layers)
    batch, time, _ = embedded.shape
    if embedded.is_cuda:
        shapes = [(time, batch, layer.input_size) for layer in decoder.layers]
        return [F.dropout(embedded.new_ones(shape), decoder.dropout) for shape in shapes]
    ones = [embedded.new_ones(batch, layer.input_size) for layer in decoder.layers]
    drawn = [[F.dropout(each, decoder.dropout) for each in ones] for _ in range(time)]
    return [torch.stack(masks) for masks in zip(*drawn, strict=True)]


# ---------------------------------------------------------------- one step without gradients


def product(parts: list[Tensor], weight: Tensor) -> Tensor:
    """W [a; b; ..] of (rows, ..) parts, which are not put side by side."""
    first, *others = zip(parts, weight.split([part.shape[1] for part in parts], 1), strict=True)
    total = F.linear(*first)
    for part, of_part in others:
        total.addmm_(part, of_part.t())
    return total


def advance(
    model: LuongModel, memory: LuongMemory, state: LuongState, embedded: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The fast form of `LuongModel._advance` in a search: new h, c, h~ and a_t (rows, source)."""
    n, minus_one = model.config.hidden, embedded.new_full((), -1.0)
    hidden, cell = torch.empty_like(state.hidden), torch.empty_like(state.cell)
    read = [embedded, state.attentional] if model.config.input_feeding else [embedded]
    for layer, h, c, new_h, new_c in zip(model.decoder.layers, state.hidden, state.cell, hidden, cell, strict=True):
        gates = product(read, layer.weight_ih_l0).addmm_(h, layer.weight_hh_l0.t())
        gates[:, 2 * n : 3 * n] *= 2  # tanh x = 2 sigmoid(2x) - 1
        i, f, g, o = gates.sigmoid_().split(n, 1)
        torch.add(minus_one, g, alpha=2, out=g)
        torch.mul(f, c, out=new_c).addcmul_(i, g)
        torch.mul(o, squash(new_c.clone(), minus_one), out=new_h)
        read = [new_h]
    top = hidden[-1]
    if model.attention is None:
        return hidden, cell, top, None
    time = torch.full((1,), state.time + 1, device=top.device)
    context, weights = model.attention(top.unflatten(0, (len(memory.length), -1)), memory.source, time)
    attentional = squash(product([context.flatten(0, 1), top], model.combine.weight), minus_one)
    return hidden, cell, attentional, weights.flatten(0, 1)


# ---------------------------------------------------------------- words


class WordLikelihood(torch.autograd.Function):
    """log softmax(W_s h~)[word] of the real words of a batch, 0 at padding; one buffer from logits to gradient."""

    @staticmethod
    def forward(ctx: Any, attentional: Tensor, weight: Tensor, words: Tensor, mask: Tensor) -> Tensor:
        """attentional: (batch, target, hidden); words, mask: (batch, target); returns (batch, target)."""
        real = mask.flatten().nonzero().squeeze(1)  # (words,)
        states = attentional.flatten(0, 1).index_select(0, real)  # (words, hidden)
        word = words.flatten().index_select(0, real).unsqueeze(1)
        logits = states @ weight.t()  # (words, vocabulary)
        of_word, (largest, at) = logits.gather(1, word), logits.max(1, keepdim=True)
        softmax = torch.softmax(logits, 1, out=logits)
        likelihood = (of_word - largest + softmax.gather(1, at).log_()).squeeze(1)  # log_softmax takes exp once more
        if any(ctx.needs_input_grad):  # d_logits = onehot - softmax, but for the sign
            d_logits = softmax.scatter_add_(1, word, softmax.new_full(word.shape, -1.0))
            ctx.save_for_backward(d_logits, states, weight, real)
        return likelihood.new_zeros(words.numel()).index_copy_(0, real, likelihood).view_as(words)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_likelihood: Tensor) -> tuple[Tensor | None, ...]:
        d_logits, states, weight, real = ctx.saved_tensors
        share = -d_likelihood.flatten().index_select(0, real).unsqueeze(1)  # (words, 1)
        d_attentional = weight.new_zeros(d_likelihood.numel(), weight.shape[1])
        d_attentional.index_copy_(0, real, (d_logits @ weight).mul_(share))
        d_weight = d_logits.t() @ (states * share)
        return d_attentional.view(*d_likelihood.shape, -1), d_weight, None, None
