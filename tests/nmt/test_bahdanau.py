"""The Bahdanau family against a float64 numpy loop, finite differences, repeated steps and padding; Adadelta."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nmt.attention import AttentionConfig
from nmt.bahdanau import BahdanauConfig, BahdanauModel, backward_order
from nmt.models import build_model
from tests.nmt import reference_bahdanau
from tests.nmt.gradients import check_gradients
from tests.nmt.test_luong import PAIRS, make_batch

SEARCH = AttentionConfig(score="additive", hidden=6)
BOTH = pytest.mark.parametrize("attention", [None, SEARCH], ids=["RNNencdec", "RNNsearch"])


FAST = pytest.mark.parametrize("fast", [False, True], ids=["plain", "fast"])


def build(attention, dtype=torch.float64, seed=3, fast=True):
    """A small model with large weights, biases and v_a included, so that every part matters."""
    config = BahdanauConfig(11, 9, hidden=5, embedding=4, maxout=3, attention=attention, fast=fast)
    model, generator = BahdanauModel(config), torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.8, 0.8, generator=generator)
    return model.to(dtype).eval()


@FAST
@BOTH
def test_equals_the_equations(attention, fast):
    model = build(attention, fast=fast)
    parameters = {name: value.detach().numpy() for name, value in model.named_parameters()}
    forced = model(make_batch(PAIRS))
    for row, (source, target) in enumerate(PAIRS):
        expected, alignment = reference_bahdanau.log_likelihood(parameters, source, target, attention is not None)
        steps = len(target) + 1
        np.testing.assert_allclose(forced.log_likelihood[row, :steps].detach(), expected, atol=1e-12)
        assert not forced.log_likelihood[row, steps:].any()
        if attention is None:
            assert forced.attention is None
        else:
            found = forced.attention[row, :steps].detach().numpy()
            np.testing.assert_allclose(found[:, : len(source) + 1], alignment, atol=1e-12)
            assert not found[:, len(source) + 1 :].any()


@FAST
@BOTH
def test_gradients_against_finite_differences(attention, fast):
    model = build(attention, fast=fast)
    batch = make_batch(PAIRS)

    check_gradients(model, lambda: -model(batch).log_likelihood.sum())
    for name, parameter in model.named_parameters():
        assert parameter.grad.any(), name


@FAST
@BOTH
def test_forward_equals_repeated_step(attention, fast):
    model = build(attention, fast=fast)
    batch = make_batch(PAIRS)
    forced = model(batch)
    memory = model.encode(batch.source, batch.source_length)
    state = model.start(memory)
    for t in range(batch.target_input.shape[1]):
        step = model.step(memory, state, batch.target_input[:, t])
        state = step.state
        real = t < batch.target_length
        likelihood = step.log_probability.gather(1, batch.target_output[:, t : t + 1]).squeeze(1)
        torch.testing.assert_close(likelihood[real], forced.log_likelihood[real, t])
        torch.testing.assert_close(step.log_probability.exp().sum(1), torch.ones(len(PAIRS), dtype=torch.float64))
        if attention is None:
            assert step.attention is None
        else:
            torch.testing.assert_close(step.attention[real], forced.attention[real, t])


@BOTH
def test_beams_share_one_memory(attention):
    """Hypotheses side by side give what each gives alone, and selecting rows reorders them."""
    model = build(attention)
    batch = make_batch(PAIRS[:2])
    memory = model.encode(batch.source, batch.source_length)
    state = model.start(memory).select(torch.tensor([0, 0, 0, 1, 1, 1]))
    first = model.step(memory, state, torch.tensor([1, 3, 4, 1, 3, 4]))
    second = model.step(memory, first.state.select(torch.tensor([2, 0, 1, 5, 3, 4])), torch.tensor([6, 7, 8, 6, 7, 8]))
    expected = [(0, [4, 6]), (0, [1, 7]), (0, [3, 8]), (1, [4, 6]), (1, [1, 7]), (1, [3, 8])]
    for row, (sentence, words) in enumerate(expected):
        alone = memory.select(torch.tensor([sentence]))
        state = model.start(alone)
        for word in words:
            step = model.step(alone, state, torch.tensor([word]))
            state = step.state
        torch.testing.assert_close(second.log_probability[row], step.log_probability[0])
        if attention is not None:
            torch.testing.assert_close(second.attention[row], step.attention[0])


@FAST
@BOTH
def test_padding_changes_nothing(attention, fast):
    model = build(attention, dtype=torch.float32, fast=fast)
    together = model(make_batch(PAIRS))
    for row, pair in enumerate(PAIRS):
        alone = model(make_batch([pair]))
        steps = len(pair[1]) + 1
        torch.testing.assert_close(together.log_likelihood[row, :steps], alone.log_likelihood[0], atol=2e-6, rtol=2e-6)


@BOTH
def test_fast_recurrence_equals_plain(attention):
    """Same numbers, attention and gradients, when the loss looks at the attention too."""
    results = []
    for fast in (True, False):
        model = build(attention, fast=fast)
        forced = model(make_batch(PAIRS))
        loss = forced.log_likelihood.sum()
        if attention is not None:
            loss = loss + forced.attention.square().sum()
        loss.backward()
        results.append((forced.log_likelihood.detach(), {name: p.grad for name, p in model.named_parameters()}))
    torch.testing.assert_close(results[0][0], results[1][0])
    for name, gradient in results[0][1].items():
        torch.testing.assert_close(gradient, results[1][1][name], msg=name)


def test_lower_precision_takes_the_plain_path():
    model = build(SEARCH, dtype=torch.float32)
    batch = make_batch(PAIRS)
    with torch.autocast("cpu", torch.bfloat16):
        likelihood = model(batch).log_likelihood
    likelihood.sum().backward()
    torch.testing.assert_close(likelihood, model(batch).log_likelihood, atol=0.1, rtol=0.1)


def test_padding_gets_no_annotation_and_no_gradient():
    model = build(SEARCH)
    batch = make_batch(PAIRS[:2])
    batch = replace(batch, source=batch.source.masked_fill(batch.source == 5, 4))
    pads = torch.arange(batch.source.shape[1]) >= batch.source_length.unsqueeze(1)
    batch = replace(batch, source=batch.source.masked_fill(pads, 5))  # word 5 is nothing but padding
    assert not model.encode(batch.source, batch.source_length).source.annotations[1, 3:].any()
    model(batch).log_likelihood.sum().backward()
    assert not model.source_embedding.weight.grad[5].any()


def test_encdec_sees_the_last_forward_state_alone():
    """c = h_T at every step: one annotation, no backward reader."""
    model = build(None)
    memory = model.encode(torch.tensor([[3, 4, 6]]), torch.tensor([3]))
    assert memory.source.annotations.shape == (1, 1, 5)
    assert len(model.encoder) == 1
    assert not any("attention" in name for name, _ in model.named_parameters())


@pytest.mark.parametrize("scope", ["local-m", "local-p"])
def test_the_score_is_orthogonal_to_the_scope(scope):
    model = build(AttentionConfig(scope, "additive", window=1))
    weights = model(make_batch(PAIRS[:1])).attention[0]  # (target, source)
    assert ((weights > 0).sum(1) <= 3).all()
    assert (weights > 0).any(1).all()


def test_a_score_that_needs_equal_widths_says_so():
    with pytest.raises(ValueError, match=r"dot needs annotations as wide as .*\(5\), found 10"):
        build(AttentionConfig(score="dot"))


def test_backward_order():
    assert backward_order(torch.tensor([2, 4, 3]), 4).tolist() == [[1, 0, 2, 3], [3, 2, 1, 0], [2, 1, 0, 3]]


# ---------------------------------------------------------------- initialisation (appendix B.1)


@BOTH
def test_initialisation(attention):
    values = {"hidden": 60, "embedding": 40, "maxout": 50, "attention": attention and {"score": "additive"}}
    model = build_model({"family": "bahdanau", **values}, (300, 200), seed=1)
    for name, value in model.named_parameters():
        value = value.detach()
        if name.endswith("bias") or name == "attention.score.weigh.weight":
            assert not value.any(), name
        elif name.endswith((".gates.weight", ".candidate.weight")):
            for matrix in value.split(60):
                torch.testing.assert_close(matrix @ matrix.T, torch.eye(60), atol=1e-5, rtol=0, msg=name)
        else:
            deviation = 0.001 if name.startswith("attention.") else 0.01
            assert value.std().item() == pytest.approx(deviation, rel=0.05), name
            assert abs(value.mean().item()) < 4 * deviation / value.numel() ** 0.5, name


def test_initialisation_follows_the_seed_and_the_scale():
    def weight(seed, **values):
        sizes = {"hidden": 20, "embedding": 40, "maxout": 5}
        model = build_model({"family": "bahdanau", **sizes, **values}, (100, 50), seed)
        return model.source_embedding.weight.detach()

    torch.testing.assert_close(weight(1), weight(1), atol=0, rtol=0)
    assert not torch.equal(weight(1), weight(2))
    torch.testing.assert_close(weight(1, initialisation=0.1), 10 * weight(1))


# ---------------------------------------------------------------- Adadelta (Zeiler 2012; appendix B.2)


def test_torch_adadelta_is_zeilers():
    """RMS[x] = sqrt(E[x^2] + eps), eps inside the root, and a learning rate of 1 that Zeiler's rule does not have."""
    rho, eps = 0.95, 1e-6
    generator = np.random.default_rng(0)
    gradients = generator.normal(size=(20, 4)) * [1, 1e-2, 1e-4, 0]
    x, squares, updates = np.array([1.0, -2.0, 0.5, 3.0]), np.zeros(4), np.zeros(4)
    parameter = torch.tensor(x.copy(), requires_grad=True)
    optimiser = torch.optim.Adadelta([parameter], lr=1.0, rho=rho, eps=eps)
    for gradient in gradients:
        squares = rho * squares + (1 - rho) * gradient**2
        update = -np.sqrt(updates + eps) / np.sqrt(squares + eps) * gradient
        updates = rho * updates + (1 - rho) * update**2
        x = x + update
        parameter.grad = torch.tensor(gradient)
        optimiser.step()
        np.testing.assert_allclose(parameter.detach(), x, rtol=1e-12)
    outside = -(np.sqrt(0) + eps) / (np.sqrt((1 - rho) * gradients[0] ** 2) + eps) * gradients[0]
    inside = -np.sqrt(eps) / np.sqrt((1 - rho) * gradients[0] ** 2 + eps) * gradients[0]
    assert abs(inside[0] / outside[0]) > 100  # the two meanings are far apart: the first steps would be tiny
