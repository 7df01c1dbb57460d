"""Training: what an update does, what is kept, how it stops, and that it can be stopped anywhere without a trace."""

from __future__ import annotations

import io
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import nmt.checkpoint
import nmt.training
from nmt.interruption import Interrupted
from nmt.optimiser import TrainingConfig, clipping, gradients, learning_rate, make_optimiser
from nmt.progress import Progress
from nmt.training import TrainingDiverged, costs_a_sentence, perplexity, plan_epoch, train, try_largest_batch
from tests.nmt.small_run import LONG, VOCABULARY, Recurrent, Unigram, outcome, random_corpus, small_run, write_corpus

PAIRS = [([3, 4], [5, 6]), ([7], [5]), ([8, 8], [3, 4, 11])]


def softmax(bias: np.ndarray) -> np.ndarray:
    return np.exp(bias) / np.exp(bias).sum()


def word_counts(pairs: list) -> np.ndarray:
    return np.bincount([word for _, target in pairs for word in [*target, 2]], minlength=VOCABULARY).astype(np.float64)


# configuration and schedule


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rat": 1.0}, r"learning_rat.*did you mean `learning_rate`"),
        ({"epochs": "12"}, r"training\.epochs: found '12'"),
        ({"optimiser": "adam"}, r"training\.optimiser: found 'adam'.*sgd"),
        ({"learning_rate": -1.0}, r"training\.learning_rate: found -1\.0, expected a number over 0"),
        ({"clip": math.nan}, r"training\.clip: found nan"),
        ({"keep": "last", "patience": 2}, r"training\.patience: found 2 beside training\.keep last"),
        ({"batch_size": 128, "fetch": 100}, r"training\.fetch: found 100, expected at least batch_size = 128"),
    ],
)
def test_a_wrong_configuration_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig.from_dict(values)


@pytest.mark.parametrize(
    ("changes", "rates"),
    [
        ({}, [1, 1, 1, 1, 1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]),
        ({"reading": "as_coded"}, [1, 1, 1, 1, 1, 1, 1 / 2, 1 / 4, 1 / 8, 1 / 16]),
        ({"halve_after": None}, [1] * 10),
        ({"halve_after": 8}, [1] * 8 + [1 / 2, 1 / 4]),
    ],
)
def test_the_learning_rate_is_halved_after_the_paper_s_epochs(changes, rates):
    config = TrainingConfig.from_dict(changes)
    assert [learning_rate(config, epoch) for epoch in range(1, 11)] == rates


# one update


@pytest.mark.parametrize("clip", [100.0, 0.25])
def test_an_update_is_that_worked_out_by_hand(tmp_path, clip):
    """One batch of 3 pairs under batch_size 4: the loss is divided by 4 all the same."""
    corpus = write_corpus(tmp_path / "train", PAIRS)
    model = Unigram()
    config = TrainingConfig(batch_size=4, fetch=4, epochs=1, learning_rate=0.5, clip=clip)
    result = train(model, corpus, corpus, config, seed=0, state_dir=tmp_path / "state", progress=False)

    bias, counts = np.linspace(-1.0, 1.0, VOCABULARY), word_counts(PAIRS)
    gradient = (counts.sum() * softmax(bias) - counts) / 4
    norm = np.linalg.norm(gradient)
    expected = bias - 0.5 * gradient * min(1.0, clip / norm)
    assert norm > 0.25
    np.testing.assert_allclose(model.bias.detach().numpy(), expected, atol=1e-6)
    record = result.curve[0]
    assert record["gradient_norm"] == pytest.approx(norm, rel=1e-5)
    assert record["train_perplexity"] == pytest.approx(math.exp(-counts @ np.log(softmax(bias)) / 9), rel=1e-5)
    assert record["dev_perplexity"] == pytest.approx(math.exp(-counts @ np.log(softmax(expected)) / 9), rel=1e-5)
    assert (record["update"], record["epoch"], record["learning_rate"], result.updates) == (1, 1, 0.5, 1)


