"""Using trained models from Python: `load`, then `translate`, `align`, `score`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from nmt.config import from_mapping
from nmt.ensemble import Ensemble
from nmt.models import Translator, load_ensemble, load_model
from nmt.search import Decoding, Hypothesis, Progress, force, translate_best
from nmt.unk import STEPS, aligned_source, load_dictionary, replace_unknown
from nmt.vocab import split_words

DICTIONARY = "dictionary.tsv"  # in a model folder


@dataclass(frozen=True)
class Translation:
    """One translation of one sentence."""

    source: list[str]
    tokens: list[str]  # as the model generated them, `<unk>` among them
    replaced: list[str] | None  # with each `<unk>` replaced; None if that was not asked for
    log_probability: float  # natural logarithm, that of `</s>` included
    alignments: dict[str, list[int]] | None  # 0-based source position of each token, under each rule of footnote 14
    attention: np.ndarray | None  # (tokens + 1, source words [+ 1 for `</s>`]) row i: the step that predicts token i
    step: str  # the rule that `alignment` and replacement follow

    @property
    def words(self) -> list[str]:
        """The tokens to show: those with `<unk>` replaced, if it was."""
        return self.tokens if self.replaced is None else self.replaced

    @property
    def text(self) -> str:
        """The words, joined by spaces."""
        return " ".join(self.words)

    @property
    def alignment(self) -> list[int] | None:
        """The source position of each token; None without attention or source words."""
        return self.alignments and self.alignments[self.step]

    @property
    def links(self) -> list[tuple[int, int]]:
        """The same as (source, target) positions, 0-based; none without attention."""
        return [(source, target) for target, source in enumerate(self.alignment or [])]


@dataclass(frozen=True)
class Score:
    """How likely a model finds a translation."""

    log_probability: float  # natural logarithm, that of `</s>` included
    words: int  # target words, `</s>` included

    @property
    def perplexity(self) -> float:
        """exp of the negative log-likelihood a word; infinite where it overflows."""
        mean = -self.log_probability / self.words
        return math.exp(mean) if mean < 700 else math.inf


class Model:
    """A trained model, or an ensemble of several, ready for use. Lines are tokenised: words between spaces."""

    def __init__(self, translator: Translator, dictionary: dict[str, str] | None, device: str) -> None:
        self.translator, self.dictionary, self.device = translator, dictionary, device
        self.decoding = from_mapping(Decoding, translator.system.get("decoding", {}), "decoding")

    @property
    def name(self) -> str:
        """The system's name; those of an ensemble's members joined by " + "."""
        system = self.translator.system
        return " + ".join(system.get("members", [system.get("name", "model")]))

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language; ValueError if the model does not say."""
        direction = self.translator.system.get("direction", "")
        source, dash, target = direction.partition("-")
        if not dash:
            raise ValueError(f"{self.name}: config.json has direction {direction!r}, expected one like en-de")
        return source, target

    @property
    def attends(self) -> bool:
        """Whether it has attention: without, there is no alignment."""
        model = self.translator.model
        members = model.models if isinstance(model, Ensemble) else [model]
        return any(member.config.attention is not None for member in members)

    def translate(self, lines: Iterable[str], **options: object) -> list[Translation]:
        """The best translation of each line, in their order; options and errors as in `translate_best`."""
        return [translations[0] for translations in self.translate_best(lines, 1, **options)]

    def translate_best(
        self,
        lines: Iterable[str],
        count: int,
        *,
        beam: int | None = None,
        replace_unknown: bool | None = None,
        decoding: Decoding | None = None,
        progress: Progress | None = None,
    ) -> list[list[Translation]]:
        """The `count` best translations of each line, best first; an empty line has the empty translation.

        beam: hypotheses kept, instead of the model's own number; replace_unknown: replace each `<unk>` by the
        dictionary's translation of its source word, else by that word (None: if the model has a dictionary);
        decoding: everything about the search, instead of the model's own. Raises ValueError for a value out of range,
        and for replacement without attention.
        """
        words = [split_words(line) for line in _lines(lines)]
        settings = replace(decoding or self.decoding, best=count)
        settings = settings if beam is None else replace(settings, beam=beam)
        if replace_unknown is None:
            replace_unknown = self.dictionary is not None and self.attends
        if replace_unknown:
            self._require_attention("<unk> can be replaced only through it")
        sources = [self.translator.source.encode(sentence) for sentence in words]
        found = translate_best(self.translator.model, sources, settings, self.device, progress)
        return [
            [self._translation(sentence, hypothesis, replace_unknown, settings.alignment_step) for hypothesis in best]
            for sentence, best in zip(words, found, strict=True)
        ]

    def read(
        self, sources: Iterable[str], targets: Iterable[str], progress: Progress | None = None
    ) -> list[Hypothesis | None]:
        """Forced decoding of given translations; None where a side has no words. ValueError for unequal numbers."""
        sides = (self.translator.source, _lines(sources)), (self.translator.target, _lines(targets))
        source, target = ([vocabulary.encode(split_words(line)) for line in lines] for vocabulary, lines in sides)
        if len(source) != len(target):
            raise ValueError(f"found {len(source)} source and {len(target)} target lines, expected equally many")
        kept = [i for i, pair in enumerate(zip(source, target, strict=True)) if len(pair[0]) and len(pair[1])]
        pairs = [source[i] for i in kept], [target[i] for i in kept]
        read = dict(zip(kept, force(self.translator.model, *pairs, self.decoding, self.device, progress), strict=True))
        if progress is not None and len(kept) < len(source):
            progress(len(source) - len(kept))
        return [read.get(i) for i in range(len(source))]

    def align(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        *,
        step: str | None = None,
        progress: Progress | None = None,
    ) -> list[list[tuple[int, int]]]:
        """Word links (source, target) of given translations, 0-based: one for each target word.

        step: `predicting` or `input` (footnote 14), instead of the model's own. A pair with an empty side has none.
        Raises ValueError without attention and for unequal numbers of lines.
        """
        self._require_attention("words are aligned by it")
        sources = _lines(sources)
        step = step or self.decoding.alignment_step
        return [
            []
            if read is None
            else [(s, t) for t, s in enumerate(aligned_source(read.attention, len(split_words(line)), step))]
            for line, read in zip(sources, self.read(sources, targets, progress), strict=True)
        ]

    def score(
        self, sources: Iterable[str], targets: Iterable[str], progress: Progress | None = None
    ) -> list[Score | None]:
        """How likely each given translation is; None where a side has no words. ValueError for unequal numbers."""
        return [
            None if read is None else Score(read.log_probability, len(read.words) + 1)
            for read in self.read(sources, targets, progress)
        ]

    def _translation(self, source: list[str], hypothesis: Hypothesis, replaces: bool, step: str) -> Translation:
        tokens = self.translator.target.decode(hypothesis.words)
        alignments = both_alignments(hypothesis, len(source))
        replaced = None
        if replaces:
            links = alignments[step] if alignments else []
            replaced = replace_unknown(tokens, links, source, self.dictionary or {})[0]
        return Translation(source, tokens, replaced, hypothesis.log_probability, alignments, hypothesis.attention, step)

    def _require_attention(self, why: str) -> None:
        if not self.attends:
            raise ValueError(f"{self.name}: the model has no attention, and {why}; choose a model with attention")


