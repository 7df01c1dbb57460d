"""Training of any translation model: batches, clipped updates, a learning curve on dev, the best weights kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nmt.batching import batches, batches_ahead
from nmt.checkpoint import StateFolder, TrainingState
from nmt.corpus import ParallelCorpus, plan_batches
from nmt.evaluation import evaluation_order, perplexity
from nmt.interface import Batch, TranslationModel
from nmt.interruption import Interrupted, StopSignals
from nmt.optimiser import Optimiser, TrainingConfig, clipping, gradients, learning_rate, make_optimiser
from nmt.progress import Progress
from nmt.recorded import CudaRecorder, RecordedStep
from nmt.vocab import UNK

LONGEST_EVALUATED = 1000  # words of a sentence of dev; of the training text, max_length
UPDATES_A_CHECK = {"cpu": 1, "cuda": 50}  # on a GPU every look at a number makes the host wait


@dataclass(frozen=True)
class TrainingResult:
    """What training came to; the model holds the weights of `best_update`, with keep: last the last one."""

    curve: list[dict[str, float]]  # one record an evaluation
    best_perplexity: float  # on dev
    best_update: int
    updates: int
    epochs: float  # passes over the pairs used, the last one perhaps in part
    seconds: float  # over all the processes that had a part in it


class TrainingDiverged(ValueError):
    """A loss or gradient norm was infinite or not a number."""


def train(
    model: TranslationModel,
    corpus: ParallelCorpus,
    dev: ParallelCorpus,
    config: TrainingConfig,
    seed: int,
    state_dir: Path,
    curve: ParallelCorpus | None = None,
    device: torch.device | str = "cpu",
    progress: bool = True,
    identity: str = "",
    label: str = "",
    scalars: Path | None = None,
) -> TrainingResult:
    """Train `model`, already initialised, in place, and leave it with the weights that `config.keep` names.

    state_dir: this run's own folder (see `checkpoint.fingerprint`); a state found there is continued, on the CPU to
    the very bits of a run that was never interrupted. curve: a second corpus for the learning curve. All randomness
    follows from `seed`. label, scalars: see `Progress`. Raises TrainingDiverged; Interrupted (exit code 75, state
    saved) after SIGTERM, SIGUSR1 or SIGINT; OSError if the state cannot be saved; ValueError for a corpus without a
    usable pair or a busy state_dir.
    """
    device = torch.device(device)
    model.to(device).train()
    plan = plan_epoch(corpus, config, seed, epoch=1)
    for checked in (dev, curve or dev):
        check_readable(checked)
    if device.type == "cuda":
        try_largest_batch(model, corpus, plan, config, device)
    torch.manual_seed(int(np.random.SeedSequence((seed, 0)).generate_state(1)[0]))  # of dropout
    state = TrainingState(model, make_optimiser(model, config), device)
    with StateFolder(state_dir, identity) as folder, StopSignals() as stop:
        state.load(folder)
        updates = min(len(plan) * config.epochs, config.updates or len(plan) * config.epochs)
        with Progress(updates, state.journal.update, progress, label, scalars) as report:
            _Run(model, corpus, dev, curve, config, seed, state, folder, stop, report).loop()
    model.load_state_dict(state.best)
    done = state.journal
    return TrainingResult(
        done.curve, done.best_perplexity, done.best_update, done.update, done.update / len(plan), done.seconds
    )


def plan_epoch(corpus: ParallelCorpus, config: TrainingConfig, seed: int, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch, a function of the seed and the epoch alone; ValueError if no pair can be used."""
    lengths = corpus.source.lengths, corpus.target.lengths
    rng = np.random.default_rng((seed, 1 if config.shuffle == "once" else epoch))
    plan = plan_batches(*lengths, config.batch_size, config.fetch, config.max_length, rng)
    if not plan:
        raise ValueError(
            f"{corpus.source.prefix}, {corpus.target.prefix}: of {len(corpus)} pairs found none with 1 to "
            f"{config.max_length} words on either side; give more text or raise training.max_length"
        )
    return plan


def costs_a_sentence(
    result: TrainingResult, corpus: ParallelCorpus, dev: ParallelCorpus, config: TrainingConfig
) -> dict[str, float]:
    """Negative log-likelihood (nats) a sentence where the weights were taken (Bahdanau et al. 2015, table 2).

    Of training: as it was while training since the evaluation before, and over that stretch's words, as if its
    sentences were of the mean length of all that are used.
    """
    taken = next(record for record in result.curve if record["update"] == result.best_update)
    used = np.concatenate(plan_epoch(corpus, config, seed=0, epoch=1)), evaluation_order(dev)
    words = [(text.target.lengths[pairs] + 1).mean() for text, pairs in zip((corpus, dev), used, strict=True)]
    train_nll, dev_nll = (math.log(taken[f"{text}_perplexity"]) for text in ("train", "dev"))
    return {"train_nll_a_sentence": train_nll * float(words[0]), "dev_nll_a_sentence": dev_nll * float(words[1])}


