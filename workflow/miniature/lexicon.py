"""The lexicon: words, what they select, and how often each is drawn in a context."""

from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from random import Random

import yaml

from workflow.miniature import morphology

SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C where PyYAML was built with it: ten times as fast
LEXICON_SEED = "luong2015"  # orders of preference and invented names: the language, which no corpus seed changes
LEXICON_FILE = Path(__file__).with_name("lexicon.yaml")
TOPICS = ("home", "school", "state", "law", "work", "health", "war", "art", "travel", "land")
TOPIC_FACTOR = 6  # how much likelier a noun is in a sentence about its topic
ONSETS = (*"bdfghklmnprstvwz", "br", "dr", "gr", "kr", "pl", "st", "tr")
VOWELS = (*"aeiou", "ei", "au", "ie")
SURNAMES, TOWNS = 2500, 500


class Dice:
    """Random choices from Random.random() alone, which Python promises never to change for a seed."""

    def __init__(self, seed: str):
        self.random = Random(seed).random

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def number(self, first: int, last: int) -> int:
        """first..last, both included."""
        return first + int(self.random() * (last - first + 1))

    def pick(self, items: Sequence):
        return items[int(self.random() * len(items))]

    def weighted(self, items: Sequence, cumulative: Sequence[float]):
        return items[bisect(cumulative, self.random() * cumulative[-1])]

    def shuffled(self, items: Sequence) -> list:
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.number(0, i)
            items[i], items[j] = items[j], items[i]
        return items


@dataclass(frozen=True, eq=False)
class GermanNoun:
    singular: str
    plural: str
    gender: str  # m, f, n
    weak: bool = False

    def form(self, case: str, plural: bool) -> str:
        return morphology.german_noun(self.singular, self.plural, self.gender, self.weak, case, plural)


@dataclass(frozen=True, eq=False)
class Noun:
    english: tuple[str, ...]  # a compound has two words
    english_plural: str  # of the last word
    german: tuple[GermanNoun, ...]  # the usual one first
    link: str | None
    classes: tuple[str, ...]
    topics: tuple[str, ...]

    @property
    def key(self) -> str:
        return " ".join(self.english)


@dataclass(frozen=True, eq=False)
class GermanVerb:
    prefix: str
    infinitive: str  # without the prefix, as all forms
    present: str
    participle: str
    preterite: str | None = None

    @property
    def present_plural(self) -> str:
        return self.infinitive

    @property
    def preterite_plural(self) -> str:
        return self.preterite + ("n" if self.preterite.endswith("e") else "en")


@dataclass(frozen=True, eq=False)
class Verb:
    base: str
    third: str
    past: str
    participle: str
    german: tuple[GermanVerb, ...]
    frame: str  # bare, object, goal, give, that, infinitive
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    english_preposition: str | None
    german_preposition: str | None
    case: str
    takes_sein: bool

    @property
    def key(self) -> str:
        return f"{self.base} {self.german[0].prefix}{self.german[0].infinitive}"


@dataclass(frozen=True, eq=False)
class Adjective:
    english: str
    german: tuple[tuple[str, str], ...]  # predicative form, stem; the usual one first
    classes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Preposition:
    english: tuple[str, ...]
    german: str
    case: str
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Expression:
    """Words with a fixed translation: adverbs, conjunctions, numerals."""

    english: tuple[str, ...]
    german: tuple[tuple[str, ...], ...]  # the usual one first

    @property
    def key(self) -> str:
        return " ".join(self.english)


