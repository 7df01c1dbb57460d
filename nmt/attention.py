"""Attention as two orthogonal choices: how a source position is scored, and which positions are looked at.

Luong et al. 2015, section 3; the additive score: Bahdanau et al. 2015, appendix A.1.2. All positions are 1-based and in
the original order of the source sentence, whatever the order in which the encoder read it. h_t is the decoder's top
state (`query`), hbar_s the encoder's (`annotations`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

# Score of a position that `location` has no row for: weight 0, yet finite, so that a window of nothing else is no NaN.
UNKNOWN_POSITION = -1e4

ScopeName = Literal["global", "local-m", "local-p"]
ScoreName = Literal["dot", "general", "concat", "concat_identity", "location", "additive"]


@dataclass(frozen=True)
class Readings:
    """Where the paper, its authors' code and plain correctness differ; `named` gives the three whole readings."""

    source_end: Literal["encoded", "absent"] = "encoded"  # is the source's `</s>` read and attended?
    padding: Literal["masked", "unmasked"] = "masked"  # unmasked: each pad adds exp(score of a zero vector)
    location: Literal["sentence", "slots"] = "sentence"  # softmax over the sentence, or over all the slots
    centre: Literal["plain", "plus_one"] = "plain"  # local-p: p_t, or p_t + 1
    gaussian: Literal["after_softmax", "renormalised", "before_softmax"] = "after_softmax"  # eq. 10
    gaussian_gradient: Literal["full", "half"] = "full"  # of the Gaussian with respect to p_t

    @staticmethod
    def named(name: Literal["paper", "as_coded", "corrected"]) -> Readings:
        """The reading of the paper's text, of its authors' code of August 2015, or what one would do today."""
        return {
            "paper": Readings(),
            "as_coded": Readings("absent", "unmasked", "slots", "plus_one", "after_softmax", "half"),
            "corrected": Readings(gaussian="renormalised"),
        }[name]


@dataclass(frozen=True)
class AttentionConfig:
    """Which attention; `window` is D of the local scopes, `longest` the number of positions a location score knows,
    `hidden` the width n' of an additive score (as wide as the query if None).
    """

    scope: ScopeName = "global"
    score: ScoreName = "general"
    window: int = 10
    longest: int = 50
    hidden: int | None = None


@dataclass(frozen=True)
class Attended:
    """The source as attention sees it, one row a sentence."""

    annotations: Tensor  # (batch, source, hidden) hbar_s, zero at padding
    keys: Tensor  # (batch, source, hidden) what the score made of them, once a sentence
    length: Tensor  # (batch,) S, the positions that can be attended

    def select(self, rows: Tensor) -> Attended:
        """The given sentences."""
        return Attended(*(value.index_select(0, rows) for value in (self.annotations, self.keys, self.length)))

    def inside(self) -> Tensor:
        """True at real positions; (batch, source)."""
        return positions(self.annotations.shape[1], self.length) <= self.length.unsqueeze(1)


def positions(source: int, like: Tensor) -> Tensor:
    """1 .. source, on the device of `like`."""
    return torch.arange(1, source + 1, device=like.device)


# ---------------------------------------------------------------- scores (eq. 8 and its neighbours)


class Dot(nn.Module):
    """score(h_t, hbar_s) = h_t . hbar_s"""

    def keys(self, annotations: Tensor) -> Tensor:
        return annotations

    def forward(self, query: Tensor, keys: Tensor, length: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)  # (batch, queries, source)


class General(Dot):
    """score(h_t, hbar_s) = h_t . W_a hbar_s"""

    def __init__(self, query: int, annotations: int) -> None:
        super().__init__()
        self.project = nn.Linear(annotations, query, bias=False)  # W_a

    def keys(self, annotations: Tensor) -> Tensor:
        return self.project(annotations)


class Additive(nn.Module):
    """score(s_{i-1}, h_j) = v_a . tanh(W_a s_{i-1} + U_a h_j)"""

    def __init__(self, query: int, annotations: int, hidden: int) -> None:
        super().__init__()
        self.project_query = nn.Linear(query, hidden, bias=False)  # W_a
        self.project_annotations: nn.Module = nn.Linear(annotations, hidden, bias=False)  # U_a
        self.weigh = nn.Linear(hidden, 1, bias=False)  # v_a

    def keys(self, annotations: Tensor) -> Tensor:
        return self.project_annotations(annotations)

    def forward(self, query: Tensor, keys: Tensor, length: Tensor) -> Tensor:
        joint = self.project_query(query).unsqueeze(2) + keys.unsqueeze(1)  # (batch, queries, source, hidden)
        return self.weigh(torch.tanh(joint)).squeeze(3)  # (batch, queries, source)


