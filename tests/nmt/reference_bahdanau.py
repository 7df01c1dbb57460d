"""Bahdanau et al. (2015), appendix A, in float64 numpy, one sentence, one step and one position at a time."""

import math

import numpy as np

from tests.nmt.reference import sigmoid, softmax


def gated_unit(p, name, x, h, context=None):
    """z, r = sigmoid(W x + U h + C c + b); h~ = tanh(W x + U [r * h] + C c + b); (1 - z) * h + z * h~."""
    size = len(h)
    w_z, w_r, w = (p[f"{name}.project.weight"][k * size : (k + 1) * size] for k in range(3))
    b_z, b_r, b = (p[f"{name}.project.bias"][k * size : (k + 1) * size] for k in range(3))
    u_z, u_r = p[f"{name}.gates.weight"][:size], p[f"{name}.gates.weight"][size:]
    u = p[f"{name}.candidate.weight"]
    from_context = [np.zeros(size)] * 3
    if context is not None:
        from_context = [p["context.weight"][k * size : (k + 1) * size] @ context for k in range(3)]
    z = sigmoid(w_z @ x + u_z @ h + from_context[0] + b_z)
    r = sigmoid(w_r @ x + u_r @ h + from_context[1] + b_r)
    proposed = np.tanh(w @ x + u @ (r * h) + from_context[2] + b)
    return (1 - z) * h + z * proposed


def read(p, name, words):
    """The unit's state after each word."""
    states, h = [], np.zeros(p[f"{name}.candidate.weight"].shape[0])
    for word in words:
        h = gated_unit(p, name, p["source_embedding.weight"][word], h)
        states.append(h)
    return states


def log_likelihood(p, source, target, search):
    """log p of each target word (`</s>` = 2 included) and the alignment of each step.

    p: parameters by name, float64; source, target: word indices without specials; search: RNNsearch or RNNencdec.
    """
    words = [*source, 2]
    forward = read(p, "encoder.0", words)
    if search:
        backward = read(p, "encoder.1", words[::-1])[::-1]
        annotations = [np.concatenate(pair) for pair in zip(forward, backward, strict=True)]
        first = backward[0]
    else:
        first = forward[-1]
    s = np.tanh(p["initial.weight"] @ first + p["initial.bias"])
    result, alignment = [], []
    for previous, word in zip([1, *target], [*target, 2], strict=True):
        y = p["target_embedding.weight"][previous]
        context = forward[-1]
        if search:
            w_a, u_a = p["attention.score.project_query.weight"], p["attention.score.project_annotations.weight"]
            v_a = p["attention.score.weigh.weight"][0]
            weights = softmax([float(v_a @ np.tanh(w_a @ s + u_a @ h)) for h in annotations])
            context = sum(a * h for a, h in zip(weights, annotations, strict=True))
            alignment.append(weights)
        proposed = p["deep_state.weight"] @ s + p["deep_word.weight"] @ y + p["deep_context.weight"] @ context
        proposed = proposed + p["deep_state.bias"]
        maxout = np.array([max(proposed[2 * k], proposed[2 * k + 1]) for k in range(len(proposed) // 2)])
        logits = p["output.weight"] @ maxout + p["output.bias"]
        result.append(logits[word] - math.log(np.exp(logits).sum()))
        s = gated_unit(p, "decoder", y, s, context)
    return np.array(result), np.array(alignment)
