"""Beam search, greedy search and forced decoding of any `TranslationModel`, batched over sentences and hypotheses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmt.batching import make_batch, pad
from nmt.interface import TranslationModel
from nmt.vocab import BOS, EOS, UNK

STEPS_A_CHECK = {"cpu": 1, "cuda": 4}  # between two looks at which sentences are done: each makes a GPU wait
SHORTEST_COUNTED = 16  # shorter sentences count as this long in a batch: the output layer is their cost

Progress = Callable[[int], None]  # called with the number of sentences done since the last call


@dataclass(frozen=True)
class Decoding:
    """How to search (Luong et al. 2015, section 4, and the authors' code).

    beam: hypotheses kept a sentence; 1 is greedy search.
    shortest, longest: bounds of the output's words, as multiples of source words + 1 (`</s>` counted).
    maximum_finished: a sentence stops when it has this many finished hypotheses.
    length_normalisation: a hypothesis ranks by log-probability / (words + 1) ** this; 0 is the paper's raw score.
    alignment_step: which step's attention aligns an output word, `predicting` or `input` (see `unk.aligned_source`).
    forbid_unknown: never generate `<unk>`.
    best: hypotheses returned a sentence, best first.
    token_budget: at most this many beam x source positions in a batch (or one sentence).
    precision: what products read, `float32` or `bfloat16`; probabilities are float32 in any case.
    """

    beam: int = 12
    shortest: float = 0.5
    longest: float = 1.5
    maximum_finished: int = 100
    length_normalisation: float = 0.0
    alignment_step: str = "predicting"
    forbid_unknown: bool = False
    best: int = 1
    token_budget: int = 32768
    precision: str = "float32"

    def __post_init__(self) -> None:
        for field in ("beam", "maximum_finished", "best", "token_budget"):
            if getattr(self, field) < 1:
                raise ValueError(f"decoding: {field} is {getattr(self, field)}, expected at least 1")
        if not 0 <= self.shortest <= self.longest:
            raise ValueError(f"decoding: expected 0 <= shortest <= longest, found {self.shortest} and {self.longest}")
        if self.alignment_step not in ("predicting", "input"):
            raise ValueError(f"decoding: alignment_step is {self.alignment_step!r}, expected 'predicting' or 'input'")
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(f"decoding: precision is {self.precision!r}, expected 'float32' or 'bfloat16'")

    def word_limits(self, source_length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Fewest and most output words, `</s>` not counted; two (batch,) int64."""
        shortest = np.ceil(np.round(self.shortest * (source_length + 1), 6)).astype(np.int64)
        longest = np.floor(np.round(self.longest * (source_length + 1), 6)).astype(np.int64)
        return shortest, np.maximum(shortest, longest)


@dataclass(frozen=True)
class Hypothesis:
    """One translation of one sentence."""

    words: list[int]  # without `</s>`
    log_probability: float  # natural logarithm, that of `</s>` included
    attention: np.ndarray | None  # (words + 1, source words [+ 1 for `</s>`]) row i: the step that predicts word i


class _History:
    """What a search has done, in tensors that are read back once, at its end.

    A hypothesis is a slot of its sentence's beam. `parent[t]` and `word[t]` say how the slots after step t came
    about; `finished[t]` holds the log-probability of the slots before step t that took `</s>` at step t (else -inf).
    Attention stays where the step left it: slots before step t.
    """

    def __init__(self, steps: int, sentences: int, beam: int, device: torch.device) -> None:
        self.parent = torch.zeros((steps, sentences, beam), dtype=torch.int64, device=device)
        self.word = torch.full((steps, sentences, beam), EOS, dtype=torch.int64, device=device)
        self.finished = torch.full((steps, sentences, beam), -torch.inf, device=device)
        self.attention: Tensor | None = None  # (steps, sentences, beam, columns)

    def add(
        self, t: int, rows: Tensor, parent: Tensor, word: Tensor, finished: Tensor, attention: Tensor | None
    ) -> None:
        """Keep step t of the sentences `rows` (active,); the others each (active, beam), attention with columns."""
        self.parent[t, rows] = parent
        self.word[t, rows] = word
        self.finished[t, rows] = finished.to(self.finished.dtype)
        if attention is not None:
            if self.attention is None:
                self.attention = attention.new_zeros((*self.parent.shape, attention.shape[-1]))
            self.attention[t, rows] = attention

    def best(self, count: int, length_normalisation: float) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probability, last step and slot of each sentence's best finished hypotheses; (sentences, count) each."""
        steps, sentences, beam = self.finished.shape
        length = torch.arange(1, steps + 1, device=self.finished.device)  # `</s>` counted
        rank = self.finished / (length**length_normalisation).view(-1, 1, 1)
        rank = rank.transpose(0, 1).reshape(sentences, steps * beam)
        index = rank.topk(min(count, steps * beam)).indices  # (sentences, count)
        score = self.finished.transpose(0, 1).reshape(sentences, steps * beam).gather(1, index)
        return score, index // beam, index % beam

    def trace(self, last: np.ndarray, slot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Follow the parents of hypotheses back from the slots they ended in.

        last, slot: (sentences, count); returns the words of each step and the slots before each step, both
        (steps, sentences, count), meaningless after a hypothesis's last step.
        """
        parent, word = self.parent.cpu().numpy(), self.word.cpu().numpy()
        sentence = np.arange(len(last))[:, None]
        words = np.full((len(parent), *last.shape), EOS)
        before = np.zeros_like(words)
        after = np.zeros_like(last)
        for t in reversed(range(len(parent))):
            words[t] = word[t, sentence, after]
            before[t] = after = np.where(t == last, slot, parent[t, sentence, after])
        return words, before


@contextmanager
def evaluating(model: TranslationModel, decoding: Decoding, device: torch.device) -> Iterator[None]:
    """Without gradients and dropout, in the precision asked for; the model's mode is put back afterwards."""
    training = model.training
    model.eval()
    try:
        lower = decoding.precision == "bfloat16"
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=lower):
            yield
    finally:
        model.train(training)


def beam_search(
    model: TranslationModel, source: Tensor, source_length: Tensor, decoding: Decoding
) -> list[list[Hypothesis]]:
    """The best finished hypotheses of each sentence, best first (at least one, at most `decoding.best`).

    At each step a sentence keeps its `beam` best unfinished hypotheses; one that takes `</s>` is finished if it
    outranks the last of them. At the longest length allowed, every hypothesis takes `</s>`. A sentence stops when no
    unfinished hypothesis can still enter its best, or at `maximum_finished`. Each sentence's result is that of
    searching it alone.

    source: (batch, source) int64, right-padded, no empty sentence; source_length: (batch,).
    Raises ValueError if a sentence has no hypothesis of finite log-probability.
    """
    with evaluating(model, decoding, source.device):
        history = _search(model, source, source_length, decoding)
        return _hypotheses(history, source.shape[1], source_length.cpu().numpy(), decoding)


def _search(model: TranslationModel, source: Tensor, source_length: Tensor, decoding: Decoding) -> _History:
    sentences, beam, device = len(source), decoding.beam, source.device
    limits = decoding.word_limits(source_length.cpu().numpy())
    steps = int(limits[1].max()) + 1
    shortest, longest = (torch.from_numpy(limit).to(device) for limit in limits)  # (active,)
    history = _History(steps, sentences, beam, device)

    active = torch.arange(sentences, device=device)  # the sentences still searched
    memory = model.encode(source, source_length)
    state = model.start(memory).select(active.repeat_interleave(beam))
    previous = torch.full((sentences * beam,), BOS, device=device)
    live = torch.full((sentences, beam), -torch.inf, device=device)  # log-probability, best first
    live[:, 0] = 0.0  # the empty hypothesis; the other slots are vacant
    best_finished = torch.full((sentences, decoding.best), -torch.inf, device=device)  # ranks, best first
    finished_count = torch.zeros(sentences, dtype=torch.int64, device=device)

    for t in range(steps):
        step = model.step(memory, state, previous)
        score, parent, word, end = _expand(step.log_probability, live, t < shortest, t >= longest, decoding)
        attention = None if step.attention is None else step.attention.unflatten(0, (-1, beam))
        history.add(t, active, parent, word, end, attention)

        rank = torch.cat([best_finished, end / (t + 1) ** decoding.length_normalisation], dim=1)
        best_finished = rank.topk(decoding.best).values
        finished_count = finished_count + (end > -torch.inf).sum(1)
        hope = score[:, 0] / (longest + 1) ** decoding.length_normalisation  # log-probabilities only fall
        done = (hope <= best_finished[:, -1]) | (finished_count >= decoding.maximum_finished)
        live = score.masked_fill(done.unsqueeze(1), -torch.inf)  # a vacant beam adds nothing and stays done

        first = torch.arange(0, len(active) * beam, beam, device=device)  # the first row of each sentence
        if (t + 1) % STEPS_A_CHECK.get(device.type, 1) == 0:
            keep = (~done).nonzero().squeeze(1)
            if len(keep) == 0:
                break
            if len(keep) < len(active):
                memory = memory.select(keep)
                shortest, longest, active = shortest[keep], longest[keep], active[keep]
                live, best_finished, finished_count = live[keep], best_finished[keep], finished_count[keep]
                parent, word, first = parent[keep], word[keep], first[keep]
        state = step.state.select((first.unsqueeze(1) + parent).flatten())
        previous = word.flatten()
    return history


def _expand(
    log_probability: Tensor, live: Tensor, too_short: Tensor, full: Tensor, decoding: Decoding
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The best unfinished continuations of each sentence, and the hypotheses that finish.

    log_probability: (active x beam, vocabulary); live: (active, beam); too_short, full: (active,) bool.
    Returns log-probability, parent slot and word of the continuations, and the log-probability of the slots that
    take `</s>` (-inf if they do not), each (active, beam).
    """
    beam = live.shape[1]
    forbidden = (BOS, EOS, UNK) if decoding.forbid_unknown else (BOS, EOS)
    end = live + log_probability[:, EOS].view_as(live)  # (active, beam)
    end = end.masked_fill(too_short.unsqueeze(1), -torch.inf)

    # No continuation outside a hypothesis's own best can be among the best of the sentence.
    candidates = min(beam + len(forbidden), log_probability.shape[1])
    value, word = log_probability.topk(candidates)  # (active x beam, candidates)
    for special in forbidden:
        value = value.masked_fill(word == special, -torch.inf)
    value = live.unsqueeze(2) + value.view(*live.shape, candidates)  # (active, beam, candidates)
    value = value.masked_fill(full.view(-1, 1, 1), -torch.inf).flatten(1)
    score, index = value.topk(beam)  # (active, beam)
    word = word.view_as(value).gather(1, index)
    return score, index // candidates, word, end.masked_fill(end < score[:, -1:], -torch.inf)


def _hypotheses(
    history: _History, source_size: int, source_length: np.ndarray, decoding: Decoding
) -> list[list[Hypothesis]]:
    score, last, slot = (
        tensor.cpu().numpy()
        for tensor in history.best(min(decoding.best, decoding.maximum_finished), decoding.length_normalisation)
    )  # (sentences, best)
    bad = np.flatnonzero(~np.isfinite(score[:, 0]))
    if len(bad):
        raise ValueError(
            f"beam search: sentence {bad[0] + 1} of the batch has no translation of finite log-probability; expected "
            "finite ones from the model, so see whether its parameters are finite (a diverged training?)"
        )
    words, before = history.trace(last, slot)  # (steps, sentences, best)
    attention = None
    if history.attention is not None:
        t, sentence = np.arange(len(before))[:, None, None], np.arange(len(last))[None, :, None]
        where = tuple(torch.from_numpy(index).to(history.attention.device) for index in (t, sentence, before))
        attention = history.attention[where].float().cpu().numpy()  # (steps, sentences, best, columns)

    results = []
    for i, length in enumerate(source_length):
        hypotheses = []
        for k in np.flatnonzero(np.isfinite(score[i])):
            count, weights = last[i, k], None
            if attention is not None:
                columns = length + attention.shape[-1] - source_size  # one more if the model attends to `</s>`
                weights = attention[: count + 1, i, k, :columns].copy()
            hypotheses.append(Hypothesis(words[:count, i, k].tolist(), float(score[i, k]), weights))
        results.append(hypotheses)
    return results


def translate(
    model: TranslationModel,
    sources: Sequence[np.ndarray],
    decoding: Decoding,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> list[Hypothesis]:
    """The best translation of each sentence, in the order given.

    An empty sentence has the empty translation (log-probability 0), and the model never sees it.
    sources: word indices of each sentence, without `</s>`. Errors as in `beam_search`.
    """
    return [hypotheses[0] for hypotheses in translate_best(model, sources, decoding, device, progress)]


def translate_best(
    model: TranslationModel,
    sources: Sequence[np.ndarray],
    decoding: Decoding,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> list[list[Hypothesis]]:
    """The `decoding.best` best translations of each sentence, best first; otherwise as `translate`."""
    results: dict[int, list[Hypothesis]] = {}
    lengths = [len(source) for source in sources]
    for indices in _batches(lengths, decoding):
        source, source_length = pad([sources[i] for i in indices])
        found = beam_search(model, source.to(device), source_length.to(device), decoding)
        results.update(zip(indices, found, strict=True))
        if progress is not None:
            progress(len(indices))
    attends = any(hypotheses[0].attention is not None for hypotheses in results.values())
    empty = Hypothesis([], 0.0, np.zeros((1, 0), np.float32) if attends else None)
    if progress is not None and len(results) < len(sources):
        progress(len(sources) - len(results))
    return [results.get(i, [empty]) for i in range(len(sources))]


def force(
    model: TranslationModel,
    sources: Sequence[np.ndarray],
    targets: Sequence[np.ndarray],
    decoding: Decoding,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> list[Hypothesis]:
    """Forced decoding: the log-probability (`</s>` included) and attention of given translations, in the order given.

    sources, targets: word indices, without `</s>`; an empty target is allowed. Of `decoding`, the batch size (beam,
    token_budget) and the precision are used. Raises ValueError for unequal numbers of sentences and an empty source.
    """
    if len(sources) != len(targets):
        raise ValueError(f"forced decoding: found {len(sources)} sources and {len(targets)} targets, expected equal")
    for i, source in enumerate(sources):
        if len(source) == 0:
            raise ValueError(f"forced decoding: source sentence {i + 1} is empty; leave such pairs out before")
    results: dict[int, Hypothesis] = {}
    lengths = [max(len(source), len(target) + 1) for source, target in zip(sources, targets, strict=True)]
    for indices in _batches(lengths, decoding):
        batch = make_batch([sources[i] for i in indices], [targets[i] for i in indices]).to(device)
        with evaluating(model, decoding, batch.source.device):
            forced = model.forward(batch)
        log_likelihood = forced.log_likelihood.cpu().double().sum(1).tolist()  # (batch,)
        attention = None if forced.attention is None else forced.attention.float().cpu().numpy()
        for row, i in enumerate(indices):
            weights = None
            if attention is not None:
                columns = len(sources[i]) + attention.shape[-1] - batch.source.shape[1]
                weights = attention[row, : len(targets[i]) + 1, :columns].copy()
            results[i] = Hypothesis([int(word) for word in targets[i]], log_likelihood[row], weights)
        if progress is not None:
            progress(len(indices))
    return [results[i] for i in range(len(sources))]


def _batches(lengths: Sequence[int], decoding: Decoding) -> Iterator[list[int]]:
    """Sentences of like length together, longest first, within the token budget; empty sentences in none."""
    order = sorted((i for i, length in enumerate(lengths) if length > 0), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        positions = decoding.beam * max(lengths[order[start]], SHORTEST_COUNTED)
        end = start + max(1, decoding.token_budget // positions)
        yield order[start:end]
        start = end
