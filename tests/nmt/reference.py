"""Luong et al. (2015) written out in float64 numpy, one sentence, one step and one position at a time."""

import math

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(weight_input, weight_hidden, x, h, c):
    size = len(h)
    gates = weight_input @ x + weight_hidden @ h
    i, f, g, o = (gates[k * size : (k + 1) * size] for k in range(4))
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def stack(weights, x, h, c):
    """One step of every layer; weights: list of (input, recurrent) matrices; h, c: lists, changed in place."""
    for layer, (weight_input, weight_hidden) in enumerate(weights):
        h[layer], c[layer] = lstm(weight_input, weight_hidden, x, h[layer], c[layer])
        x = h[layer]
    return x


def softmax(values):
    exponents = [math.exp(v - max(values)) for v in values]
    return [e / sum(exponents) for e in exponents]


def score(kind, p, h, annotation, position):
    if kind == "dot":
        return float(h @ annotation)
    if kind == "general":
        return float(h @ (p["attention.score.project.weight"] @ annotation))
    if kind == "location":
        return float(p["attention.score.project.weight"][position - 1] @ h)
    by_query = p["attention.score.project_query.weight"] @ h
    part = annotation if kind == "concat_identity" else p["attention.score.project_annotations.weight"] @ annotation
    return float(p["attention.score.weigh.weight"][0] @ np.tanh(by_query + part))


def attend(scope, kind, p, h, annotations, t, half_width):
    """a_t over all positions, by the equations of section 3; t is 1-based."""
    size = len(annotations)
    if scope == "global":
        low, high = 1, size
    elif scope == "local-m":
        low, high = min(t, size) - half_width, min(t, size) + half_width
    else:
        inner = np.tanh(p["attention.scope.project.weight"] @ h)
        centre = size * sigmoid(float(p["attention.scope.weigh.weight"][0] @ inner))
        low, high = math.floor(centre) - half_width, math.floor(centre) + half_width
    inside = [s for s in range(1, size + 1) if low <= s <= high]
    weights = np.zeros(size)
    for s, a in zip(inside, softmax([score(kind, p, h, annotations[s - 1], s) for s in inside]), strict=True):
        weights[s - 1] = a
        if scope == "local-p":
            weights[s - 1] *= math.exp(-((s - centre) ** 2) / (2 * (half_width / 2) ** 2))
    return weights


def log_likelihood(p, source, target, layers, reverse, feeding, scope, kind, half_width):
    """log p of each target word (`</s>` = 2 included) and the attention of each step.

    p: parameters by name, float64; source, target: word indices without specials.
    """

    def stacked(name):
        return [tuple(p[f"{name}.layers.{k}.weight_{w}_l0"] for w in ("ih", "hh")) for k in range(layers)]

    words = [*source, 2]
    order = list(range(len(words)))
    if reverse:
        order.reverse()
    size = p["output.weight"].shape[1]
    h, c = [np.zeros(size) for _ in range(layers)], [np.zeros(size) for _ in range(layers)]
    annotations = [None] * len(words)
    for position in order:
        annotations[position] = stack(stacked("encoder"), p["source_embedding.weight"][words[position]], h, c)
    fed, result, attention = np.zeros(size), [], []
    for t, (previous, word) in enumerate(zip([1, *target], [*target, 2], strict=True), 1):
        x = p["target_embedding.weight"][previous]
        top = stack(stacked("decoder"), np.concatenate([x, fed]) if feeding else x, h, c)
        fed = top
        if scope is not None:
            weights = attend(scope, kind, p, top, annotations, t, half_width)
            context = sum(w * a for w, a in zip(weights, annotations, strict=True))
            fed = np.tanh(p["combine.weight"] @ np.concatenate([context, top]))
            attention.append(weights)
        logits = p["output.weight"] @ fed
        result.append(logits[word] - math.log(np.exp(logits).sum()))
    return np.array(result), np.array(attention)
