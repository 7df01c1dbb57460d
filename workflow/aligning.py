"""Statistical word alignment (sil-thot): models of both directions, and their links symmetrised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from sys import intern

from thot import alignment as thot

from nmt.files import iterate_lines
from nmt.vocab import split_words

Pair = tuple[list[str], list[str]]
Links = list[tuple[int, int]]  # (source, target), 0-based

ITERATIONS = 5  # of EM, each model, as GIZA++'s
SAMPLERS = 3  # of eflomal (Östling and Tiedemann 2016), averaged
SAMPLINGS = (
    2,
    2,
    8,
)  # of eflomal: passes as IBM 1, as HMM, and with fertilities; it asks for fewer on millions of pairs
PAIRS_A_CALL = 2_000
LONGEST = 200  # words; thot's own limit
WARM_UP = {  # which models are trained first, each from the last
    "ibm1": (thot.Ibm1AlignmentModel,),
    "ibm2": (thot.Ibm1AlignmentModel, thot.Ibm2AlignmentModel),
    "hmm": (thot.Ibm1AlignmentModel, thot.HmmAlignmentModel),
    "fast_align": (thot.FastAlignModel,),
    "eflomal": (thot.EflomalAlignmentModel,),
}


def read_pairs(source: Path, target: Path) -> Iterator[Pair]:
    """The sentence pairs of two tokenised texts, each different word held once; ValueError if one ends too early."""
    lines = zip(iterate_lines(source), iterate_lines(target), strict=True)
    try:
        for left, right in lines:
            yield [intern(word) for word in split_words(left)], [intern(word) for word in split_words(right)]
    except ValueError as error:
        if "zip()" not in str(error):
            raise
        raise ValueError(f"{source} and {target} have unequally many lines; prepare them together") from error


def train_direction(pairs: Iterable[Pair], aligner: str, seed: int) -> thot.AlignmentModel:
    """A model of the target given the source; the same pairs and seed give the same model on any number of threads."""
    model, iterations = None, ITERATIONS
    for kind in WARM_UP[aligner]:
        if model is None:
            model = kind()
            if isinstance(model, thot.EflomalAlignmentModel):
                model.seed, model.deterministic, model.num_samplers = seed, True, SAMPLERS
                model.auto_iterations = False
                model.set_iterations(*SAMPLINGS)
                iterations = sum(SAMPLINGS)
            for source, target in pairs:
                if source and target and max(len(source), len(target)) <= LONGEST:
                    model.add_sentence_pair(source, target)
        else:
            model = kind(model)
        model.start_training()
        for _ in range(iterations):
            model.train()
        model.end_training()
    return model


class WordAligner:
    """Both directions and the grow-diag-final-and of their links (Koehn et al. 2003)."""

    def __init__(self, pairs: Sequence[Pair], aligner: str = "eflomal", seed: int = 1) -> None:
        """Train on tokenised pairs; ValueError for an unknown aligner."""
        if aligner not in WARM_UP:
            raise ValueError(f"aligner: expected one of {', '.join(WARM_UP)}, found {aligner!r}")
        self._models = (
            train_direction(pairs, aligner, seed),
            train_direction(((target, source) for source, target in pairs), aligner, seed),
        )
        self._symmetric = thot.SymmetrizedAligner(*self._models)
        self._symmetric.heuristic = thot.SymmetrizationHeuristic.GROW_DIAG_FINAL_AND

    def align(self, pairs: Sequence[Pair]) -> Iterator[Links]:
        """The links of each pair, seen in training or not; an empty side has none."""
        for start in range(0, len(pairs), PAIRS_A_CALL):
            some = pairs[start : start + PAIRS_A_CALL]
            whole = [pair for pair in some if pair[0] and pair[1]]
            matrices = iter(self._symmetric.get_best_alignments(*map(list, zip(*whole, strict=True))) if whole else [])
            for source, target in some:
                matrix = next(matrices)[1].to_numpy() if source and target else None  # (source, target)
                yield [] if matrix is None else [(int(i), int(j)) for i, j in zip(*matrix.nonzero(), strict=True)]


def count_links(pairs: Iterable[Pair], links: Iterable[Links]) -> dict[str, Counter[str]]:
    """How often each source word is linked to each target word."""
    counts: dict[str, Counter[str]] = {}
    for (source, target), pair_links in zip(pairs, links, strict=True):
        for i, j in pair_links:
            counts.setdefault(source[i], Counter())[target[j]] += 1
    return counts


def best_translations(counts: dict[str, Counter[str]], minimum: int) -> list[tuple[str, str, int]]:
    """Each source word's most frequent translation with at least `minimum` links; ties, and the list, by text."""
    best = []
    for source in sorted(counts):
        target, count = min(counts[source].items(), key=lambda item: (-item[1], item[0]))
        if count >= minimum:
            best.append((source, target, count))
    return best
