"""Triton kernels of the GPU path (`fused_gpu`): what lies between two products of a time step, each as one launch.

Every kernel reads and writes what the products do (bfloat16 or float32) and computes in float32; cell states, attention
weights and their gradients stay in float32. A row of a matrix is contiguous; how far rows lie apart is given by name
where it may differ from the width. `None` for a tensor: the part of the kernel that would read it is left out.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from nmt.attention import Global, LocalMonotonic, LocalPredictive, Readings

UNITS = 256  # of a state, that one program of an LSTM kernel computes
FEATURES = 128  # of an annotation, that an attention kernel reads at a time
PLACES = 64  # source positions that it reads at a time
WORDS = 4096  # logits that the likelihood kernel reads at a time
WARPS = 8  # of a program that reads many rows
ELEMENTS = 1024  # of a parameter, that one program of `descend` moves

GLOBAL, MONOTONIC, PREDICTIVE = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)  # scopes


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def load(place, real):
    return tl.load(place, real, 0.0).to(tl.float32)


# ---------------------------------------------------------------- LSTM


@triton.jit
def lstm_step_kernel(
    gates, cell, new_cell, state, reader, mask, state_row, reader_row, SIZE: tl.constexpr, BLOCK: tl.constexpr
):
    """One row and BLOCK units of it: the gates' arguments become i, f, g, o in place."""
    row, unit = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real, here, gate = unit < SIZE, row * SIZE + unit, gates + row * 4 * SIZE + unit
    i, f = tl.sigmoid(load(gate, real)), tl.sigmoid(load(gate + SIZE, real))
    g, o = tanh(load(gate + 2 * SIZE, real)), tl.sigmoid(load(gate + 3 * SIZE, real))
    c = f * load(cell + here, real) + i * g
    h = o * tanh(c)
    tl.store(gate, i, real)
    tl.store(gate + SIZE, f, real)
    tl.store(gate + 2 * SIZE, g, real)
    tl.store(gate + 3 * SIZE, o, real)
    tl.store(new_cell + here, c, real)
    tl.store(state + row * state_row + unit, h, real)
    if reader is not None:
        if mask is not None:
            h *= load(mask + here, real)
        tl.store(reader + row * reader_row + unit, h, real)


def lstm_step(
    gates: Tensor, cell: Tensor, new_cell: Tensor, state: Tensor, reader: Tensor | None, mask: Tensor | None
) -> None:
    """c = f * c + i * g and h = o * tanh(c), from the gates' arguments, which become i, f, g, o.

    gates: (batch, 4 hidden); cell, new_cell: (batch, hidden) float32; state: (batch, hidden) for h; reader: where the
    next layer, or the next step, reads h times `mask`.
    """
    batch, size = cell.shape
    lstm_step_kernel[batch, triton.cdiv(size, UNITS)](
        gates, cell, new_cell, state, reader, mask, state.stride(0), row_stride(reader), size, UNITS
    )


