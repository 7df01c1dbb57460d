"""The fast path against the plain one: every variant, forward and every gradient, with padding and dropout."""

import gc
import weakref

import pytest
import torch

from nmt import fused
from tests.nmt.test_luong import ATTENTIONS, PAIRS, attention_id, build, make_batch

LONG = [([3, 4, 5, 6, 7, 8, 9, 10, 3, 4, 5, 6, 7, 8], [3, 4, 5]), *PAIRS]  # longer than a location score knows


def run(fast, attention, pairs=PAIRS, device="cpu", **changes):
    """Likelihood, alignment and gradients of an unevenly weighted loss, by one path."""
    model = build(attention, fast=fast, **{"input_feeding": True, **changes}).to(device).train()
    torch.manual_seed(7)
    forced = model(make_batch(pairs).to(device))
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(forced.log_likelihood.shape, generator=generator, dtype=torch.float64)
    (forced.log_likelihood * weights.to(forced.log_likelihood)).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return forced.log_likelihood.detach(), forced.attention, gradients


def assert_same(attention, tolerance, **changes):
    fast, plain = (run(fast, attention, **changes) for fast in (True, False))
    close = {"atol": tolerance, "rtol": tolerance}
    torch.testing.assert_close(fast[0], plain[0], **close)
    if attention is not None:
        torch.testing.assert_close(fast[1], plain[1].detach(), **close)
    assert fast[2].keys() == plain[2].keys()
    for name, gradient in plain[2].items():
        assert gradient.any(), name
        torch.testing.assert_close(fast[2][name], gradient, **close, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("layers, dropout", [(1, 0.0), (1, 0.4), (2, 0.0), (2, 0.4)])
@pytest.mark.parametrize("attention", [*ATTENTIONS, ("global", "additive")], ids=attention_id)
def test_equals_the_plain_path(attention, layers, dropout):
    assert_same(attention, 1e-10, layers=layers, dropout=dropout)


@pytest.mark.parametrize("attention", ATTENTIONS, ids=attention_id)
def test_equals_the_plain_path_in_float32(attention):
    assert_same(attention, 1e-5, dtype=torch.float32, dropout=0.2)


def test_equals_the_plain_path_without_feeding():
    assert_same(("global", "general"), 1e-10, input_feeding=False)


READINGS = [
    {"padding": "unmasked"},
    {"source_end": "absent"},
    {"centre": "plus_one"},
    {"gaussian": "renormalised"},
    {"gaussian_gradient": "half"},
    {"gaussian": "renormalised", "gaussian_gradient": "half", "centre": "plus_one"},
]


@pytest.mark.parametrize("readings", READINGS, ids=lambda readings: "-".join(readings.values()))
@pytest.mark.parametrize("score", ["general", "concat", "location"])
def test_equals_the_plain_path_in_every_reading(score, readings):
    concerned = "global" if "padding" in readings else "local-p"
    assert_same((concerned, score), 1e-10, readings=readings)


@pytest.mark.parametrize("scope", ["global", "local-m", "local-p"])
def test_equals_the_plain_path_beyond_the_positions_the_location_score_knows(scope):
    assert_same((scope, "location"), 1e-10, pairs=LONG)


@pytest.mark.parametrize("readings", [{"location": "slots"}, {"gaussian": "before_softmax"}])
def test_the_plain_path_takes_what_the_fast_one_does_not_serve(readings):
    assert fused.supports(build(("local-p", "location"), input_feeding=True))
    model = build(("local-p", "location"), input_feeding=True, readings=readings)
    assert not fused.supports(model)
    assert torch.isfinite(model(make_batch(PAIRS)).log_likelihood).all()


def test_autocast_takes_the_plain_path():
    model = build(("global", "dot"), input_feeding=True, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert model.fast_path() is None


def test_backward_twice_gives_twice_the_gradient():
    model = build(("local-p", "concat"), input_feeding=True)
    loss = model(make_batch(PAIRS)).log_likelihood.sum()
    loss.backward(retain_graph=True)
    once = [parameter.grad.clone() for parameter in model.parameters()]
    loss.backward()
    for parameter, gradient in zip(model.parameters(), once, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * gradient)


def test_inference_mode_gives_the_same_and_leaves_training_alone():
    model = build(("local-p", "concat"), input_feeding=True)
    with torch.inference_mode():
        without = model(make_batch(PAIRS)).log_likelihood
    likelihood = model(make_batch(PAIRS)).log_likelihood
    likelihood.sum().backward()
    assert torch.equal(without, likelihood)


@pytest.mark.parametrize("input_feeding", [False, True])
@pytest.mark.parametrize("attention", ATTENTIONS, ids=attention_id)
def test_a_step_of_a_search_is_the_plain_step(attention, input_feeding):
    """Two hypotheses a sentence, two layers, three steps; what a step was given stays as it was."""
    model = build(attention, fast=True, layers=2, input_feeding=input_feeding).eval()
    batch = make_batch(PAIRS)

    def steps():
        memory = model.encode(batch.source, batch.source_length)
        state = model.start(memory).select(torch.arange(len(PAIRS)).repeat_interleave(2))
        taken = []
        for t in range(3):
            taken.append(model.step(memory, state, torch.arange(len(PAIRS) * 2) % 5 + t))
            state = taken[-1].state
        return taken

    with torch.no_grad():
        fast = steps()
    for searching, plain in zip(fast, steps(), strict=True):
        torch.testing.assert_close(searching.log_probability, plain.log_probability.detach(), atol=1e-12, rtol=0)
        torch.testing.assert_close(vars(searching.state), vars(plain.state), atol=1e-12, rtol=0)
        assert (searching.attention is None) == (attention is None)
        if attention is not None:
            torch.testing.assert_close(searching.attention, plain.attention.detach(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("attention", [None, ("local-p", "concat")], ids=attention_id)
def test_what_a_batch_held_is_freed_without_the_garbage_collector(attention):
    model = build(attention, input_feeding=True)
    gc.collect()
    gc.disable()
    try:
        forced = model(make_batch(PAIRS))
        node = weakref.ref(decoder_node(forced.log_likelihood.grad_fn))
        assert node() is not None
        forced.log_likelihood.sum().backward()
        del forced
        assert node() is None
    finally:
        gc.enable()


def decoder_node(node):
    """The decoder's node in the graph behind another node."""
    while node.name() != "FedDecoderBackward":
        node = next(before for before, _ in node.next_functions if before is not None)
    return node