@pytest.mark.parametrize(("reading", "scale"), [("paper", 5 / math.sqrt(10_100)), ("as_coded", 0.5)])
def test_as_coded_clipping_leaves_embeddings_out_of_the_norm_but_scales_them(reading, scale):
    model = nn.ModuleDict({"words": nn.Embedding(4, 1), "dense": nn.Linear(4, 1, bias=False)})
    model["words"].weight.grad = torch.full((4, 1), 50.0)  # norm 100
    model["dense"].weight.grad = torch.full((1, 4), 5.0)  # norm 10
    config = TrainingConfig(reading=reading)
    norm, found = clipping(gradients(model), config, make_optimiser(model, config).embeddings)
    assert norm.item() == pytest.approx(math.sqrt(10_100))
    assert found.item() == pytest.approx(scale)


def test_every_gradient_is_scaled_and_a_stopped_step_moves_nothing():
    model = nn.Linear(2, 1)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimiser = make_optimiser(model, TrainingConfig())
    optimiser.learning_rate = 0.5
    optimiser.step(gradients(model), torch.tensor(0.5), torch.tensor(True))
    assert all(map(torch.equal, before, model.parameters()))
    optimiser.step(gradients(model), torch.tensor(0.5), torch.tensor(False))
    for old, parameter in zip(before, model.parameters(), strict=True):
        torch.testing.assert_close(parameter, old - 0.25)


@pytest.mark.parametrize("name", ["sgd", "adadelta"])
def test_a_large_embedding_moves_as_a_small_one(monkeypatch, name):
    def moved(rows):
        monkeypatch.setattr("nmt.optimiser.SPARSE_FROM", rows)
        torch.manual_seed(1)
        model = nn.Embedding(7, 3)
        optimiser = make_optimiser(model, TrainingConfig(optimiser=name))
        optimiser.learning_rate = 0.5
        for words in ([5, 0, 5, 2, 5], [6, 6], [1, 2]):
            model.zero_grad()
            (model(torch.tensor(words)) * torch.rand(len(words), 3)).sum().backward()
            found = gradients(model)
            norm, scale = clipping(found, TrainingConfig(clip=0.7), optimiser.embeddings)
            optimiser.step(found, scale, torch.tensor(False))
        return model, norm, model.weight.detach()

    small, norm, expected = moved(8)
    large, norm_of_large, weight = moved(7)
    assert (small.sparse, large.sparse) == (False, name == "sgd")
    torch.testing.assert_close(norm_of_large, norm)
    torch.testing.assert_close(weight, expected)


def test_adadelta_is_zeiler_s():
    weight = nn.Parameter(torch.tensor([1.0]))
    optimiser = make_optimiser(nn.ParameterList([weight]), TrainingConfig(optimiser="adadelta"))
    optimiser.learning_rate = 0.5
    x, square, delta = 1.0, 0.0, 0.0
    for gradient in (2.0, -1.0, 0.5):
        weight.grad = torch.tensor([gradient])
        optimiser.step(gradients(nn.ParameterList([weight])), torch.tensor(1.0), torch.tensor(False))
        square = 0.95 * square + 0.05 * gradient**2
        change = -math.sqrt(delta + 1e-6) / math.sqrt(square + 1e-6) * gradient
        delta = 0.95 * delta + 0.05 * change**2
        x += 0.5 * change
    assert weight.item() == pytest.approx(x, rel=1e-6)


# evaluation, what is kept, when it ends


def test_perplexity_counts_every_word_and_end_and_leaves_out_empty_pairs(tmp_path):
    pairs = [*PAIRS, ([], [4]), ([4], []), ([3], list(range(3, 12)))]
    model = Unigram().train()
    nll, words = perplexity(model, write_corpus(tmp_path, pairs), 2, "cpu")
    full = [*PAIRS, pairs[-1]]
    assert words == 3 + 2 + 4 + 10
    assert nll == pytest.approx(-word_counts(full) @ np.log(softmax(np.linspace(-1.0, 1.0, VOCABULARY))), rel=1e-6)
    assert model.training


def test_evaluation_is_without_dropout_and_the_same_for_every_batch_size(tmp_path):
    corpus = random_corpus(tmp_path, 23, seed=0)
    model = Recurrent().train()
    model.embedding.weight.data[2] = 0.0  # the padding that the mean of the source would see
    same_length = write_corpus(tmp_path / "equal", [([3, 4], corpus[i][1].tolist()) for i in range(23)])
    totals = [perplexity(model, same_length, size, "cpu") for size in (1, 4, 64)]
    assert totals[0][0] == pytest.approx(totals[1][0], rel=1e-6) == pytest.approx(totals[2][0], rel=1e-6)
    assert len({words for _, words in totals}) == 1