def load(
    folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    device: str = "cpu",
    average: str = "probabilities",
    dictionary: str | os.PathLike[str] | None = None,
) -> Model:
    """A model folder as a model, or several as an ensemble.

    device: `cpu`, `cuda`, `cuda:1`, ... or `auto`, a GPU if there is one; average: what an ensemble averages,
    `probabilities` or `logits`; dictionary: for unknown words, instead of the folder's own `dictionary.tsv`.
    Raises ValueError naming the folder or file that is wrong.
    """
    paths = [Path(folders)] if isinstance(folders, str | os.PathLike) else [Path(folder) for folder in folders]
    if not paths:
        raise ValueError("found no model folder, expected at least one")
    chosen = choose_device(device)
    translator = load_model(paths[0], chosen) if len(paths) == 1 else load_ensemble(paths, average, chosen)
    own = next((path / DICTIONARY for path in paths if (path / DICTIONARY).is_file()), None)
    entries = dictionary or own
    return Model(translator, load_dictionary(entries) if entries else None, chosen)


def choose_device(name: str) -> str:
    """`auto` is a GPU if there is one; ValueError for a GPU that is not there."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device {name}: {reason}; use cpu, or auto for a GPU if there is one") from error
    return name


def both_alignments(hypothesis: Hypothesis, source_length: int) -> dict[str, list[int]] | None:
    """The source word aligned with each output word, under both rules of footnote 14."""
    if hypothesis.attention is None or source_length == 0:
        return None
    return {step: aligned_source(hypothesis.attention, source_length, step) for step in STEPS}


def _lines(lines: Iterable[str]) -> list[str]:
    if isinstance(lines, str):
        raise ValueError(f"found the text {lines[:40]!r}, expected a list of lines; put it into brackets")
    return list(lines)
