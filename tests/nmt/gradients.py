"""Gradients of a model against finite differences."""

import pytest
import torch


def check_gradients(model, loss):
    """The slope of `loss()` along a random direction of each parameter, taken on both sides, is its gradient's."""
    loss().backward()
    generator, step = torch.Generator().manual_seed(0), 1e-6
    for name, parameter in model.named_parameters():
        direction = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        with torch.no_grad():
            parameter += step * direction
            above = loss()
            parameter -= 2 * step * direction
            below = loss()
            parameter += step * direction
        slope = ((above - below) / (2 * step)).item()
        assert (parameter.grad * direction).sum().item() == pytest.approx(slope, rel=1e-5, abs=1e-7), name