def test_the_model_ends_with_the_weights_of_the_best_dev_perplexity(tmp_path):
    model, result = small_run(tmp_path, "state", learning_rate=6.0, halve_after=None, epochs=6, patience=None)
    seen = [record["dev_perplexity"] for record in result.curve]
    assert len(seen) == 6
    assert min(seen) < seen[-1], "this learning rate should make the last epoch worse than the best"
    assert result.best_perplexity == min(seen)
    assert result.best_update == result.curve[seen.index(min(seen))]["update"]
    nll, words = perplexity(model, random_corpus(tmp_path / "dev", 10, seed=2), 64, "cpu")
    assert math.exp(nll / words) == result.best_perplexity


def test_the_model_may_end_with_the_last_weights(tmp_path):
    model, result = small_run(tmp_path, "state", learning_rate=6.0, halve_after=None, epochs=6, keep="last")
    seen = [record["dev_perplexity"] for record in result.curve]
    assert min(seen) < seen[-1] == result.best_perplexity
    assert result.best_update == result.updates == 30
    nll, words = perplexity(model, random_corpus(tmp_path / "dev", 10, seed=2), 64, "cpu")
    assert math.exp(nll / words) == seen[-1]


def test_training_learns(tmp_path):
    _, result = small_run(tmp_path, "state", epochs=25, halve_after=20, size=80)
    assert result.curve[0]["dev_perplexity"] > 7
    assert result.best_perplexity < 3


def test_it_stops_when_dev_no_longer_improves(tmp_path):
    _, result = small_run(tmp_path, "state", learning_rate=1e-30, epochs=50, patience=2)
    assert [record["update"] for record in result.curve] == [5, 10, 15]
    assert result.best_update == 5


def test_it_evaluates_within_an_epoch_too_and_once_an_update(tmp_path):
    _, result = small_run(tmp_path, "state", evaluate_every=5, epochs=2)
    assert [record["update"] for record in result.curve] == [5, 10]
    _, result = small_run(tmp_path, "other", evaluate_every=2, epochs=2)
    assert [(r["epoch"], r["update"]) for r in result.curve] == [(1, 2), (1, 4), (1, 5), (2, 6), (2, 8), (2, 10)]


def test_it_stops_after_so_many_updates(tmp_path):
    _, result = small_run(tmp_path, "state", updates=7, epochs=50)
    assert [(r["epoch"], r["update"]) for r in result.curve] == [(1, 5), (2, 7)]
    assert result.epochs == pytest.approx(7 / 5)
    _, same = small_run(tmp_path, "state", updates=7, epochs=50)  # nothing is left to do
    assert same.curve == result.curve


def test_text_shuffled_once_comes_in_one_order_in_all_epochs(tmp_path):
    corpus = random_corpus(tmp_path, 40, seed=1)

    def order(epoch: int, **changes) -> list[list[int]]:
        config = TrainingConfig(batch_size=8, fetch=16, **changes)
        return [batch.tolist() for batch in plan_epoch(corpus, config, seed=3, epoch=epoch)]

    assert order(1, shuffle="once") == order(2, shuffle="once") == order(1)
    assert order(2) != order(1)


def test_the_cost_of_a_sentence_is_that_of_its_words(tmp_path):
    corpus = write_corpus(tmp_path, [*PAIRS, ([3], [4] * 9)])  # the last pair is too long to be trained on
    config = TrainingConfig(batch_size=3, fetch=3, epochs=1, learning_rate=1e-30, max_length=8)
    result = train(Unigram(), corpus, corpus, config, seed=0, state_dir=tmp_path / "state", progress=False)
    found = costs_a_sentence(result, corpus, corpus, config)
    log_softmax = np.log(softmax(np.linspace(-1.0, 1.0, VOCABULARY)))
    assert found["train_nll_a_sentence"] == pytest.approx(-word_counts(PAIRS) @ log_softmax / 3, rel=1e-5)
    everything = word_counts([*PAIRS, ([3], [4] * 9)])
    assert found["dev_nll_a_sentence"] == pytest.approx(-everything @ log_softmax / 4, rel=1e-5)