class Concat(Additive):
    """score(h_t, hbar_s) = v_a . tanh(W_a [h_t; hbar_s]); `identity` fixes hbar_s's part of W_a to I (footnote 15)."""

    def __init__(self, query: int, annotations: int, identity: bool = False) -> None:
        super().__init__(query, annotations, query)
        if identity:
            self.project_annotations = nn.Identity()


class Location(nn.Module):
    """score of position s = (W_a h_t)_s: looks at the target alone; knows no position beyond `longest`."""

    def __init__(self, hidden: int, longest: int, slots: bool, reverse: bool) -> None:
        super().__init__()
        self.project = nn.Linear(hidden, longest, bias=False)  # W_a
        self.longest, self.slots = longest, slots
        self.right_aligned = slots and not reverse  # the slots count from the end of the order in which words are read

    def keys(self, annotations: Tensor) -> Tensor:
        return annotations

    def forward(self, query: Tensor, keys: Tensor, length: Tensor) -> Tensor:
        scores = self.project(query)  # (batch, queries, longest)
        slot = (positions(keys.shape[1], length) - 1).expand(keys.shape[:2])  # (batch, source)
        if self.right_aligned:
            slot = slot + (self.longest - length).clamp(min=0).unsqueeze(1)
        known = (slot < self.longest).unsqueeze(1)  # (batch, 1, source)
        index = slot.clamp(max=self.longest - 1).unsqueeze(1).expand(-1, query.shape[1], -1)
        if self.slots:  # the softmax's denominator runs over every slot, pads included
            scores = scores - scores.logsumexp(2, keepdim=True)
        return scores.gather(2, index).masked_fill(~known, UNKNOWN_POSITION)  # (batch, queries, source)


def build_score(config: AttentionConfig, query: int, annotations: int, reverse: bool, readings: Readings) -> nn.Module:
    """The score function a config names, for queries and annotations of the given widths.

    Raises ValueError if the score needs both equally wide and they are not.
    """
    if config.score in ("dot", "concat_identity") and query != annotations:
        raise ValueError(
            f"model.attention.score: {config.score} needs annotations as wide as the decoder's state ({query}), found "
            f"{annotations}; choose general, concat or additive"
        )
    match config.score:
        case "dot":
            return Dot()
        case "general":
            return General(query, annotations)
        case "concat" | "concat_identity":
            return Concat(query, annotations, identity=config.score == "concat_identity")
        case "location":
            return Location(query, config.longest, slots=readings.location == "slots", reverse=reverse)
        case "additive":
            return Additive(query, annotations, config.hidden or query)


# ---------------------------------------------------------------- scopes (sections 3.1 and 3.2)


class Global(nn.Module):
    """All source positions: a_t = softmax(score), eq. 7."""

    def __init__(self, masked: bool, normalised: bool) -> None:
        super().__init__()
        self.masked, self.normalised = masked, normalised

    def forward(self, scores: Tensor, query: Tensor, source: Attended, time: Tensor) -> Tensor:
        inside = source.inside().unsqueeze(1)  # (batch, 1, source)
        if self.normalised:  # the score already divided by the sum over its slots
            return torch.where(inside, scores, -torch.inf).exp()
        if self.masked:
            scores = scores.masked_fill(~inside, -torch.inf)
        return torch.softmax(scores, 2)


class LocalMonotonic(nn.Module):
    """local-m: p_t = t, at most S; softmax over the window [p_t - D, p_t + D]."""

    def __init__(self, half_width: int) -> None:
        super().__init__()
        self.half_width = half_width  # D

    def forward(self, scores: Tensor, query: Tensor, source: Attended, time: Tensor) -> Tensor:
        centre = torch.minimum(time.unsqueeze(0), source.length.unsqueeze(1))  # (batch, queries) p_t
        return torch.softmax(scores.masked_fill(~window(centre, source, self.half_width), -torch.inf), 2)