@triton.jit
def lstm_back_kernel(
    gates, cell, new_cell, d_read, mask, d_output, d_later, d_cell,
    read_row, output_row, later_row, SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row and BLOCK units of it: i, f, g, o become the gradients of their arguments in place."""
    row, unit = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real, here, gate = unit < SIZE, row * SIZE + unit, gates + row * 4 * SIZE + unit
    d_h = tl.zeros([BLOCK], tl.float32)
    if d_read is not None:
        d_h = load(d_read + row * read_row + unit, real)
        if mask is not None:
            d_h *= load(mask + here, real)
    if d_output is not None:
        d_h += load(d_output + row * output_row + unit, real)
    if d_later is not None:
        d_h += load(d_later + row * later_row + unit, real)
    i, f = load(gate, real), load(gate + SIZE, real)
    g, o = load(gate + 2 * SIZE, real), load(gate + 3 * SIZE, real)
    squashed = tanh(load(new_cell + here, real))
    d_c = load(d_cell + here, real) + d_h * o * (1 - squashed * squashed)
    tl.store(gate, d_c * g * i * (1 - i), real)
    tl.store(gate + SIZE, d_c * load(cell + here, real) * f * (1 - f), real)
    tl.store(gate + 2 * SIZE, d_c * i * (1 - g * g), real)
    tl.store(gate + 3 * SIZE, d_h * squashed * o * (1 - o), real)
    tl.store(d_cell + here, d_c * f, real)


def lstm_back(
    gates: Tensor,
    cell: Tensor,
    new_cell: Tensor,
    d_read: Tensor | None,
    mask: Tensor | None,
    d_output: Tensor | None,
    d_later: Tensor | None,
    d_cell: Tensor,
) -> None:
    """The gradients of the gates' arguments, in place of i, f, g, o, and that of the cell before, in place of its own.

    What h was read by: the next layer or, in the input-feeding decoder without attention, the next step (d_read, which
    saw h times `mask`), the outside (d_output), and the layer's own next step (d_later); all (batch, hidden).
    """
    batch, size = cell.shape
    lstm_back_kernel[batch, triton.cdiv(size, UNITS)](
        gates, cell, new_cell, d_read, mask, d_output, d_later, d_cell,
        row_stride(d_read), row_stride(d_output), row_stride(d_later), size, UNITS,
    )  # fmt: skip


# ---------------------------------------------------------------- attention


@triton.jit
def window(
    row, step, length, share, source, SCOPE: tl.constexpr, MASKED: tl.constexpr, HALF: tl.constexpr, SHIFT: tl.constexpr
):
    """The positions (0-based, from and up to) that a sentence's step looks at, and p_t."""
    size = tl.load(length + row)
    first, end, centre = size * 0, size, 0.0
    if SCOPE == GLOBAL:
        if not MASKED:
            end = size * 0 + source
    elif SCOPE == MONOTONIC:
        middle = tl.minimum(step, size)
        first, end = tl.maximum(middle - 1 - HALF, 0), tl.minimum(middle + HALF, size)
    else:
        centre = tl.load(share + row) * size.to(tl.float32) + SHIFT
        middle = tl.floor(centre).to(first.dtype)
        first, end = tl.maximum(middle - 1 - HALF, 0), tl.minimum(middle + HALF, size)
    return first, end, centre


@triton.jit
def block(table, row, source, position, end, start, SIZE: tl.constexpr, BLOCK_H: tl.constexpr):
    """BLOCK_H features from `start` of a sentence's positions, zero from `end` on; (positions, BLOCK_H)."""
    feature = start + tl.arange(0, BLOCK_H)
    place = table + (row.to(tl.int64) * source + position[:, None]) * SIZE + feature[None, :]
    return load(place, (position[:, None] < end) & (feature[None, :] < SIZE))


@triton.jit
def products(
    table, vector, out, row, source, first, end,
    SIZE: tl.constexpr, ALL: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """out[s] = table[row, s] . vector for the positions looked at."""
    for s in range(0, ALL, BLOCK_S):
        position = first + s + tl.arange(0, BLOCK_S)
        total = tl.zeros([BLOCK_S], tl.float32)
        for start in range(0, SIZE, BLOCK_H):
            feature = start + tl.arange(0, BLOCK_H)
            values = block(table, row, source, position, end, start, SIZE, BLOCK_H)
            total += tl.sum(values * load(vector + feature, feature < SIZE)[None, :], 1)
        tl.store(out + position, total, position < end)


@triton.jit
def weighted_sum(
    table, weights, row, source, first, end, start,
    SIZE: tl.constexpr, ALL: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """sum_s weights[s] table[row, s] over the positions looked at, BLOCK_H features from `start`."""
    total = tl.zeros([BLOCK_H], tl.float32)
    for s in range(0, ALL, BLOCK_S):
        position = first + s + tl.arange(0, BLOCK_S)
        values = block(table, row, source, position, end, start, SIZE, BLOCK_H)
        total += tl.sum(values * load(weights + position, position < end)[:, None], 0)
    return total


@triton.jit(do_not_specialize=["step", "source"])
def attend_step_kernel(
    state, keys, projected, queries, weigh, share, weights, length, reader, mask,
    step, source, state_row, query_row, reader_row,
    SCOPE: tl.constexpr, MASKED: tl.constexpr, HALF: tl.constexpr, SHIFT: tl.constexpr, RENORMALISED: tl.constexpr,
    SIZE: tl.constexpr, ALL: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """One sentence's step."""
    row, column = tl.program_id(0), tl.arange(0, BLOCK_H)
    query, weight = queries + row * query_row, weights + row * source
    if SCOPE == PREDICTIVE:  # eq. 9
        logit = tl.zeros([BLOCK_H], tl.float32)
        for start in range(0, SIZE, BLOCK_H):
            real = start + column < SIZE
            place = query + SIZE + start + column
            squashed = tanh(load(place, real))
            tl.store(place, squashed, real)
            logit += squashed * load(weigh + start + column, real)
        tl.store(share + row, tl.sigmoid(tl.sum(logit, 0)))
        tl.debug_barrier()
    first, end, centre = window(row, step, length, share, source, SCOPE, MASKED, HALF, SHIFT)
    products(keys, state + row * state_row, weight, row, source, first, end, SIZE, ALL, BLOCK_S, BLOCK_H)
    tl.debug_barrier()
    looking = first + tl.arange(0, ALL)
    looked = looking < end
    score = tl.load(weight + looking, looked, -float("inf"))
    if SCOPE == PREDICTIVE:  # eq. 10; sigma = D / 2
        distance = (looking + 1).to(tl.float32) - centre
        exponent = -2.0 / (HALF * HALF) * distance * distance
        if RENORMALISED:
            score += exponent
    exponential = tl.exp(score - tl.max(score, 0))
    a = exponential / tl.sum(exponential, 0)
    if SCOPE == PREDICTIVE and not RENORMALISED:
        a *= tl.exp(exponent)
    tl.store(weight + looking, a, looked)
    tl.debug_barrier()
    for start in range(0, SIZE, BLOCK_H):
        real = start + column < SIZE
        context = weighted_sum(projected, weight, row, source, first, end, start, SIZE, ALL, BLOCK_S, BLOCK_H)
        attentional = tanh(load(query + start + column, real) + context)  # of W_c2 h_t + W_c1 c_t
        tl.store(query + start + column, attentional, real)
        if reader is not None:
            if mask is not None:
                attentional *= load(mask + row * SIZE + start + column, real)
            tl.store(reader + row * reader_row + start + column, attentional, real)


@triton.jit(do_not_specialize=["step", "source"])
def attend_back_kernel(
    d_output, d_read, mask, queries, d_queries, keys, projected, weigh, share, weights, length,
    d_scores, d_logit, d_state, step, source, output_row, read_row, query_row,
    SCOPE: tl.constexpr, MASKED: tl.constexpr, HALF: tl.constexpr, SHIFT: tl.constexpr, RENORMALISED: tl.constexpr,
    PULL: tl.constexpr, SIZE: tl.constexpr, ALL: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """One sentence's step."""
    row, column = tl.program_id(0), tl.arange(0, BLOCK_H)
    query, d_query, weight, d_score = (
        queries + row * query_row, d_queries + row * query_row, weights + row * source, d_scores + row * source
    )  # fmt: skip
    for start in range(0, SIZE, BLOCK_H):  # of what h~_t is the tanh of
        real = start + column < SIZE
        d_attentional = load(d_output + row * output_row + start + column, real)
        if d_read is not None:
            fed = load(d_read + row * read_row + start + column, real)
            if mask is not None:
                fed *= load(mask + row * SIZE + start + column, real)
            d_attentional += fed
        attentional = load(query + start + column, real)
        tl.store(d_query + start + column, d_attentional * (1 - attentional * attentional), real)
    tl.debug_barrier()
    first, end, centre = window(row, step, length, share, source, SCOPE, MASKED, HALF, SHIFT)
    products(projected, d_query, d_score, row, source, first, end, SIZE, ALL, BLOCK_S, BLOCK_H)
    tl.debug_barrier()
    looking = first + tl.arange(0, ALL)
    looked = looking < end
    a, d_a = load(weight + looking, looked), load(d_score + looking, looked)
    slope = 0.0
    if SCOPE == PREDICTIVE:
        distance = (looking + 1).to(tl.float32) - centre
        if RENORMALISED:
            d_exponent = a * (d_a - tl.sum(a * d_a, 0))
            d_s = d_exponent
        else:  # a = softmax * Gaussian
            gaussian = tl.exp(-2.0 / (HALF * HALF) * distance * distance)
            d_exponent = a * d_a
            softmax = tl.where(looked, a / gaussian, 0.0)
            d_s = d_exponent - softmax * tl.sum(d_exponent, 0)
        d_centre = tl.sum(tl.where(looked, d_exponent * distance, 0.0), 0) * (4.0 * PULL / (HALF * HALF))
        share_here = tl.load(share + row)
        slope = d_centre * tl.load(length + row).to(tl.float32) * share_here * (1 - share_here)
        tl.store(d_logit + row, slope)
    else:
        d_s = a * (d_a - tl.sum(a * d_a, 0))
    tl.store(d_score + looking, d_s, looked)
    tl.debug_barrier()
    for start in range(0, SIZE, BLOCK_H):
        real = start + column < SIZE
        total = weighted_sum(keys, d_score, row, source, first, end, start, SIZE, ALL, BLOCK_S, BLOCK_H)
        tl.store(d_state + row * SIZE + start + column, total, real)
        if SCOPE == PREDICTIVE:
            squashed = load(query + SIZE + start + column, real)
            d_argument = slope * load(weigh + start + column, real) * (1 - squashed * squashed)
            tl.store(d_query + SIZE + start + column, d_argument, real)


def attend_constants(scope: nn.Module, source: int, size: int) -> dict[str, Any]:
    """What the attention kernels are compiled for, for a scope of `attention`, padded source and hidden size."""
    readings = getattr(scope, "readings", Readings())
    half_width = getattr(scope, "half_width", None)
    positions = triton.next_power_of_2(source if half_width is None else min(source, 2 * half_width + 1))
    kind = {Global: GLOBAL, LocalMonotonic: MONOTONIC, LocalPredictive: PREDICTIVE}[type(scope)]
    return {
        "SCOPE": kind.value,
        "MASKED": getattr(scope, "masked", True),
        "HALF": half_width or 0,
        "SHIFT": float(readings.centre == "plus_one"),
        "RENORMALISED": readings.gaussian == "renormalised",
        "SIZE": size,
        "ALL": positions,
        "BLOCK_S": min(PLACES, positions),
        "BLOCK_H": FEATURES,
    }


def attend_step(
    state: Tensor,
    keys: Tensor,
    projected: Tensor,
    queries: Tensor,
    weigh: Tensor | None,
    share: Tensor | None,
    weights: Tensor,
    length: Tensor,
    reader: Tensor | None,
    mask: Tensor | None,
    step: int,
    constants: dict[str, Any],
) -> None:
    """h~_t in place of W_c2 h_t, and for local-p tanh(W_p h_t) in place of W_p h_t, in the columns of `queries`.

    state: (batch, hidden) h_t; keys, projected: (batch, source, hidden), contiguous; weigh: (hidden,) v_p and
    share: (batch,) for p_t / S, for local-p; weights: (batch, source), zero, for a_t; reader: where h~_t times `mask`
    is read; step: t from 1.
    """
    attend_step_kernel[(len(state),)](
        state, keys, projected, queries, weigh, share, weights, length, reader, mask, step, keys.shape[1],
        row_stride(state), row_stride(queries), row_stride(reader), **constants, num_warps=WARPS,
    )  # fmt: skip


def attend_back(
    d_output: Tensor,
    d_read: Tensor | None,
    mask: Tensor | None,
    queries: Tensor,
    d_queries: Tensor,
    keys: Tensor,
    projected: Tensor,
    weigh: Tensor | None,
    share: Tensor | None,
    weights: Tensor,
    length: Tensor,
    d_scores: Tensor,
    d_logit: Tensor | None,
    d_state: Tensor,
    step: int,
    pull: float,
    constants: dict[str, Any],
) -> None:
    """The gradients of `attend_step`: fills d_queries, d_scores (zero before), d_logit (of p_t's sigmoid's argument)
    and d_state, of h_t by way of the scores.

    d_output: of h~_t as the outside has read it, d_read: as the reader has, times `mask`; pull: the share of the
    Gaussian's gradient that is taken.
    """
    attend_back_kernel[(len(d_output),)](
        d_output, d_read, mask, queries, d_queries, keys, projected, weigh, share, weights, length, d_scores, d_logit,
        d_state, step, keys.shape[1], row_stride(d_output), row_stride(d_read), row_stride(queries),
        PULL=pull, **constants, num_warps=WARPS,
    )  # fmt: skip


# ---------------------------------------------------------------- words


@triton.jit
def likelihood_kernel(logits, words, likelihood, COUNT: tl.constexpr, GRADIENT: tl.constexpr, BLOCK: tl.constexpr):
    """One row: log softmax of its word; with GRADIENT, softmax - onehot in place of the logits."""
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    here, word = logits + row * COUNT, tl.load(words + row)
    of_word = tl.load(here + word).to(tl.float32)
    largest = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, COUNT, BLOCK):
        x = tl.load(here + start + column, start + column < COUNT, -1e30).to(tl.float32)
        before, largest = largest, tl.maximum(largest, x)
        total = total * tl.exp(before - largest) + tl.exp(x - largest)
    peak = tl.max(largest, 0)
    normaliser = peak + tl.log(tl.sum(total * tl.exp(largest - peak), 0))
    tl.store(likelihood + row, of_word - normaliser)
    if GRADIENT:
        tl.debug_barrier()
        for start in range(0, COUNT, BLOCK):
            real = start + column < COUNT
            x = load(here + start + column, real)
            share = tl.exp(x - normaliser) - tl.where(start + column == word, 1.0, 0.0)
            tl.store(here + start + column, share, real)


def word_likelihood(logits: Tensor, words: Tensor, gradient: bool) -> Tensor:
    """log softmax(logits)[word], (rows,) float32; with `gradient`, that of its negative in place of the logits.

    logits: (rows, vocabulary), contiguous; words: (rows,).
    """
    rows, count = logits.shape
    likelihood = logits.new_empty(rows, dtype=torch.float32)
    block = min(WORDS, triton.next_power_of_2(count))
    likelihood_kernel[(rows,)](logits, words, likelihood, count, gradient, block, num_warps=WARPS)
    return likelihood


# ---------------------------------------------------------------- update


@triton.jit
def descend_kernel(parameter, gradient, rate, stopped, count, BLOCK: tl.constexpr):
    if tl.load(stopped) == 0:
        place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        real = place < count
        moved = load(parameter + place, real) - tl.load(rate) * load(gradient + place, real)
        tl.store(parameter + place, moved, real)


def descend(parameter: Tensor, gradient: Tensor, rate: Tensor, stopped: Tensor) -> None:
    """parameter -= rate * gradient, unless `stopped` (both of one element, on the device): one pass, nothing asked."""
    count = parameter.numel()
    descend_kernel[(triton.cdiv(count, ELEMENTS),)](parameter, gradient, rate, stopped, count, ELEMENTS)


def row_stride(matrix: Tensor | None) -> int:
    """Elements from one row to the next; 0 of no matrix."""
    return 0 if matrix is None else matrix.stride(0)