def test_a_run_follows_from_its_seed(tmp_path):
    assert outcome(*small_run(tmp_path, "one")) == outcome(*small_run(tmp_path, "two"))
    other = Recurrent()
    corpora = [
        random_corpus(tmp_path / name, 40 if name == "train" else 10, seed) for name, seed in (("train", 1), ("dev", 2))
    ]
    config = TrainingConfig(batch_size=8, fetch=16, epochs=3, halve_after=1, learning_rate=0.5)
    train(other, *corpora, config, seed=4, state_dir=tmp_path / "three", progress=False)
    assert not torch.equal(other.output.weight, small_run(tmp_path, "one")[0].output.weight)


def test_a_corpus_that_the_length_limit_empties_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"of 40 pairs found none with 1 to 50 words.*training\.max_length"):
        corpus = write_corpus(tmp_path / "long", [([3] * 51, [4])] * 40)
        train(Unigram(), corpus, corpus, TrainingConfig(), seed=0, state_dir=tmp_path / "state", progress=False)


def test_a_dev_corpus_without_words_is_refused_before_training(tmp_path):
    dev = write_corpus(tmp_path / "dev", [([], [4]), ([3], [])])
    with pytest.raises(ValueError, match="of 2 pairs found none with words on both sides"):
        corpus = random_corpus(tmp_path / "train", 9, 0)
        train(Unigram(), corpus, dev, TrainingConfig(), seed=0, state_dir=tmp_path / "state", progress=False)
    assert not (tmp_path / "state").exists()


def test_memory_too_small_for_the_largest_batch_says_what_to_set(tmp_path):
    class Greedy(Unigram):
        def forward(self, batch):
            if batch.source.shape == (2, 9):
                raise torch.OutOfMemoryError("no memory")
            return super().forward(batch)

    corpus = write_corpus(tmp_path, [([3], [4]), ([3] * 9, [4]), ([3] * 8, [4])])
    plan = [np.array([0]), np.array([1, 2])]
    with pytest.raises(ValueError, match=r"2 pairs, 9 source and 1 target words.*training\.batch_size"):
        try_largest_batch(Greedy(), corpus, plan, TrainingConfig(), torch.device("cpu"))


# divergence


class Poisoned(Recurrent):
    """At its seventh and eighth training batch the loss, or only the gradient, is not finite."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.calls, self.weights = how, 0, {}

    def forward(self, batch):
        forced = super().forward(batch)
        if not self.training:
            return forced
        self.calls += 1
        if self.calls == 7:
            self.weights = {name: value.clone() for name, value in self.state_dict().items()}
        if self.calls in (7, 8):
            zero = (self.output.weight * 0).sum()
            forced.log_likelihood[0, 0] += zero.sqrt() if self.how == "gradient" else zero / 0
        return forced


@pytest.mark.parametrize("how", ["loss", "gradient"])
@pytest.mark.parametrize(("updates_a_check", "optimiser"), [(1, "sgd"), (4, "sgd"), (50, "adadelta")])
def test_a_diverged_update_is_not_made_and_the_last_state_is_kept(
    tmp_path, monkeypatch, how, updates_a_check, optimiser
):
    """With rare checks, as on a GPU, the weights stay those before the bad update however many follow it."""
    monkeypatch.setitem(nmt.training.UPDATES_A_CHECK, "cpu", updates_a_check)
    model = Poisoned(how)
    corpora = random_corpus(tmp_path / "train", 40, 1), random_corpus(tmp_path / "dev", 10, 2)
    config = TrainingConfig(batch_size=8, fetch=16, epochs=3, optimiser=optimiser)
    message = (
        r"at update 7, batch 2 of 5 of epoch 2.*not made; the last good state is kept in .*state\. Lower training\.lea"
    )
    with pytest.raises(TrainingDiverged, match=message):
        train(model, *corpora, config, seed=0, state_dir=tmp_path / "state", progress=False)
    assert model.weights
    for name, value in model.state_dict().items():
        assert torch.equal(value, model.weights[name]), name
    _, facts = nmt.checkpoint.StateFolder(tmp_path / "state").load()
    assert (facts["update"], facts["epoch"]) == (5, 2)


def test_an_infinite_dev_perplexity_stops_too(tmp_path):
    class Impossible(Unigram):
        def forward(self, batch):
            forced = super().forward(batch)
            return forced if self.training else type(forced)(forced.log_likelihood - math.inf, None)

    corpus = random_corpus(tmp_path / "train", 9, 0)
    with pytest.raises(TrainingDiverged, match=r"perplexity of .*target is inf; no state was saved yet"):
        train(Impossible(), corpus, corpus, TrainingConfig(), seed=0, state_dir=tmp_path / "state", progress=False)


# interruption


class Crash(Exception):
    """Stands for a process that ends without warning."""


def strike(monkeypatch, owner, name: str, at: int, blow) -> None:
    """Let `blow()` fall after call number `at` of a function."""
    original, calls = getattr(owner, name), 0

    def struck(*arguments, **named):
        nonlocal calls
        result = original(*arguments, **named)
        calls += 1
        if calls == at:
            blow()
        return result

    monkeypatch.setattr(owner, name, struck)


def crash() -> None:
    raise Crash


def send(number: int):
    return lambda: os.kill(os.getpid(), number)


RUNS = [{}, {"optimiser": "adadelta", "evaluate_every": 3}]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Outcome of each of RUNS without interruption."""
    return [outcome(*small_run(tmp_path_factory.mktemp("run"), "state", **changes)) for changes in RUNS]


