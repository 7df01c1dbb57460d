"""How to train, as configured, and what follows from it: learning rate, optimiser, clipping."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from nmt.config import from_mapping


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the defaults are those of Luong et al. (2015), section 4.1, without dropout."""

    optimiser: Literal["sgd", "adadelta"] = "sgd"
    rho: float = 0.95  # Adadelta's decay, and its constant under the roots
    eps: float = 1e-6
    learning_rate: float = 1.0
    batch_size: int = 128  # sentence pairs
    fetch: int = 12_800  # pairs read, sorted by target length and cut into batches at a time
    epochs: int = 10
    halve_after: int | None = 5  # the learning rate is halved every epoch after this one; null: never
    clip: float = 5.0  # largest L2 norm of the gradient
    max_length: int = 50  # pairs with a longer side, in words, are left out
    patience: int | None = None  # stop after so many evaluations without a better dev perplexity; null: never
    evaluate_every: int | None = None  # updates between evaluations within an epoch; null: at its end only
    evaluate_batch_size: int = 64
    precision: Literal["float32", "bfloat16"] = "float32"
    reading: Literal["paper", "as_coded", "corrected"] = "paper"
    save_minutes: float = 10.0  # between saved states; at the end of each epoch one is saved in any case

    def __post_init__(self) -> None:
        whole = ("batch_size", "fetch", "epochs", "max_length", "patience", "evaluate_every", "evaluate_batch_size")
        for name in (*whole, "learning_rate", "clip", "rho", "eps"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"training.{name}: found {value}, expected a number over 0")
        if self.fetch < self.batch_size:
            raise ValueError(f"training.fetch: found {self.fetch}, expected at least batch_size = {self.batch_size}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "training") -> TrainingConfig:
        """From plain values; ValueError names an unknown key, its nearest valid one, or a value of the wrong type."""
        return from_mapping(cls, values, where)


def learning_rate(config: TrainingConfig, epoch: int) -> float:
    """The rate of an epoch, counted from 1: halved for each epoch after `halve_after` (as_coded: one epoch later)."""
    if config.halve_after is None:
        return config.learning_rate
    last_full = config.halve_after + (config.reading == "as_coded")
    return config.learning_rate * 0.5 ** max(0, epoch - last_full)


def make_optimiser(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Plain SGD, or Adadelta (Zeiler 2012)."""
    if config.optimiser == "adadelta":
        return torch.optim.Adadelta(model.parameters(), lr=config.learning_rate, rho=config.rho, eps=config.eps)
    return torch.optim.SGD(model.parameters(), lr=config.learning_rate)


def clip_gradients(model: nn.Module, config: TrainingConfig) -> Tensor:
    """Rescale all gradients so that their L2 norm is `clip` at most; returns the norm before.

    as_coded: the norm that decides is that of all parameters but the embeddings, which are scaled with the rest.
    """
    with_gradient = [parameter for parameter in model.parameters() if parameter.grad is not None]
    norm = get_total_norm([parameter.grad for parameter in with_gradient])
    measured = norm
    if config.reading == "as_coded":
        embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        measured = get_total_norm([p.grad for p in with_gradient if id(p) not in embeddings])
    clip_grads_with_norm_(with_gradient, config.clip, measured)
    return norm
