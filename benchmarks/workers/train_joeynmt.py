"""Training steps of JoeyNMT, by its own manager, on one batch already made.

Its encoder reads both ways with half the cells each: in release 2.3.0 one that reads one way fails.
"""

from __future__ import annotations

from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.config import _check_special_symbols, parse_train_args
from joeynmt.model import build_model
from joeynmt.training import TrainManager
from joeynmt.vocabulary import Vocabulary
from turns import Steps, begin, random_words

PAD, BOS, EOS = 1, 2, 3  # `<unk>` is 0


def model_options(sizes: dict[str, Any]) -> dict[str, Any]:
    """The `model` part of its configuration."""
    common = {"rnn_type": "lstm", "num_layers": sizes["layers"], "embeddings": {"embedding_dim": sizes["hidden"]}}
    encoder = {"type": "recurrent", "hidden_size": sizes["hidden"] // 2, "bidirectional": True, **common}
    decoder = {"type": "recurrent", "hidden_size": sizes["hidden"], "attention": "luong", "input_feeding": True}
    decoder |= {"init_hidden": "bridge", **common}
    return {"encoder": encoder, "decoder": decoder}


def main() -> None:
    """Step without end on one batch; what is not a step (reports, checkpoints) is left out."""
    sizes = begin(f"JoeyNMT {version('joeynmt')}")
    words = [f"w{i}" for i in range(sizes["vocabulary"] - 4)]
    vocabulary = Vocabulary(words, SimpleNamespace(**_check_special_symbols({})))
    model = build_model(model_options(sizes), vocabulary, vocabulary)
    settings = {"optimizer": "sgd", "learning_rate": 0.1, "clip_grad_norm": 5.0, "scheduling": "exponential"}
    settings |= {"normalization": "batch", "batch_size": sizes["batch"], "epochs": 1}
    arguments = parse_train_args(settings)
    model.loss_function = arguments.loss, arguments.label_smoothing
    device = torch.device(sizes["device"])
    autocast = {"device_type": device.type, "enabled": False}
    manager = TrainManager(1, model.to(device), None, device, autocast=autocast, train_args=arguments)

    batch, length = sizes["batch"], sizes["words"]
    source = random_words(sizes, 4, batch, length + 1)
    target = random_words(sizes, 4, batch, length + 1)
    source[:, -1], target[:, 0], target[:, -1] = EOS, BOS, EOS
    source_length = torch.full((batch,), length + 1, device=device)
    made = Batch(source, source_length, None, target, None, torch.arange(batch), device, PAD, EOS)
    steps = Steps()
    while True:  # as its train_and_validate
        loss, _ = manager._train_step(made)
        manager.clip_grad_fun(parameters=model.parameters())
        manager.optimizer.step()
        model.zero_grad()
        steps.done(lambda loss=loss: loss / length)


if __name__ == "__main__":
    main()