@pytest.mark.parametrize(("run", "save_minutes"), [(0, 10), (1, 0)])
@pytest.mark.parametrize(
    ("owner", "name", "at"),
    [
        (Progress, "trained", 1),
        (Progress, "trained", 5),
        (Progress, "trained", 8),
        (nmt.training.TrainingState, "keep_best", 2),  # within an evaluation
        (nmt.checkpoint, "save_file", 1),  # between the tensors and their seal
        (nmt.checkpoint, "save_file", 3),
        (nmt.checkpoint, "write_json", 2),  # saved, older ones not yet removed
    ],
)
def test_a_crash_anywhere_leaves_no_trace_in_the_result(tmp_path, undisturbed, save_minutes, run, owner, name, at):
    changes = {**RUNS[run], "save_minutes": save_minutes}
    with pytest.MonkeyPatch.context() as patch:
        strike(patch, owner, name, at, crash)
        with pytest.raises(Crash):
            small_run(tmp_path, "state", **changes)
    torch.manual_seed(99)  # whatever the new process did before
    assert outcome(*small_run(tmp_path, "state", **changes)) == undisturbed[run]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
@pytest.mark.parametrize(
    ("owner", "name", "at", "update"),
    [(nmt.training, "clipping", 7, 7), (nmt.training, "perplexity", 1, 5), (Progress, "trained", 10, 10)],
)
def test_a_signal_saves_and_the_rerun_continues(tmp_path, undisturbed, number, owner, name, at, update):
    handler = signal.getsignal(number)
    with pytest.MonkeyPatch.context() as patch:
        strike(patch, owner, name, at, send(number))
        with pytest.raises(Interrupted, match=f"{number.name}: stopped after update {update}") as caught:
            small_run(tmp_path, "state")
    assert caught.value.code == 75
    assert signal.getsignal(number) == handler
    _, facts = nmt.checkpoint.StateFolder(tmp_path / "state").load()
    assert facts["update"] == update
    assert outcome(*small_run(tmp_path, "state")) == undisturbed[0]


def test_a_finished_run_is_not_trained_again(tmp_path, undisturbed, monkeypatch):
    small_run(tmp_path, "state")
    strike(monkeypatch, nmt.training, "clipping", 1, crash)
    assert outcome(*small_run(tmp_path, "state")) == undisturbed[0]


def test_a_run_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path):
    root = Path(__file__).parents[2]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "tests.nmt.small_run", str(tmp_path), "20", "7"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    digest, kills = done.stdout.split()
    assert int(kills) >= 10
    assert digest == outcome(*small_run(tmp_path, "whole", **LONG))


# progress


def test_a_log_gets_plain_lines_and_the_cost_is_asked_for_only_when_shown(monkeypatch):
    now = 0.0
    monkeypatch.setattr("nmt.progress.time.perf_counter", lambda: now)
    log, asked = io.StringIO(), []
    with Progress(total=100, done=10, stream=log) as report:
        for update in range(11, 80):
            now += 4.0
            report.trained(update, 20, lambda update=update: asked.append(update) or 2.5)
    lines = log.getvalue().splitlines()
    assert lines[0] == "update 18 of 100, 5 words/s, cost 2.500, 5:28 left"  # 8 updates in 32 s; 82 left: 328 s
    assert asked == list(range(18, 80, 8))
    assert len(lines) == len(asked)
