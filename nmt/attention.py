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
    """The source as attention sees it: a row a sentence with all its positions, or a row a window of one."""

    annotations: Tensor  # (batch, source, hidden) hbar_s, zero at padding
    keys: Tensor  # (batch, source, ...) what the score made of them, once a sentence
    length: Tensor  # (batch,) S, the positions that can be attended
    first: Tensor | None = None  # (batch,) the position of a window's first column; a sentence's is 1

    def select(self, rows: Tensor) -> Attended:
        """The given sentences."""
        return Attended(*(value.index_select(0, rows) for value in (self.annotations, self.keys, self.length)))

    def position(self) -> Tensor:
        """The position of each column; (1 or batch, source)."""
        column = positions(self.annotations.shape[1], self.length).unsqueeze(0)
        return column if self.first is None else self.first.unsqueeze(1) + column - 1

    def inside(self) -> Tensor:
        """True at real positions; (batch, source)."""
        return self.position() <= self.length.unsqueeze(1)

    def around(self, centre: Tensor, half_width: int) -> Attended:
        """Only the positions within `half_width` of each (whole) centre, and some more at the ends of a sentence.

        centre: (batch, centres); returns batch x centres rows of min(2 half_width + 1, source) positions.
        """
        (batch, source), centres = self.annotations.shape[:2], centre.shape[1]
        size = min(2 * half_width + 1, source)
        first = (centre.long() - half_width).clamp(1, source - size + 1)  # (batch, centres)
        row = torch.arange(batch, device=centre.device).unsqueeze(1) * source + first - 1  # of all rows' positions
        index = row.unsqueeze(2) + torch.arange(size, device=centre.device)  # (batch, centres, size)
        annotations, keys = (
            value.flatten(0, 1).index_select(0, index.flatten()).view(-1, size, value.shape[2])
            for value in (self.annotations, self.keys)
        )  # (batch x centres, size, hidden)
        return Attended(annotations, keys, self.length.repeat_interleave(centres), first.flatten())

    def spread(self, weights: Tensor, source: int) -> Tensor:
        """A window's weights as those of a whole source, 0 outside; (batch, queries, source)."""
        if self.first is None:
            return weights
        index = (self.position() - 1).unsqueeze(1).expand_as(weights)
        return weights.new_zeros(*weights.shape[:2], source).scatter(2, index, weights)


def positions(source: int, like: Tensor) -> Tensor:
    """1 .. source, on the device of `like`."""
    return torch.arange(1, source + 1, device=like.device)


# ---------------------------------------------------------------- scores (eq. 8 and its neighbours)


