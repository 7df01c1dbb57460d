"""How to train, as configured, and what follows from it: learning rate, optimiser, clipping."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import get_total_norm

from nmt import fused_gpu
from nmt.config import from_mapping

SPARSE_FROM = 4000  # rows of an embedding from which touching those of the batch alone was faster (400 to 800 words)


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


@dataclass(frozen=True)
class Gradient:
    """Of one parameter."""

    parameter: nn.Parameter
    values: Tensor  # of the parameter's shape, or (rows, width)
    rows: Tensor | None = None  # (rows,) which rows of the parameter `values` belong to, each at most once; None: all


def gradients(model: nn.Module) -> list[Gradient]:
    """Every parameter's gradient; what an embedding gathered word by word, summed by row."""
    found = [(parameter, parameter.grad) for parameter in model.parameters() if parameter.grad is not None]
    return [Gradient(p, *sum_rows(grad)) if grad.is_sparse else Gradient(p, grad) for p, grad in found]


def sum_rows(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Values and rows of a sparse gradient, each row once.

    As `coalesce`, but for surplus rows of zeros, which name row 0: how many differ, a GPU would have to be asked.
    """
    words, order = gradient._indices()[0].sort(stable=True)
    place = F.pad((words[1:] != words[:-1]).cumsum(0), (1, 0))  # of each word, sorted, among those that differ
    place_of_word = torch.empty_like(place).scatter_(0, order, place)
    values = torch.zeros_like(gradient._values()).index_add_(0, place_of_word, gradient._values())
    return values, torch.zeros_like(words).scatter_(0, place, words)


def clipping(found: list[Gradient], config: TrainingConfig, embeddings: set[nn.Parameter]) -> tuple[Tensor, Tensor]:
    """The L2 norm of all gradients, and by how much to scale them so that it is `clip` at most (both of no dimension).

    as_coded: the norm that decides is that of all parameters but the embeddings, which are scaled with the rest.
    """
    norm = get_total_norm([gradient.values for gradient in found])
    measured = norm
    if config.reading == "as_coded":
        measured = get_total_norm([gradient.values for gradient in found if gradient.parameter not in embeddings])
    return norm, (config.clip / (measured + 1e-6)).clamp(max=1)  # as torch.nn.utils.clip_grad_norm_


class Optimiser:
    """Plain stochastic gradient descent: theta <- theta - learning rate * gradient.

    torch.optim does the same, but making one imports over two seconds of torch, once for each system of an experiment.
    """

    takes_rows = True  # whether a row without a gradient stays as it is

    def __init__(self, model: nn.Module) -> None:
        self.parameters = dict(model.named_parameters())
        tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
        self.embeddings = {table.weight for table in tables}
        for table in tables:
            table.sparse = self.takes_rows and table.num_embeddings >= SPARSE_FROM
        self._rate = torch.zeros((), device=next(iter(self.parameters.values())).device)

    @property
    def learning_rate(self) -> float:
        """What a gradient is multiplied by."""
        return self._rate.item()

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._rate.fill_(rate)  # in place: a recorded step reads it there

    @torch.no_grad()
    def step(self, found: list[Gradient], scale: Tensor, stopped: Tensor) -> None:
        """Move every parameter by its gradient times `scale`, or, if `stopped` is true, none.

        scale, stopped: of no dimension, on the parameters' device; on a GPU the host does not wait for them.
        """
        rate = self._rate * scale
        if rate.is_cuda and fused_gpu.HAS_TRITON:
            self._step_on_gpu(found, rate, stopped)
        elif not stopped:
            alpha = -rate.item()
            for gradient in found:
                if gradient.rows is None:
                    gradient.parameter.add_(gradient.values, alpha=alpha)
                else:
                    gradient.parameter.index_add_(0, gradient.rows, gradient.values, alpha=alpha)

    def _step_on_gpu(self, found: list[Gradient], rate: Tensor, stopped: Tensor) -> None:
        for gradient in found:
            if gradient.rows is None:
                fused_gpu.kernels().descend(gradient.parameter, gradient.values, rate, stopped)
            else:
                moves = torch.where(stopped, 0.0, gradient.values * -rate)
                gradient.parameter.index_add_(0, gradient.rows, moves)

    def state(self) -> dict[str, Tensor]:
        """What it remembers between steps, by name; a restored state is copied into these very tensors."""
        return {}


class Adadelta(Optimiser):
    """Zeiler (2012), algorithm 1: steps scaled by running means of squared gradients and of squared steps."""

    takes_rows = False

    def __init__(self, model: nn.Module, rho: float, eps: float) -> None:
        super().__init__(model)
        self.rho, self.eps = rho, eps
        self.squared_gradient = {name: torch.zeros_like(p) for name, p in self.parameters.items()}  # E[g^2]
        self.squared_step = {name: torch.zeros_like(p) for name, p in self.parameters.items()}  # E[dx^2]
        self.names = {parameter: name for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def step(self, found: list[Gradient], scale: Tensor, stopped: Tensor) -> None:
        """See `Optimiser.step`; a stopped step leaves the parameters, and its running means are of no use any more."""
        for parameter, values in ((gradient.parameter, gradient.values * scale) for gradient in found):
            name = self.names[parameter]
            gradient, step = self.squared_gradient[name], self.squared_step[name]
            gradient.mul_(self.rho).addcmul_(values, values, value=1 - self.rho)
            change = (step + self.eps).sqrt_().div_((gradient + self.eps).sqrt_()).mul_(values)
            step.mul_(self.rho).addcmul_(change, change, value=1 - self.rho)
            parameter.sub_(torch.where(stopped, 0.0, change.mul_(self._rate)))

    def state(self) -> dict[str, Tensor]:
        """The two running means of every parameter."""
        gradients = {f"squared_gradient.{name}": value for name, value in self.squared_gradient.items()}
        return gradients | {f"squared_step.{name}": value for name, value in self.squared_step.items()}


def make_optimiser(model: nn.Module, config: TrainingConfig) -> Optimiser:
    """The configured optimiser, for a model that is on its device already."""
    return Adadelta(model, config.rho, config.eps) if config.optimiser == "adadelta" else Optimiser(model)
