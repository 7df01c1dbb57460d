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
    shuffle: Literal["epoch", "once"] = "epoch"  # draw an order of the pairs for each epoch, or keep the first's
    epochs: int = 10
    updates: int | None = None  # stop after so many; null: when the epochs are done
    halve_after: int | None = 5  # the learning rate is halved every epoch after this one; null: never
    clip: float = 5.0  # largest L2 norm of the gradient
    max_length: int = 50  # pairs with a longer side, in words, are left out
    keep: Literal["best", "last"] = "best"  # the weights of the best dev perplexity, or those of the end
    patience: int | None = None  # stop after so many evaluations without a better dev perplexity; null: never
    evaluate_every: int | None = None  # updates between evaluations within an epoch; null: at its end only
    evaluate_batch_size: int = 64
    precision: Literal["float32", "bfloat16"] = "float32"
    reading: Literal["paper", "as_coded", "corrected"] = "paper"
    save_minutes: float = 10.0  # between saved states; at the end of each epoch one is saved in any case

    def __post_init__(self) -> None:
        whole = ("batch_size", "fetch", "epochs", "updates", "max_length", "patience", "evaluate_every")
        for name in (*whole, "evaluate_batch_size", "learning_rate", "clip", "rho", "eps"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"training.{name}: found {value}, expected a number over 0")
        if self.keep == "last" and self.patience is not None:
            raise ValueError(
                f"training.patience: found {self.patience} beside training.keep last, which does not ask dev; set one"
            )
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


class Optimiser:
    """Plain stochastic gradient descent: theta <- theta - learning rate * gradient.

    torch.optim does the same, but making one imports over two seconds of torch, once for each system of an experiment.
    """

    def __init__(self, model: nn.Module) -> None:
        self.parameters = dict(model.named_parameters())
        self.learning_rate = 0.0

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        moved = [parameter for parameter in self.parameters.values() if parameter.grad is not None]
        torch._foreach_add_(moved, [parameter.grad for parameter in moved], alpha=-self.learning_rate)

    def state(self) -> dict[str, Tensor]:
        """What it remembers between steps, by name; a restored state is copied into these very tensors."""
        return {}


class Adadelta(Optimiser):
    """Zeiler (2012), algorithm 1: steps scaled by running means of squared gradients and of squared steps."""

    def __init__(self, model: nn.Module, rho: float, eps: float) -> None:
        super().__init__(model)
        self.rho, self.eps = rho, eps
        self.squared_gradient = {name: torch.zeros_like(p) for name, p in self.parameters.items()}  # E[g^2]
        self.squared_step = {name: torch.zeros_like(p) for name, p in self.parameters.items()}  # E[dx^2]

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for name, parameter in self.parameters.items():
            if parameter.grad is None:
                continue
            gradient, step = self.squared_gradient[name], self.squared_step[name]
            gradient.mul_(self.rho).addcmul_(parameter.grad, parameter.grad, value=1 - self.rho)
            change = (step + self.eps).sqrt_().div_((gradient + self.eps).sqrt_()).mul_(parameter.grad)
            step.mul_(self.rho).addcmul_(change, change, value=1 - self.rho)
            parameter.add_(change, alpha=-self.learning_rate)

    def state(self) -> dict[str, Tensor]:
        """The two running means of every parameter."""
        gradients = {f"squared_gradient.{name}": value for name, value in self.squared_gradient.items()}
        return gradients | {f"squared_step.{name}": value for name, value in self.squared_step.items()}


def make_optimiser(model: nn.Module, config: TrainingConfig) -> Optimiser:
    """The configured optimiser, for a model that is on its device already."""
    return Adadelta(model, config.rho, config.eps) if config.optimiser == "adadelta" else Optimiser(model)


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
