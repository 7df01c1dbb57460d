"""Noun phrases, pronouns, names and prepositional phrases, and the memory of what a sentence has mentioned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from workflow.miniature import morphology
from workflow.miniature.lexicon import TOPICS, Adjective, Dice, Expression, GermanNoun, Lexicon, Noun, fits
from workflow.miniature.phrases import Phrase, Source, Target, contract, phrase

SYNONYM = 0.25  # probability that a sentence translates a word by its second German word, from then on always
NAME_CLASSES = ("person",)
ANIMATE = ("person", "animal", "group", "fighter")


@dataclass(eq=False)
class Entity:
    """Someone or something a sentence speaks of."""

    classes: tuple[str, ...]
    gender: str  # of the German words: m, f, n
    plural: bool
    pronoun: str  # he, she, it, they, we
    noun: Noun | None = None
    german: GermanNoun | None = None
    name: tuple[tuple[str, str, str], ...] = ()  # English, German nominative, German other cases
    qualities: list[Adjective] = field(default_factory=list)  # said of it already

    @property
    def agreement(self) -> str:
        """Column of the German tables: m, f, n or p."""
        return "p" if self.plural else self.gender

    @property
    def has_words(self) -> bool:
        """Whether it can be named again; a couple and a `he` out of nowhere cannot."""
        return self.noun is not None or bool(self.name)


@dataclass
class NounPhrase:
    words: Phrase
    entity: Entity
    determiner: str | None = None  # the German stem, `d` for der
    is_pronoun: bool = False
    negates: bool = False  # kein has taken up the `not` of the clause

    @property
    def is_indefinite(self) -> bool:
        return (self.determiner is None and not self.entity.name) or self.determiner in {"ein", "kein", "viel", "einig"}


@dataclass
class Discourse:
    """What the clauses of one sentence share: topic, tense, word order, chosen translations, and what was mentioned."""

    topic: str
    tense: str  # present, past or perfect
    time_first: bool
    choices: dict[str, int] = field(default_factory=dict)
    mentioned: list[Entity] = field(default_factory=list)
    referent: dict[str, Entity] = field(default_factory=dict)  # English pronoun -> the last it can stand for

    def mention(self, entity: Entity) -> None:
        self.mentioned.append(entity)
        self.referent[entity.pronoun] = entity


class Nominal:
    """The grammar of noun phrases. One instance writes one sentence at a time: `self.discourse`."""

    def __init__(self, lexicon: Lexicon, dice: Dice):
        self.lexicon, self.dice = lexicon, dice
        self.discourse = self.new_discourse()

    def new_discourse(self) -> Discourse:
        tense = self.dice.weighted(("present", "past", "perfect"), (0.4, 0.85, 1.0))
        return Discourse(self.dice.pick(TOPICS), tense, time_first=self.dice.chance(0.7))

    def translation(self, key: str, options: Sequence):
        """One of the German options for an English word: drawn once a sentence, then kept."""
        if len(options) == 1:
            return options[0]
        if key not in self.discourse.choices:
            self.discourse.choices[key] = int(self.dice.chance(SYNONYM))
        return options[self.discourse.choices[key]]

    def expression(self, entry: Expression) -> Phrase:
        return phrase(entry.english, self.translation(entry.key, entry.german))

    # ---- what to speak of

    def draw_noun(self, context: str, classes: Sequence[str]) -> Noun:
        """A noun of the classes, in the context's order of preference; sometimes a compound."""
        if self.dice.chance(0.05):
            fitting = self.lexicon.compounds_of(classes)
            if fitting:
                return self.lexicon.draw(self.dice, f"compound {context}", fitting, self.discourse.topic)
        return self.lexicon.draw(self.dice, context, self.lexicon.nouns_of(classes), self.discourse.topic)

    def noun_entity(self, noun: Noun, plural: bool) -> Entity:
        german = self.translation(noun.key, noun.german)
        person = "person" in noun.classes and german.gender != "n"
        pronoun = "they" if plural else {"m": "he", "f": "she"}[german.gender] if person else "it"
        return Entity(noun.classes, german.gender, plural, pronoun, noun, german)

    def name_entity(self) -> Entity:
        """A person by first name, title, surname or two of them; all but the title are copied."""
        gender = self.dice.pick("mf")
        kind = self.dice.weighted(("first", "first last", "title last", "last"), (0.2, 0.5, 0.75, 1.0))
        name = []
        if "first" in kind:
            first = self.lexicon.draw(self.dice, f"first name {gender}", self.lexicon.first_names[gender])
            name.append((first, first, first))
        if "title" in kind:
            title = self.lexicon.draw(self.dice, f"title {gender}", self.lexicon.titles[gender])
            name.append((title.english[0], title.german[0][0], title.german[0][-1]))
        if "last" in kind:
            last = self.lexicon.draw(self.dice, "surname", self.lexicon.surnames, shift=80)
            name.append((last, last, last))
        return Entity(NAME_CLASSES, gender, False, "he" if gender == "m" else "she", name=tuple(name))

    # ---- noun phrases

    def pronoun(self, entity: Entity, case: str) -> NounPhrase:
        english = entity.pronoun if case == "nom" else morphology.ENGLISH_OBJECT[entity.pronoun]
        column = "we" if entity.pronoun == "we" else entity.agreement
        german = morphology.PERSONAL[case][column]
        self.discourse.mention(entity)
        return NounPhrase(phrase([english], [german]), entity, is_pronoun=True)

    def named(self, entity: Entity, case: str) -> NounPhrase:
        words = [(english, nominative if case == "nom" else other) for english, nominative, other in entity.name]
        self.discourse.mention(entity)
        return NounPhrase(phrase(*zip(*words, strict=True)), entity)

    def repeated(self, entity: Entity, case: str) -> NounPhrase:
        """The entity again, by its name or as `the` noun."""
        return self.named(entity, case) if entity.name else self.noun_phrase(entity, case, ("the", "d"), modified=False)

    def new_noun_phrase(
        self,
        context: str,
        classes: Sequence[str],
        case: str,
        *,
        avoid: Sequence[Noun | None] = (),
        negation: Source | None = None,
        possessor: Entity | None = None,
        depth: int = 0,
    ) -> NounPhrase:
        """A name or a noun of the classes that was not mentioned before in this sentence.

        negation: the `not` of the clause, which makes kein of an indefinite object; possessor: whose his, her, its are.
        """
        if "person" in classes and self.dice.chance(0.36):
            entity = self.name_entity()
            return self.named(entity, case)
        taken = {entity.noun for entity in self.discourse.mentioned} | set(avoid)
        noun = self.draw_noun(context, classes)
        for _ in range(5):
            if noun not in taken:
                break
            noun = self.draw_noun(context, classes)
        entity = self.noun_entity(noun, self.dice.chance(0.25))
        determiner = self.draw_determiner(entity, case, negation, possessor)
        return self.noun_phrase(entity, case, determiner, negation=negation, depth=depth)

    def draw_determiner(
        self, entity: Entity, case: str, negation: Source | None, possessor: Entity | None
    ) -> tuple[str, str | None] | Expression:
        """English word and German stem; an Expression for a numeral; ("", None) for none."""
        if self.dice.chance(0.15):
            return self.possessive(possessor)
        if entity.plural:
            kinds = ("the", "these", "", "number", "many", "some", "all", "no")
            ends = (0.4, 0.5, 0.65, 0.8, 0.86, 0.92, 0.96, 1.0)
        else:
            kinds, ends = ("the", "a", "this", "every", "no"), (0.52, 0.84, 0.93, 0.97, 1.0)
        kind = self.dice.weighted(kinds, ends)
        if negation and kind not in {"the", "these", "this", "a", ""}:
            kind = "the"
        if case == "dat" and kind == "no":
            kind = "the"
        if case == "gen" and kind in {"", "number"}:  # the genitive of a bare plural has a form of its own: von
            kind = "the"
        if kind == "number":
            if self.dice.chance(0.6):
                return self.lexicon.draw(self.dice, "numeral", self.lexicon.numerals)
            digits = str(self.dice.number(13, 400))
            return Expression((digits,), ((digits,),))
        stems = {"the": "d", "these": "dies", "this": "dies", "a": "ein", "every": "jed", "no": "kein", "many": "viel"}
        stems |= {"some": "einig", "all": "all"}
        return kind, stems.get(kind)

    def possessive(self, possessor: Entity | None) -> tuple[str, str]:
        if possessor is None:
            return self.dice.pick((("my", "mein"), ("our", "unser")))
        english = morphology.ENGLISH_POSSESSIVE[possessor.pronoun]
        if possessor.pronoun == "we":
            return english, "unser"
        return english, "ihr" if possessor.agreement in {"f", "p"} else "sein"

    def noun_phrase(
        self,
        entity: Entity,
        case: str,
        determiner: tuple[str, str | None] | Expression,
        *,
        negation: Source | None = None,
        modified: bool = True,
        depth: int = 0,
    ) -> NounPhrase:
        """Determiner, adjectives, noun and what follows it, declined."""
        stem, first, negates = self.determined(entity, case, determiner, negation)
        words = first
        for adjective in self.adjectives(entity) if modified else ():
            _, attributive = self.translation(f"adjective {adjective.english}", adjective.german)
            ending = morphology.adjective_ending(stem, case, entity.agreement)
            words += phrase([adjective.english], [attributive + ending])
        words += self.head(entity, case)
        if stem not in {"kein", "jed"} and not negates:
            self.discourse.mention(entity)
        if modified:
            words += self.attribute(entity, depth)
        return NounPhrase(words, entity, stem if isinstance(determiner, tuple) else "number", negates=negates)

    def determined(
        self, entity: Entity, case: str, determiner: tuple[str, str | None] | Expression, negation: Source | None
    ) -> tuple[str | None, Phrase, bool]:
        """Stem that rules the adjective's ending, words, and whether kein took up the negation."""
        if isinstance(determiner, Expression):
            return None, phrase(determiner.english, determiner.german[0]), False
        english, stem = determiner
        if negation and english in {"a", ""}:
            source = [Source(english)] if english else []
            kein = Target(morphology.determiner("kein", case, entity.agreement), (negation, *source))
            return "kein", Phrase(source, [kein]), True
        if not english:
            return None, Phrase(), False
        return stem, phrase([english], [morphology.determiner(stem, case, entity.agreement)]), False

    def adjectives(self, entity: Entity) -> list[Adjective]:
        """None, one or two different adjectives that fit the noun."""
        count = self.dice.weighted((0, 1, 2), (0.79, 0.98, 1.0))
        for _ in range(count):
            adjective = self.new_adjective(entity)
            if adjective:
                entity.qualities.append(adjective)
        return list(entity.qualities)

    def new_adjective(self, entity: Entity) -> Adjective | None:
        """An adjective that fits the entity and was not said of it yet; None after a vain attempt."""
        fitting = self.lexicon.adjectives_for(entity.classes)
        adjective = self.lexicon.draw(self.dice, f"adjective {entity.classes}", fitting) if fitting else None
        return None if adjective in entity.qualities else adjective

    def head(self, entity: Entity, case: str) -> Phrase:
        *modifier, last = entity.noun.english
        source = [*modifier, entity.noun.english_plural if entity.plural else last]
        return phrase(source, [entity.german.form(case, entity.plural)])

    def attribute(self, entity: Entity, depth: int) -> Phrase:
        """A genitive, a prepositional phrase, a relative clause or, mostly, nothing."""
        if depth >= 2:
            return Phrase()
        kind = self.dice.weighted(("none", "genitive", "place", "relative"), (0.87, 0.91, 0.94, 1.0))
        if kind == "genitive" and not fits(entity.classes, ("person", "power")):
            return self.genitive(depth + 1)
        if kind == "place":
            return self.place(depth + 1)
        if kind == "relative":
            return self.relative_clause(entity, depth + 1)
        return Phrase()

    def relative_clause(self, entity: Entity, depth: int) -> Phrase:
        raise NotImplementedError("clauses come with the Grammar")

    def genitive(self, depth: int) -> Phrase:
        """`of the man`: des Mannes; `of Anna`: von Anna."""
        of = Source("of")
        owner = self.new_noun_phrase("of", ("person", "group", "town"), "gen", depth=depth)
        if owner.entity.name:
            return Phrase([of], [Target("von", (of,))]) + owner.words
        owner.words.target[0].possible += (of,)
        return Phrase([of]) + owner.words

    # ---- prepositional phrases

    def prepositional(self, english: Sequence[str], german: str, inner: NounPhrase) -> Phrase:
        """The sense of a preposition of several words sits in its last but one: in FRONT of, NEXT to."""
        source = [Source(text) for text in english]
        core = source[max(0, len(source) - 2)]
        target = Target(german, (core,), tuple(word for word in source if word is not core))
        return Phrase(source + inner.words.source, contract(target, inner.words.target, inner.determiner == "d"))

    def place(self, depth: int) -> Phrase:
        """Where or with whom: a town, a country or a noun the preposition selects."""
        kind = self.dice.weighted(("country", "town", "noun"), (0.08, 0.38, 1.0))
        if kind == "country":
            country = self.lexicon.draw(self.dice, "country", self.lexicon.countries)
            return phrase(["in"], ["in"]) + self.expression(country)
        if kind == "town":
            english, german = self.dice.pick((("in", "in"), ("near", "bei")))
            return phrase([english], [german]) + self.town()
        preposition = self.lexicon.draw(self.dice, "preposition", self.lexicon.prepositions)
        context = f"preposition {preposition.german} {preposition.classes}"
        inner = self.new_noun_phrase(context, preposition.classes, preposition.case, depth=depth + 1)
        return self.prepositional(preposition.english, preposition.german, inner)

    def town(self) -> Phrase:
        english, german = self.lexicon.draw(self.dice, "town", self.lexicon.towns, shift=30)
        return phrase([english], [german])

    def goal(self, depth: int) -> Phrase:
        """Where to: nach Italien, zum Bahnhof."""
        kind = self.dice.weighted(("country", "town", "noun"), (0.25, 0.55, 1.0))
        if kind == "noun":
            inner = self.new_noun_phrase("goal", ("building", "town"), "dat", depth=depth + 1)
            return self.prepositional(["to"], "zu", inner)
        if kind == "town":
            return phrase(["to"], ["nach"]) + self.town()
        return phrase(["to"], ["nach"]) + self.expression(
            self.lexicon.draw(self.dice, "country", self.lexicon.countries)
        )