@dataclass
class Lexicon:
    """All words; `draw` picks one with the preferences of a context. Raises ValueError on an entry it cannot read."""

    path: Path = LEXICON_FILE
    _tables: dict = field(default_factory=dict)
    _selections: dict = field(default_factory=dict)

    def __post_init__(self):
        entries = yaml.load(self.path.read_text(encoding="utf-8"), Loader=SafeLoader)
        self.nouns = [read_noun(entry) for entry in entries["nouns"]]
        self.verbs = [read_verb(entry) for entry in entries["verbs"]]
        self.adjectives = [read_adjective(entry) for entry in entries["adjectives"]]
        self.prepositions = [read_preposition(entry) for entry in entries["prepositions"]]
        self.subordinators = [read_expression(entry) for entry in entries["subordinators"]]
        self.frequency_adverbs = [read_expression(entry) for entry in entries["frequency_adverbs"]]
        self.adverbs = {tense: [read_expression(e) for e in group] for tense, group in entries["adverbs"].items()}
        self.modals = {tense: [read_expression(e) for e in group] for tense, group in entries["modals"].items()}
        self.numerals = [read_expression(entry) for entry in entries["numerals"]]
        self.months = [read_expression(entry) for entry in entries["months"]]
        self.countries = [read_expression(entry) for entry in entries["countries"]]
        self.titles = {gender: [read_expression(e) for e in group] for gender, group in entries["titles"].items()}
        self.first_names = entries["first_names"]

    @cached_property
    def compounds(self) -> list[Noun]:
        """Nouns of two nouns at home in the same topic; every other possible one exists."""
        heads = [noun for noun in self.nouns if not fits(noun.classes, ("power", "group")) and noun.topics[0] != "home"]
        pairs = [(a, b) for a in self.nouns for b in heads if a.link and a is not b and fits(a.topics, b.topics)]
        return [compound(a, b) for a, b in Dice(f"{LEXICON_SEED} compounds").shuffled(pairs)[: len(pairs) // 2]]

    @cached_property
    def surnames(self) -> list[str]:
        return invented_names(
            Dice(f"{LEXICON_SEED} surnames"), ("n", "r", "sch", "ck", "tt", "ng", "m", "ler"), SURNAMES
        )

    @cached_property
    def towns(self) -> list[tuple[str, str]]:
        """English and German name; every third town has a German name of its own, the others keep theirs."""
        names = invented_names(Dice(f"{LEXICON_SEED} towns"), ("ford", "ton", "vik", "lund", "mar"), TOWNS)
        exonyms = invented_names(Dice(f"{LEXICON_SEED} exonyms"), ("burg", "dorf", "stadt", "hafen"), TOWNS)
        return [(name, exonyms[i] if i % 3 == 0 else name) for i, name in enumerate(names)]

    def nouns_of(self, classes: Sequence[str]) -> list[Noun]:
        return self._select(("nouns", classes), self.nouns, lambda noun: fits(noun.classes, classes))

    def compounds_of(self, classes: Sequence[str]) -> list[Noun]:
        return self._select(("compounds", classes), self.compounds, lambda noun: fits(noun.classes, classes))

    def adjectives_for(self, classes: Sequence[str]) -> list[Adjective]:
        return self._select(("adjectives", classes), self.adjectives, lambda word: fits(word.classes, classes))

    def verbs_of(self, classes: Sequence[str], frames: Sequence[str]) -> list[Verb]:
        """Verbs that a subject of the classes may have."""
        key = ("verbs of", classes, frames)
        return self._select(key, self.verbs, lambda verb: verb.frame in frames and fits(verb.subjects, classes))

    def verbs_on(self, classes: Sequence[str]) -> list[Verb]:
        """Verbs that may have a bare object of the classes, accusative or dative."""
        return self._select(
            ("verbs on", classes),
            self.verbs,
            lambda verb: verb.frame == "object" and verb.english_preposition is None and fits(verb.objects, classes),
        )

    def _select(self, key: tuple, items: Sequence, condition: Callable[..., bool]) -> list:
        if key not in self._selections:
            self._selections[key] = [item for item in items if condition(item)]
        return self._selections[key]

    def draw(self, dice: Dice, context: str, items: Sequence, topic: str | None = None, shift: float = 2.0):
        """One of `items`, the r-th in the context's own order of preference with weight 1 / (r + shift).

        The order belongs to `context`, so that each verb has its usual objects and each noun its usual adjectives;
        a context must always come with the same items.
        """
        key = (context, topic)
        if key not in self._tables:
            order = Dice(f"{LEXICON_SEED} {context}").shuffled(items)
            weights = [topic_factor(item, topic) / (rank + shift) for rank, item in enumerate(order)]
            self._tables[key] = (order, list(accumulate(weights)))
        return dice.weighted(*self._tables[key])


def topic_factor(item: object, topic: str | None) -> float:
    return TOPIC_FACTOR if topic in getattr(item, "topics", ()) else 1.0


def fits(classes: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(name in wanted for name in classes)


def compound(first: Noun, second: Noun) -> Noun:
    head = second.german[0]
    german = GermanNoun(first.link + head.singular.lower(), first.link + head.plural.lower(), head.gender, head.weak)
    return Noun(first.english + second.english, second.english_plural, (german,), None, second.classes, second.topics)


def invented_names(dice: Dice, endings: Sequence[str], count: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < count:
        syllables = [dice.pick(ONSETS) + dice.pick(VOWELS) for _ in range(2)]
        names["".join([*syllables, dice.pick(endings)]).capitalize()] = None
    return list(names)


def read_noun(entry: dict) -> Noun:
    english = entry["en"].split()
    german = tuple(read_german_noun(text) for text in (entry["de"], entry.get("or")) if text)
    plural = english[1] if len(english) == 2 else morphology.english_plural(english[0])
    classes, topics = tuple(entry["is"].split()), tuple(entry["topic"].split())
    return Noun((english[0],), plural, german, entry.get("link"), classes, topics)


def read_german_noun(text: str) -> GermanNoun:
    singular, plural, gender = text.split()
    return GermanNoun(singular, plural, "m" if gender == "w" else gender, weak=gender == "w")


def read_verb(entry: dict) -> Verb:
    base, *irregular = entry["en"].split()
    past, participle = irregular or [morphology.english_past(base)] * 2
    german = tuple(read_german_verb(text) for text in (entry["de"], entry.get("or")) if text)
    english_preposition, german_preposition, case = entry.get("by", f"- - {entry.get('case', 'acc')}").split()
    return Verb(
        base=base,
        third=morphology.english_third_person(base),
        past=past,
        participle=participle,
        german=german,
        frame=entry.get("frame", "object"),
        subjects=tuple(entry["does"].split()),
        objects=tuple(entry.get("to", "").split()),
        english_preposition=None if english_preposition == "-" else english_preposition,
        german_preposition=None if german_preposition == "-" else german_preposition,
        case=case,
        takes_sein=entry.get("sein", False),
    )


def read_german_verb(text: str) -> GermanVerb:
    infinitive, present, participle, *preterite = text.split()
    prefix, _, stem = infinitive.rpartition("+")
    return GermanVerb(prefix, stem, present, participle, *preterite)


def read_adjective(entry: dict) -> Adjective:
    german = tuple((text.split()[0], text.split()[-1]) for text in (entry["de"], entry.get("or")) if text)
    return Adjective(entry["en"], german, tuple(entry["is"].split()))


def read_preposition(entry: dict) -> Preposition:
    return Preposition(tuple(entry["en"].split()), entry["de"], entry["case"], tuple(entry["is"].split()))


def read_expression(text: str) -> Expression:
    english, *german = (tuple(part.split()) for part in text.split(" / "))
    return Expression(english, tuple(german))