def check_readable(corpus: ParallelCorpus) -> None:
    """ValueError for a corpus without a usable pair, a side of which no word is known, or a sentence beyond all use."""
    indices = evaluation_order(corpus)
    for side in (corpus.source, corpus.target):
        if all((side[index] == UNK).all() for index in indices):
            raise ValueError(
                f"{side.prefix}: of {side.lengths[indices].sum()} words found none in the vocabulary, so that its "
                "perplexity would say nothing; is it in the right language, and tokenised as the training text is?"
            )
        longest = int(side.lengths.argmax())
        if side.lengths[longest] > LONGEST_EVALUATED:
            raise ValueError(
                f"{side.prefix}, line {longest + 1}: found {side.lengths[longest]} words, expected at most "
                f"{LONGEST_EVALUATED}, since memory grows with them; split the line into sentences"
            )


def batch_loss(model: TranslationModel, batch: Batch, config: TrainingConfig) -> Tensor:
    """Negative log-likelihood summed over words, divided by `batch_size` even where the batch is shorter."""
    with torch.autocast(batch.source.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
        log_likelihood = model(batch).log_likelihood  # (batch, target)
    return -log_likelihood.float().sum() / config.batch_size


def step(
    model: TranslationModel, batch: Batch, config: TrainingConfig, optimiser: Optimiser, stopped: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """One step down the gradient, or none if loss or gradient is not finite, or `stopped`.

    Returns the loss, the gradient's norm before clipping and whether one of them is not finite, all of no dimension,
    on the model's device as `stopped` is. On a GPU the host waits for nothing of it.
    """
    loss = batch_loss(model, batch, config)
    model.zero_grad(set_to_none=True)
    loss.backward()
    found = gradients(model)
    norm, scale = clipping(found, config, optimiser.embeddings)
    bad = ~(loss.isfinite() & norm.isfinite())
    optimiser.step(found, scale, stopped | bad)
    return loss.detach(), norm, bad


def try_largest_batch(
    model: TranslationModel,
    corpus: ParallelCorpus,
    plan: list[np.ndarray],
    config: TrainingConfig,
    device: torch.device,
) -> None:
    """Go through the largest batch, changing nothing, so that memory that is too small shows at once (ValueError)."""
    source, target = corpus.source.lengths, corpus.target.lengths
    largest = max(plan, key=lambda indices: len(indices) * (source[indices].max() + target[indices].max()))
    try:
        for batch in batches(corpus, [largest]):
            batch_loss(model, batch.to(device), config).backward()
    except torch.OutOfMemoryError as error:
        raise ValueError(
            f"the memory of {device} is too small for the largest batch ({len(largest)} pairs, {source[largest].max()} "
            f"source and {target[largest].max()} target words): lower training.batch_size or training.max_length, or "
            f"choose a smaller model ({error})"
        ) from error
    finally:
        model.zero_grad(set_to_none=True)


@dataclass
class _Run:
    """One process's part of a training run."""

    model: TranslationModel
    corpus: ParallelCorpus
    dev: ParallelCorpus
    curve: ParallelCorpus | None
    config: TrainingConfig
    seed: int
    state: TrainingState
    folder: StateFolder
    stop: StopSignals
    report: Progress

    def loop(self) -> None:
        """Train until enough is done or dev no longer improves, from wherever the state stands."""
        config, journal = self.config, self.state.journal
        number = {"dtype": torch.int64, "device": self.state.device}
        self.first_bad, self.updates = torch.zeros((), **number), torch.full((), journal.update, **number)  # 0: none
        self.last_tick = self.last_save = time.monotonic()
        read, step_for = self.ways()
        while journal.epoch <= config.epochs and not self.finished():
            self.state.optimiser.learning_rate = learning_rate(config, journal.epoch)
            self.plan = plan_epoch(self.corpus, config, self.seed, journal.epoch)
            for batch in read(self.corpus, self.plan[journal.position :]):
                if config.evaluate_every and journal.update % config.evaluate_every == 0:
                    self.evaluate()
                if self.finished():
                    break
                self.update(batch, step_for)
                self.leave_if_told()
                if time.monotonic() - self.last_save > 60 * config.save_minutes:
                    self.save()
            self.evaluate()
            journal.epoch, journal.position = journal.epoch + 1, 0
            self.save()

    def ways(self) -> tuple[Callable[..., Iterator[Batch]], Callable[[Batch], None]]:
        """How batches are made, and how a step is done for one: on a GPU, where the model can be recorded, recorded."""
        device = self.state.device
        if device.type == "cuda" and self.model.recordable:
            return batches_ahead, RecordedStep(self.step_on_device, device, CudaRecorder(device))
        return batches, lambda batch: self.step_on_device(batch.to(device))

    def update(self, batch: Batch, step_for: Callable[[Batch], None]) -> None:
        """One step down the gradient, unless loss or gradient is or was not finite."""
        journal, sums = self.state.journal, self.state.sums
        journal.update, journal.position = journal.update + 1, journal.position + 1
        step_for(batch)
        journal.words += batch.target_words
        journal.updates += 1
        journal.training_seconds += self.tick()
        if journal.update % UPDATES_A_CHECK.get(self.state.device.type, 1) == 0:
            self.check()
        self.report.trained(journal.update, batch.target_words, lambda: sums["nll"].item() / journal.words)

    def step_on_device(self, batch: Batch) -> None:
        """The step of an update and what is noted of it, all on the device."""
        state, config = self.state, self.config
        self.updates += 1
        loss, norm, bad = step(self.model, batch, config, state.optimiser, self.first_bad > 0)
        self.first_bad.copy_(torch.where((self.first_bad == 0) & bad, self.updates, self.first_bad))
        state.sums["nll"] += loss * config.batch_size
        state.sums["gradient_norm"] += norm

    def evaluate(self) -> None:
        """Add a record to the learning curve and keep the weights if they are the best; once an update at most."""
        config, state, journal = self.config, self.state, self.state.journal
        if journal.evaluated == journal.update:
            return
        self.check()
        dev = self.perplexity(self.dev)
        record = {
            "update": journal.update,
            "epoch": journal.epoch,
            "dev_perplexity": dev,
            "curve_perplexity": None if self.curve is None else self.perplexity(self.curve),
            "train_perplexity": self.finite(_exp(state.sums["nll"].item() / journal.words), "training"),
            "learning_rate": learning_rate(config, journal.epoch),
            "words_per_second": journal.words / journal.training_seconds,
            "gradient_norm": state.sums["gradient_norm"].item() / journal.updates,  # mean, before clipping
        }
        self.tick()
        journal.curve.append({**record, "seconds": journal.seconds})
        best = config.keep == "last" or journal.best_perplexity is None or dev < journal.best_perplexity
        if best:
            journal.best_perplexity, journal.best_update = dev, journal.update
            state.keep_best()
        self.report.evaluated(journal.curve[-1], best)
        journal.evaluated, journal.words, journal.updates, journal.training_seconds = journal.update, 0, 0, 0.0
        for total in state.sums.values():
            total.zero_()

    def perplexity(self, corpus: ParallelCorpus) -> float:
        """Perplexity of a corpus under the weights of now; a signal breaks off, and resuming evaluates again."""
        nll, words = perplexity(
            self.model, corpus, self.config.evaluate_batch_size, self.state.device, self.leave_if_told
        )
        return self.finite(_exp(nll / words), corpus.target.prefix)

    def finite(self, perplexity: float, of: str) -> float:
        """The perplexity given; TrainingDiverged if it is infinite or not a number."""
        if not math.isfinite(perplexity):
            raise self.diverged(f"after update {self.state.journal.update} the perplexity of {of} is {perplexity}")
        return perplexity

    def check(self) -> None:
        """Raise TrainingDiverged if an update could not be made."""
        bad, journal = int(self.first_bad), self.state.journal
        if bad:
            number = journal.position - (journal.update - bad)  # of its batch in the epoch, from 1
            pairs = ", ".join(str(index + 1) for index in self.plan[number - 1][:4])
            raise self.diverged(
                f"the loss or the norm of its gradient is infinite or not a number at update {bad}, batch {number} of "
                f"{len(self.plan)} of epoch {journal.epoch}, sentence pairs {pairs}, ...; the update was not made"
            )

    def diverged(self, found: str) -> TrainingDiverged:
        """The error that says what was found, what is kept and what to do."""
        config = self.config
        kept = f"the last good state is kept in {self.folder.path}" if self.folder.filled else "no state was saved yet"
        return TrainingDiverged(
            f"training diverged: {found}; {kept}. Lower training.learning_rate (now {config.learning_rate}) or "
            f"training.clip (now {config.clip}), halve earlier (training.halve_after, now {config.halve_after}), or "
            f"use training.precision float32 (now {config.precision}); if it stays, look at those sentence pairs"
        )

    def finished(self) -> bool:
        """Whether all `updates` are made, or dev has not improved for `patience` evaluations."""
        journal, patience, updates = self.state.journal, self.config.patience, self.config.updates
        if updates is not None and journal.update >= updates:
            return True
        return patience is not None and sum(r["update"] > journal.best_update for r in journal.curve) >= patience

    def leave_if_told(self) -> None:
        """Save and raise Interrupted if a signal has come."""
        if self.stop.received:
            self.save()
            message = (
                f"{self.stop.received}: stopped after update {self.state.journal.update}, the state is saved in "
                f"{self.folder.path}; the same command continues"
            )
            raise Interrupted(message)

    def save(self) -> None:
        """Save the state, unless training has diverged (TrainingDiverged)."""
        self.check()
        self.state.save(self.folder)
        self.last_save = time.monotonic()

    def tick(self) -> float:
        """Seconds since the last tick, which are added to the run's."""
        now = time.monotonic()
        passed, self.last_tick = now - self.last_tick, now
        self.state.journal.seconds += passed
        return passed


def _exp(mean: float) -> float:
    """exp, infinite where it would overflow."""
    return math.exp(mean) if mean < 700 else math.nan if math.isnan(mean) else math.inf