class LocalPredictive(nn.Module):
    """local-p: p_t = S sigmoid(v_p . tanh(W_p h_t)) (eq. 9).

    The softmax over the window around floor(p_t) is multiplied by a Gaussian around p_t (eq. 10) and not
    renormalised, unless the readings say otherwise.
    """

    def __init__(self, hidden: int, half_width: int, readings: Readings) -> None:
        super().__init__()
        self.project = nn.Linear(hidden, hidden, bias=False)  # W_p
        self.weigh = nn.Linear(hidden, 1, bias=False)  # v_p
        self.half_width, self.readings = half_width, readings

    def centre(self, query: Tensor, length: Tensor) -> Tensor:
        """p_t, real-valued; (batch, queries)."""
        share = torch.sigmoid(self.weigh(torch.tanh(self.project(query)))).squeeze(2)  # (batch, queries)
        centre = length.unsqueeze(1) * share
        return centre + 1 if self.readings.centre == "plus_one" else centre

    def forward(self, scores: Tensor, query: Tensor, source: Attended, time: Tensor) -> Tensor:
        centre = self.centre(query, source.length)
        outside = ~window(centre.detach().floor(), source, self.half_width)  # (batch, queries, source)
        exponent = self.exponent(centre, scores.shape[2])
        if self.readings.gaussian == "before_softmax":
            return torch.softmax((scores * exponent.exp()).masked_fill(outside, -torch.inf), 2)
        weights = torch.softmax(scores.masked_fill(outside, -torch.inf), 2) * exponent.exp()
        if self.readings.gaussian == "renormalised":
            return weights / weights.sum(2, keepdim=True)
        return weights

    def exponent(self, centre: Tensor, source: int) -> Tensor:
        """-(s - p_t)^2 / (2 sigma^2) with sigma = D / 2; (batch, queries, source)."""
        if self.readings.gaussian_gradient == "half":
            centre = (centre + centre.detach()) / 2
        distance = positions(source, centre) - centre.unsqueeze(2)
        sigma = self.half_width / 2
        return -distance.square() / (2 * sigma**2)


def window(centre: Tensor, source: Attended, half_width: int) -> Tensor:
    """True at the sentence's positions within `half_width` of the (whole) centre; (batch, queries, source)."""
    position = positions(source.annotations.shape[1], centre)
    near = (position - centre.unsqueeze(2)).abs() <= half_width  # (batch, queries, source)
    return near & source.inside().unsqueeze(1)


def build_scope(config: AttentionConfig, hidden: int, readings: Readings) -> nn.Module:
    """The scope a config names."""
    match config.scope:
        case "global":
            slots = config.score == "location" and readings.location == "slots"
            return Global(masked=readings.padding == "masked", normalised=slots)
        case "local-m":
            return LocalMonotonic(config.window)
        case "local-p":
            return LocalPredictive(hidden, config.window, readings)


class Attention(nn.Module):
    """A score and a scope: queries in, contexts and weights out; annotations as wide as queries unless given."""

    def __init__(
        self, config: AttentionConfig, hidden: int, reverse: bool, readings: Readings, annotations: int | None = None
    ) -> None:
        super().__init__()
        self.score = build_score(config, hidden, annotations or hidden, reverse, readings)
        self.scope = build_scope(config, hidden, readings)

    def prepare(self, annotations: Tensor, length: Tensor) -> Attended:
        """Compute once a sentence what does not depend on the query."""
        return Attended(annotations, self.score.keys(annotations), length)

    def weights(self, query: Tensor, source: Attended, time: Tensor) -> Tensor:
        """a_t: (batch, queries, hidden) h_t and (queries,) t, 1-based, to (batch, queries, source)."""
        return self.scope(self.score(query, source.keys, source.length), query, source, time)

    def forward(self, query: Tensor, source: Attended, time: Tensor) -> tuple[Tensor, Tensor]:
        """c_t = sum_s a_t(s) hbar_s, and a_t.

        query: (batch, queries, hidden) h_t; time: (queries,) t, 1-based.
        Returns (batch, queries, hidden) and (batch, queries, source).
        """
        weights = self.weights(query, source, time)
        return weights @ source.annotations, weights
