"""Stacked LSTM without biases or peepholes (Zaremba et al. 2014, as Luong et al. 2015 use it)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

RunLayer = Callable[[nn.LSTM, Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


class StackedLSTM(nn.Module):
    """Layers of LSTM; dropout falls on the input of every layer, never on the recurrence or the top.

    From zero states a zero input leaves the states zero, so padding before a sentence changes nothing.
    The plain path, `unroll`, reads like the equations; a fast one may stand in for it. All draw the same dropout.
    """

    def __init__(self, input_size: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [input_size, *[hidden] * (layers - 1)]
        self.layers = nn.ModuleList(nn.LSTM(size, hidden, bias=False) for size in sizes)
        self.dropout = dropout

    def forward(self, inputs: Tensor, hidden: Tensor, cell: Tensor, run: RunLayer) -> tuple[Tensor, Tensor, Tensor]:
        """Run over a whole sequence.

        inputs: (time, batch, input); hidden, cell: (layers, batch, hidden), the states before the first step; run:
        `unroll`, or what stands in for it.
        Returns the top layer's states (time, batch, hidden) and the last states of every layer.
        """
        last_hidden, last_cell = [], []
        for layer, h, c in zip(self.layers, hidden, cell, strict=True):
            inputs = F.dropout(inputs, self.dropout, self.training)
            inputs, h, c = run(layer, inputs, h, c)
            last_hidden.append(h)
            last_cell.append(c)
        return inputs, torch.stack(last_hidden), torch.stack(last_cell)

    def step(self, inputs: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One time step of every layer: (rows, input) and (layers, rows, hidden) states; returns the new states."""
        new_hidden, new_cell = [], []
        for layer, h, c in zip(self.layers, hidden, cell, strict=True):
            inputs, c = lstm_cell(layer, F.dropout(inputs, self.dropout, self.training), h, c)
            new_hidden.append(inputs)
            new_cell.append(c)
        return torch.stack(new_hidden), torch.stack(new_cell)


def unroll(layer: nn.LSTM, inputs: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The plain recurrence of one layer: (time, batch, input) to (time, batch, hidden), and the last states."""
    outputs = []
    for step in inputs:
        hidden, cell = lstm_cell(layer, step, hidden, cell)
        outputs.append(hidden)
    return torch.stack(outputs), hidden, cell


def lstm_cell(layer: nn.LSTM, inputs: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """i, f, o = sigmoid(.), g = tanh(.); c = f * c + i * g; h = o * tanh(c). All (rows, hidden)."""
    gates = F.linear(inputs, layer.weight_ih_l0) + F.linear(hidden, layer.weight_hh_l0)  # (rows, 4 hidden)
    i, f, g, o = gates.chunk(4, 1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell
