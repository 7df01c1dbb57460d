"""The sets of the miniature corpus, and what can be counted of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from workflow.miniature.grammar import Grammar
from workflow.miniature.lexicon import Dice, Lexicon
from workflow.miniature.phrases import SentencePair

SHORTEST, LONGEST = 3, 50  # words, punctuation included
SETS = ("test", "test2", "dev", "gold", "train")  # drawn in this order: more training pairs change no other set
ATTEMPTS = 100  # a pair, before a set is called too large for the grammar
LENGTH_BINS = ((3, 8), (9, 12), (13, 17), (18, 25), (26, 35), (36, 50))
SPECIAL_WORDS = 3  # of a vocabulary


def draw_sets(seed: int, sizes: Mapping[str, int]) -> dict[str, list[SentencePair]]:
    """Pairs of 3 to 50 words a side for each set; no English sentence occurs twice, in a set or across sets.

    Raises ValueError on a name outside SETS, a negative size, or a size for which the grammar has too few sentences.
    """
    for name, size in sizes.items():
        if name not in SETS or size < 0:
            raise ValueError(f"set {name!r}: found {size} pairs, expected 0 or more for one of {', '.join(SETS)}")
    lexicon, seen = Lexicon(), set()
    sets = {}
    for name in SETS:
        grammar = Grammar(lexicon, Dice(f"miniature {seed} {name}"))
        sets[name] = [new_pair(grammar, seen, name) for _ in range(sizes.get(name, 0))]
    return sets


def new_pair(grammar: Grammar, seen: set[tuple[str, ...]], name: str) -> SentencePair:
    """The next pair of the right length whose source is not in `seen`, which then has it."""
    for _ in range(ATTEMPTS):
        pair = grammar.sentence()
        fits = SHORTEST <= len(pair.source) <= LONGEST and SHORTEST <= len(pair.target) <= LONGEST
        if fits and pair.source not in seen:
            seen.add(pair.source)
            return pair
    raise ValueError(f"set {name}: found no new sentence in {ATTEMPTS} attempts; ask for fewer pairs")


def talp_line(pair: SentencePair, turned: bool = False) -> str:
    """Links counted from 1, `i-j` sure and `ipj` possible: i in the English sentence, with `turned` in the German."""
    links = [(*link, "-") for link in pair.sure] + [(*link, "p") for link in pair.possible]
    sides = sorted((j, i, mark) if turned else (i, j, mark) for i, j, mark in links)
    return " ".join(f"{i + 1}{mark}{j + 1}" for i, j, mark in sides)


def is_monotone(pair: SentencePair) -> bool:
    """Whether no two sure links cross."""
    return all(a[1] <= b[1] for a, b in zip(pair.sure, pair.sure[1:], strict=False) if a[0] < b[0])


def unknown_share(train: Sequence[Sequence[str]], test: Sequence[Sequence[str]], size: int) -> float:
    """Share of the test words outside the `size` most frequent training words (ties by text, specials within size)."""
    counts = Counter(word for words in train for word in words)
    known = set(sorted(counts, key=lambda word: (-counts[word], word))[: size - SPECIAL_WORDS])
    words = [word for sentence in test for word in sentence]
    return sum(word not in known for word in words) / max(1, len(words))


def statistics(sets: Mapping[str, Sequence[SentencePair]], vocabulary: tuple[int, int]) -> dict:
    """Counts for each set: sizes, mean lengths (words), types, and shares of unknown words and non-monotone pairs."""
    training = sets["train"]
    described = {}
    for name, pairs in sets.items():
        if not pairs:
            continue
        english, german = [pair.source for pair in pairs], [pair.target for pair in pairs]
        described[name] = {
            "pairs": len(pairs),
            "mean_length": [round(sum(map(len, side)) / len(pairs), 2) for side in (english, german)],
            "types": [len({word for words in side for word in words}) for side in (english, german)],
            "not_monotone": round(sum(not is_monotone(pair) for pair in pairs) / len(pairs), 3),
            "unknown": [
                round(unknown_share([pair.source for pair in training], english, vocabulary[0]), 4),
                round(unknown_share([pair.target for pair in training], german, vocabulary[1]), 4),
            ],
            "source_lengths": {f"{a}-{b}": sum(a <= len(words) <= b for words in english) for a, b in LENGTH_BINS},
            "over_25_words": round(sum(len(words) > 25 for words in english) / len(pairs), 3),
        }
    return described
