"""Training steps of OpenNMT-py, by its own trainer, on one batch already made."""

from __future__ import annotations

import onmt
import torch
from onmt.trainer import build_trainer
from onmt.utils import Statistics
from onmt.utils.optimizers import Optimizer
from opennmt import BOS, EOS, build, gpu
from turns import Steps, begin, random_words


def main() -> None:
    """Step without end on one batch; what is not a step (reports, checkpoints) is left out."""
    sizes = begin(f"OpenNMT-py {onmt.__version__}")
    opt, vocabs, model = build(sizes)
    trainer = build_trainer(opt, gpu(sizes), model, vocabs, Optimizer.from_opt(model, opt))
    model.train()
    batch, words = sizes["batch"], sizes["words"]
    target = random_words(sizes, 4, batch, words + 1, 1)
    target[:, 0], target[:, -1] = BOS, EOS
    length = torch.full((batch,), words, device=sizes["device"])
    made = {"src": random_words(sizes, 4, batch, words, 1), "srclen": length, "tgt": target}
    steps = Steps()
    while True:
        report, total = Statistics(), Statistics()
        trainer._gradient_accumulation([made], batch, total, report)  # with the update
        steps.done(report.xent)


if __name__ == "__main__":
    main()