class Dot(nn.Module):
    """score(h_t, hbar_s) = h_t . hbar_s"""

    product = True  # cheap for many queries of a sentence at once: one product reads its keys once for all of them

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

    product = False  # a hidden layer for each query and position

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

    product = True

    def __init__(self, hidden: int, longest: int, slots: bool, reverse: bool) -> None:
        super().__init__()
        self.project = nn.Linear(hidden, longest, bias=False)  # W_a
        self.longest, self.slots = longest, slots
        self.right_aligned = slots and not reverse  # the slots count from the end of the order in which words are read

    def keys(self, annotations: Tensor) -> Tensor:
        """The positions themselves; (batch, source, 1)."""
        return positions(annotations.shape[1], annotations).expand(annotations.shape[:2]).unsqueeze(2)

    def forward(self, query: Tensor, keys: Tensor, length: Tensor) -> Tensor:
        scores = self.project(query)  # (batch, queries, longest)
        slot = keys.squeeze(2) - 1  # (batch, source)
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

    def centre(self, query: Tensor, length: Tensor, time: Tensor) -> None:
        """There is none: all positions."""

    def forward(self, scores: Tensor, source: Attended, centre: None) -> Tensor:
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

    def centre(self, query: Tensor, length: Tensor, time: Tensor) -> Tensor:
        """p_t of each time, the same for all queries of one time; (batch, times)."""
        return torch.minimum(time.unsqueeze(0), length.unsqueeze(1))

    def forward(self, scores: Tensor, source: Attended, centre: Tensor) -> Tensor:
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

    def centre(self, query: Tensor, length: Tensor, time: Tensor) -> Tensor:
        """p_t, real-valued; (batch, queries)."""
        squashed = torch.tanh(self.project(query)).to(self.weigh.weight.dtype)
        with torch.autocast(query.device.type, enabled=False):  # of 8 bits, a centre beyond 256 would miss its word
            share = torch.sigmoid(self.weigh(squashed)).squeeze(2)  # (batch, queries)
        centre = length.unsqueeze(1) * share
        return centre + 1 if self.readings.centre == "plus_one" else centre

    def forward(self, scores: Tensor, source: Attended, centre: Tensor) -> Tensor:
        outside = ~window(centre.detach().floor(), source, self.half_width)  # (batch, queries, source)
        exponent = self.exponent(centre, source.position())
        if self.readings.gaussian == "before_softmax":
            return torch.softmax((scores * exponent.exp()).masked_fill(outside, -torch.inf), 2)
        weights = torch.softmax(scores.masked_fill(outside, -torch.inf), 2) * exponent.exp()
        if self.readings.gaussian == "renormalised":
            return weights / weights.sum(2, keepdim=True)
        return weights

    def exponent(self, centre: Tensor, position: Tensor) -> Tensor:
        """-(s - p_t)^2 / (2 sigma^2) with sigma = D / 2; (batch, queries, source)."""
        if self.readings.gaussian_gradient == "half":
            centre = (centre + centre.detach()) / 2
        distance = position.unsqueeze(1) - centre.unsqueeze(2)
        sigma = self.half_width / 2
        return -distance.square() / (2 * sigma**2)


def window(centre: Tensor, source: Attended, half_width: int) -> Tensor:
    """True at the sentence's positions within `half_width` of the (whole) centre; (batch, queries, source)."""
    distance = source.position().unsqueeze(1) - centre.unsqueeze(2)  # (batch, queries, source)
    near = distance.abs() <= half_width
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

    def look(self, query: Tensor, source: Attended, time: Tensor) -> tuple[Attended, Tensor]:
        """What is looked at, a row a sentence or (where that pays) a row a window, and the weights.

        Returns weights (rows, queries of a row, positions); otherwise as in `forward`.
        """
        centre = self.scope.centre(query, source.length, time)  # (batch, centres) p_t
        if centre is not None and self.gathers(source.annotations.shape[1], centre.shape[1]):
            source = source.around(centre.detach().floor(), self.scope.half_width)
            query, centre = query.reshape(len(source.length), -1, query.shape[2]), centre.reshape(-1, 1)
        return source, self.scope(self.score(query, source.keys, source.length), source, centre)

    def gathers(self, source: int, centres: int) -> bool:
        """Whether local attention takes its windows, so many a sentence, out of the source or hides what is outside.

        Up to here hiding is cheaper (benchmarks/README.md, Length): a product over all of the source serves every query
        of a sentence, an additive score pays for each.
        """
        if isinstance(self.scope, Global):
            return False
        windows = 3 + centres if self.score.product else 2
        return source > windows * (2 * self.scope.half_width + 1)

    def weights(self, query: Tensor, source: Attended, time: Tensor) -> Tensor:
        """a_t over the whole source, as `forward` gives it."""
        seen, weights = self.look(query, source, time)
        return seen.spread(weights, source.annotations.shape[1]).view(*query.shape[:2], -1)

    def forward(self, query: Tensor, source: Attended, time: Tensor) -> tuple[Tensor, Tensor]:
        """c_t = sum_s a_t(s) hbar_s, and a_t.

        query: (batch, queries, hidden) h_t; time: (queries,) t, or (1,) if all are of one; 1-based.
        Returns (batch, queries, hidden) and (batch, queries, source).
        """
        seen, weights = self.look(query, source, time)
        context = (weights @ seen.annotations).view(*query.shape[:2], -1)
        return context, seen.spread(weights, source.annotations.shape[1]).view(*query.shape[:2], -1)
