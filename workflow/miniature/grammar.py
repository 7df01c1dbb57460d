"""Clauses and sentences: verb brackets, verb-final clauses, negation, questions, passives and chains of clauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from workflow.miniature import morphology
from workflow.miniature.lexicon import Expression, GermanVerb, Verb, fits
from workflow.miniature.nominal import ANIMATE, Entity, Nominal, NounPhrase
from workflow.miniature.phrases import Phrase, SentencePair, Source, Target, contract, finish, phrase

INANIMATE = ("building", "thing", "text", "plan", "problem", "vehicle", "town", "event", "debt", "place", "ground")
CHAINED = 0.17  # share of the sentences that go on, clause by clause,
CHAIN_LENGTHS = (20, 45)  # until they have a number of words drawn evenly from these
SIMPLE_FRAMES = ("bare", "object", "goal", "give")
CLAUSE_FRAMES = ("that", "infinitive")
WE = Entity(("person",), "m", True, "we")


@dataclass
class VerbGroup:
    """The verb forms of a clause. English: subject, first, rest. German: finite, ..., closing or prefix."""

    first: list[Source]
    rest: list[Source]
    finite: Target
    closing: list[Target] = field(default_factory=list)  # participle or infinitive
    prefix: Target | None = None  # of a separable verb whose stem is the finite form
    negation: Source | None = None


@dataclass
class Complements:
    """What a verb needs, ordered in English; in German sorted by where the middle field has it."""

    english: list[Source] = field(default_factory=list)
    pronouns: list[Target] = field(default_factory=list)
    definite: list[Target] = field(default_factory=list)
    indefinite: list[Target] = field(default_factory=list)
    late: list[Target] = field(default_factory=list)  # after nicht
    negates: bool = False


@dataclass
class Predicate:
    """A clause without its subject."""

    group: VerbGroup
    english: list[Source]  # after the verb
    middle: list[Target]
    after: list[Target] = field(default_factory=list)  # behind the verbs: clauses with dass or zu


def arrange(subject: Phrase, predicate: Predicate, order: str, question: bool = False) -> Phrase:
    """The clause in an order of German: `main` (subject, finite verb), `inverted` (finite verb, subject), `final`."""
    group = predicate.group
    if question:
        source = group.first + subject.source + group.rest + predicate.english
    else:
        source = subject.source + group.first + group.rest + predicate.english
    prefix = [group.prefix] if group.prefix else []
    if order == "final":
        text = (group.prefix.text if group.prefix else "") + group.finite.text
        verbs = [*group.closing, Target(text, group.finite.sure, group.finite.possible)]
        return Phrase(source, subject.target + predicate.middle + verbs + predicate.after)
    opening = [*subject.target, group.finite] if order == "main" else [group.finite, *subject.target]
    return Phrase(source, opening + predicate.middle + group.closing + prefix + predicate.after)


class Grammar(Nominal):
    """Draws sentence pairs: Grammar(Lexicon(), Dice(seed)).sentence()."""

    # ---- verb forms

    def verb_group(
        self,
        verb: Verb,
        tense: str,
        plural: bool,
        *,
        negated: bool = False,
        question: bool = False,
        adverb: Phrase | None = None,
    ) -> VerbGroup:
        """An active verb in the present, the past (German perfect, for some verbs preterite) or the perfect."""
        german = self.translation(f"verb {verb.key}", verb.german)
        negation = Source("not") if negated else None
        between = ([negation] if negation else []) + (adverb.source if adverb else [])
        if tense == "perfect":
            have = Source("have" if plural else "has")
            participle = Source(verb.participle)
            closing = [Target(german.prefix + german.participle, (participle,))]
            finite = Target(perfect_auxiliary(verb, plural), (have,))
            return VerbGroup([have], [*between, participle], finite, closing, negation=negation)
        if negated or question:
            support = Source("did" if tense == "past" else "do" if plural else "does")
            word, first = Source(verb.base), [support]
        else:
            support, first = None, []
            word = Source(verb.past if tense == "past" else verb.base if plural else verb.third)
        group = VerbGroup(first, [*between, word], Target(""), negation=negation)
        supported = (support,) if support else ()
        if tense == "past" and german.preterite is None:
            group.finite = Target(perfect_auxiliary(verb, plural), (), supported or (word,))
            group.closing = [Target(german.prefix + german.participle, (word,))]
            return group
        group.finite = Target(simple_form(german, tense, plural), (word,), supported)
        group.prefix = Target(german.prefix, (word,)) if german.prefix else None
        return group

    def modal_group(
        self, verb: Verb, modal: Expression, plural: bool, *, negated: bool = False, adverb: Phrase | None = None
    ) -> VerbGroup:
        """A modal verb and an infinitive: must not read, wants to read. Modals of two words cannot be negated here."""
        german = self.translation(f"verb {verb.key}", verb.german)
        negation = Source("not") if negated else None
        third, many = modal.german[0]
        text = modal.english[0]
        auxiliary = Source(text + "s" if text == "want" and not plural else text)
        to = [Source(word) for word in modal.english[1:]]
        base = Source(verb.base)
        often = adverb.source if adverb else []
        closing = [Target(german.prefix + german.infinitive, (base,), tuple(to))]
        finite = Target(many if plural else third, (auxiliary,))
        if to:  # often wants to read, but can often read
            return VerbGroup([*often, auxiliary], [*to, base], finite, closing)
        between = [negation, *often] if negation else often
        return VerbGroup([auxiliary], [*between, base], finite, closing, negation=negation)

    def passive_group(self, verb: Verb, past: bool, plural: bool, *, negated: bool = False) -> VerbGroup:
        """is built: wird gebaut; was built: wurde gebaut."""
        german = self.translation(f"verb {verb.key}", verb.german)
        be = Source(form_of_be(past, plural))
        negation = Source("not") if negated else None
        participle = Source(verb.participle)
        finite = Target(("wurden" if plural else "wurde") if past else ("werden" if plural else "wird"), (be,))
        closing = [Target(german.prefix + german.participle, (participle,))]
        return VerbGroup([be], [*([negation] if negation else []), participle], finite, closing, negation=negation)

    # ---- complements of a verb

    def complements(
        self,
        verb: Verb,
        subject: NounPhrase,
        earlier: Sequence[Entity],
        *,
        negation: Source | None,
        gap: bool,
        depth: int,
    ) -> Complements:
        """Objects and goal of the verb; earlier: entities of the clauses before, which pronouns may stand for."""
        found = Complements()
        if verb.frame == "goal":
            goal = self.goal(depth)
            found.english, found.late = goal.source, goal.target
        elif verb.frame == "give":
            self.add_two_objects(found, verb, subject, earlier, negation, depth)
        elif verb.frame == "object" and not gap:
            item = self.object(verb.key, verb.objects, verb.case, subject, earlier, verb, negation, depth)
            self.add_object(found, verb, item)
        return found

    def object(
        self,
        context: str,
        classes: Sequence[str],
        case: str,
        subject: NounPhrase,
        earlier: Sequence[Entity],
        verb: Verb,
        negation: Source | None,
        depth: int,
    ) -> NounPhrase:
        """A pronoun for something mentioned, the same noun again, a town's name, or something new."""
        known = [e for e in earlier if e is not subject.entity and fits(e.classes, classes) and e is not WE]
        if verb.german_preposition:  # `auf es` would be darauf
            known = [e for e in known if fits(e.classes, ANIMATE)]
        for entity in reversed(known):
            if self.discourse.referent.get(entity.pronoun) is entity and self.dice.chance(0.45):
                return self.pronoun(entity, case)
        nameable = [entity for entity in known if entity.has_words]
        if nameable and self.dice.chance(0.12):
            return self.repeated(nameable[-1], case)
        owner = subject.entity
        possessor = owner if self.discourse.referent.get(owner.pronoun) is owner else None
        return self.new_noun_phrase(
            context, classes, case, avoid=[owner.noun], negation=negation, possessor=possessor, depth=depth
        )

    def add_object(self, found: Complements, verb: Verb, item: NounPhrase) -> None:
        found.negates = found.negates or item.negates
        preposition = Source(verb.english_preposition) if verb.english_preposition else None
        found.english += ([preposition] if preposition else []) + item.words.source
        if verb.german_preposition:
            german = Target(verb.german_preposition, (preposition,))
            found.late += contract(german, item.words.target, item.determiner == "d")
            return
        if preposition:
            item.words.target[0].possible += (preposition,)
        self.place_object(found, item)

    def place_object(self, found: Complements, item: NounPhrase) -> None:
        if item.is_pronoun:
            found.pronouns += item.words.target
        elif item.is_indefinite:
            found.indefinite += item.words.target
        else:
            found.definite += item.words.target

    def add_two_objects(
        self,
        found: Complements,
        verb: Verb,
        subject: NounPhrase,
        earlier: Sequence[Entity],
        negation: Source | None,
        depth: int,
    ) -> None:
        """gives the man the book, gives the book to the man: dem Mann das Buch; but a pronoun goes first: es ihm."""
        receiver = self.object(f"receiver {verb.key}", ("person",), "dat", subject, earlier, verb, None, depth + 1)
        rest = [entity for entity in earlier if entity is not receiver.entity]
        gift = self.object(verb.key, verb.objects, "acc", subject, rest, verb, negation, depth + 1)
        found.negates = gift.negates
        if gift.is_pronoun or self.dice.chance(0.5):
            to = Source("to")
            receiver.words.target[0].possible += (to,)
            found.english = [*gift.words.source, to, *receiver.words.source]
        else:
            found.english = receiver.words.source + gift.words.source
        for item in (gift, receiver) if gift.is_pronoun else (receiver, gift):
            self.place_object(found, item)

    # ---- predicates

    def choose_verb(self, entity: Entity, frames: Sequence[str]) -> Verb | None:
        fitting = self.lexicon.verbs_of(entity.classes, frames)
        if not fitting:
            return None
        return self.lexicon.draw(self.dice, f"verb of {entity.classes} {frames}", fitting, shift=5)

    def predicate(self, subject: NounPhrase, earlier: Sequence[Entity], depth: int, **options) -> Predicate:
        """Copula, passive or active verb, as the subject allows. options: question, fronted."""
        animate = fits(subject.entity.classes, ANIMATE)
        kind = self.dice.random()
        if kind < (0.12 if animate else 0.45):
            described = self.copula(subject, **options)
            if described:
                return described
        if kind > (0.94 if animate else 0.55) and not subject.is_pronoun:
            suffered = self.passive(subject, depth, **options)
            if suffered:
                return suffered
        verb = self.choose_verb(subject.entity, SIMPLE_FRAMES + (CLAUSE_FRAMES if depth < 2 else ()))
        if verb:
            return self.active(verb, subject, earlier, depth, **options)
        return self.passive(subject, depth, **options) or self.copula(subject, **options) or self.being_there(subject)

    def may_negate(self, subject: NounPhrase) -> bool:
        return subject.determiner not in {"kein", "jed", "all", "einig", "viel"} and self.dice.chance(0.13)

    def clause_tense(self) -> str:
        if self.dice.chance(0.85):
            return self.discourse.tense
        return self.dice.pick(("present", "past", "perfect"))

    def active(
        self,
        verb: Verb,
        subject: NounPhrase,
        earlier: Sequence[Entity],
        depth: int,
        *,
        question: bool = False,
        fronted: bool = False,
        gap: bool = False,
    ) -> Predicate:
        tense, plural = self.clause_tense(), subject.entity.plural
        negated = self.may_negate(subject)
        modal = self.modal(tense, simple=negated or question) if self.dice.chance(0.24) else None
        adverb = None
        if not negated and not question and self.dice.chance(0.09):
            adverb = self.expression(self.lexicon.draw(self.dice, "frequency", self.lexicon.frequency_adverbs))
        if modal:
            group = self.modal_group(verb, modal, plural, negated=negated, adverb=adverb)
        else:
            group = self.verb_group(verb, tense, plural, negated=negated, question=question, adverb=adverb)
        needs = self.complements(verb, subject, earlier, negation=group.negation, gap=gap, depth=depth)
        roomy = verb.frame in {"bare", "object"} and depth < 2
        place = self.place(depth + 1) if roomy and self.dice.chance(0.14) else self.money(verb)
        time = Phrase()
        if not fronted and adverb is None and self.dice.chance(0.2):
            time = self.time("modal" if modal and tense != "past" else tense)
        early = (adverb.target if adverb else []) + time.target
        middle = self.middle_field(needs, early, group.negation, place.target)
        predicate = Predicate(group, needs.english + place.source + time.source, middle)
        if verb.frame == "that":
            predicate = self.with_that(predicate, depth)
        if verb.frame == "infinitive":
            predicate = self.with_infinitive(predicate, subject, earlier, depth)
        return predicate

    def middle_field(
        self, needs: Complements, early: list[Target], negation: Source | None, place: list[Target]
    ) -> list[Target]:
        """Pronouns, then time and definite objects in the sentence's order, indefinite objects, nicht, prepositions."""
        known = early + needs.definite if self.discourse.time_first else needs.definite + early
        denial = [Target("nicht", (negation,))] if negation and not needs.negates else []
        if needs.negates:
            return needs.pronouns + known + needs.indefinite + place + needs.late
        return needs.pronouns + known + denial + needs.indefinite + place + needs.late

    def modal(self, tense: str, simple: bool) -> Expression:
        name = "past" if tense == "past" else "present"
        if simple:
            items = [m for m in self.lexicon.modals[name] if len(m.english) == 1 and m.english[0] != "must"]
            return self.lexicon.draw(self.dice, f"simple modal {name}", items)
        return self.lexicon.draw(self.dice, f"modal {name}", self.lexicon.modals[name])

    def money(self, verb: Verb) -> Phrase:
        if verb.base not in {"buy", "sell"} or not self.dice.chance(0.35):
            return Phrase()
        amount = str(self.dice.number(2, 99) * 10)
        return phrase(["for", amount, "euros"], ["für", amount, "Euro"])

    def time(self, tense: str) -> Phrase:
        """An adverb that fits the tense, a year, a month or a date."""
        kind = self.dice.weighted(("adverb", "month", "date", "year"), (0.72, 0.8, 0.88, 1.0))
        month = self.expression(self.lexicon.draw(self.dice, "month", self.lexicon.months))
        if kind == "month" and tense != "perfect":
            return phrase(["in"], ["im"]) + month
        if kind == "date" and tense != "perfect":
            on, day = Source("on"), Source(str(self.dice.number(1, 31 if tense != "past" else 28)))
            target = [Target("am", (on,)), Target(f"{day.text}.", (day,)), *month.target]
            return Phrase([on, *month.source, day], target)
        if kind == "year" and tense == "past":
            within, year = Source("in"), Source(str(self.dice.number(1900, 2019)))
            target = [Target("im", (within,)), Target("Jahr", (), (within, year)), Target(year.text, (year,))]
            return Phrase([within, year], target)
        name = {"present": "present", "past": "past", "modal": "modal"}.get(tense, "any")
        return self.expression(self.lexicon.draw(self.dice, f"adverb {name}", self.lexicon.adverbs[name]))

    def copula(self, subject: NounPhrase, *, question: bool = False, fronted: bool = False) -> Predicate | None:
        """is very big: ist sehr groß; None where no adjective fits."""
        adjective = self.new_adjective(subject.entity)
        if adjective is None:
            return None
        subject.entity.qualities.append(adjective)
        past = self.discourse.tense == "past"
        be = Source(form_of_be(past, subject.entity.plural))
        german = ("waren" if subject.entity.plural else "war") if past else ("sind" if subject.entity.plural else "ist")
        negation = Source("not") if self.may_negate(subject) else None
        words = self.expression(Expression(("very",), (("sehr",),))) if self.dice.chance(0.2) else Phrase()
        words += phrase([adjective.english], [self.translation(f"adjective {adjective.english}", adjective.german)[0]])
        time = self.time("past" if past else "present") if not fronted and self.dice.chance(0.08) else Phrase()
        denial = [Target("nicht", (negation,))] if negation else []
        group = VerbGroup([be], [negation] if negation else [], Target(german, (be,)), negation=negation)
        return Predicate(group, words.source + time.source, time.target + denial + words.target)

    def being_there(self, subject: NounPhrase) -> Predicate:
        plural = subject.entity.plural
        be = Source(form_of_be(True, plural))
        there = phrase(["there"], ["da"])
        return Predicate(VerbGroup([be], [], Target("waren" if plural else "war", (be,))), there.source, there.target)

    def passive(
        self, subject: NounPhrase, depth: int, *, question: bool = False, fronted: bool = False
    ) -> Predicate | None:
        """was built by the man: wurde von dem Mann gebaut; None where no verb takes the subject as its object."""
        classes = subject.entity.classes
        fitting = [verb for verb in self.lexicon.verbs_on(classes) if verb.case == "acc" and verb.base != "have"]
        if not fitting:
            return None
        verb = self.lexicon.draw(self.dice, f"passive of {classes}", fitting)
        past = self.discourse.tense != "present"
        group = self.passive_group(verb, past, subject.entity.plural, negated=self.may_negate(subject))
        time = self.time("past" if past else "present") if not fronted and self.dice.chance(0.25) else Phrase()
        agent = Phrase()
        if self.dice.chance(0.45):
            doer = self.new_noun_phrase(
                f"agent {verb.key}", verb.subjects, "dat", avoid=[subject.entity.noun], depth=depth + 1
            )
            agent = self.prepositional(["by"], "von", doer)
        denial = [Target("nicht", (group.negation,))] if group.negation else []
        return Predicate(group, agent.source + time.source, time.target + denial + agent.target)

    def with_that(self, predicate: Predicate, depth: int) -> Predicate:
        that = Source("that")
        inner = self.clause("final", depth + 1)
        after = [Target(",", (), (that,)), Target("dass", (that,)), *inner.target]
        return replace(predicate, english=[*predicate.english, that, *inner.source], after=after)

    def with_infinitive(
        self, predicate: Predicate, subject: NounPhrase, earlier: Sequence[Entity], depth: int
    ) -> Predicate:
        """tries to open the door: versucht, die Tür zu öffnen (or aufzumachen)."""
        verb = self.choose_verb(subject.entity, SIMPLE_FRAMES)
        german = self.translation(f"verb {verb.key}", verb.german)
        to, base = Source("to"), Source(verb.base)
        needs = self.complements(verb, subject, earlier, negation=None, gap=False, depth=depth + 1)
        if german.prefix:
            infinitive = [Target(f"{german.prefix}zu{german.infinitive}", (base, to))]
        else:
            infinitive = [Target("zu", (to,)), Target(german.infinitive, (base,))]
        middle = self.middle_field(needs, [], None, [])
        after = [Target(",", (), (to,)), *middle, *infinitive]
        return replace(predicate, english=[*predicate.english, to, base, *needs.english], after=after)

    # ---- clauses

    def subject(self, depth: int) -> NounPhrase:
        """Mostly someone mentioned before: by pronoun, or by noun again; otherwise someone or something new."""
        mentioned = self.discourse.mentioned
        kind = self.dice.random()
        if mentioned and kind < 0.5:
            first = self.dice.chance(0.6)
            for entity in mentioned if first else reversed(mentioned):
                if self.discourse.referent.get(entity.pronoun) is entity:
                    return self.pronoun(entity, "nom")
        if mentioned and kind < 0.62:
            entity = self.dice.pick(mentioned)
            if entity.has_words:
                return self.repeated(entity, "nom")
        if not mentioned and kind < 0.06:
            return self.pronoun(WE, "nom")
        if not mentioned and kind < 0.14:
            pronoun, gender, plural = self.dice.pick((("he", "m", False), ("she", "f", False), ("they", "m", True)))
            return self.pronoun(Entity(("person",), gender, plural, pronoun), "nom")
        possessor = mentioned[-1] if mentioned else None
        if possessor and self.discourse.referent.get(possessor.pronoun) is not possessor:
            possessor = None
        if self.dice.chance(0.05):
            return self.couple(depth)
        context, classes = ("subject", ANIMATE) if self.dice.chance(0.8) else ("thing subject", INANIMATE)
        return self.new_noun_phrase(context, classes, "nom", possessor=possessor, depth=depth)

    def couple(self, depth: int) -> NounPhrase:
        """Two persons: Anna and the judge. The pair is what later pronouns stand for."""
        first = self.new_noun_phrase("subject", ANIMATE, "nom", depth=2)
        second = self.new_noun_phrase("companion", ("person",), "nom", depth=2)
        both = Entity(("person",), "m", True, "they")
        self.discourse.mention(both)
        return NounPhrase(first.words + phrase(["and"], ["und"]) + second.words, both, "d")

    def clause(self, order: str, depth: int = 0) -> Phrase:
        """A clause with its subject; a main clause may begin with a time or place, which comes first in German too."""
        earlier = list(self.discourse.mentioned)
        if order == "main" and depth == 0 and self.dice.chance(0.14):
            tense = self.discourse.tense
            front = self.time(tense) if self.dice.chance(0.65) else self.place(1)
            subject = self.subject(depth)
            return front + arrange(subject.words, self.predicate(subject, earlier, depth, fronted=True), "inverted")
        subject = self.subject(depth)
        return arrange(subject.words, self.predicate(subject, earlier, depth), order)

    def relative_clause(self, entity: Entity, depth: int) -> Phrase:
        """who buys the house; whom the man helps; which the man buys. Both commas are linked to that pronoun."""
        person = entity.pronoun in {"he", "she"} or "person" in entity.classes
        clause, case = Phrase(), "nom"
        if self.dice.chance(0.4):
            clause, case = self.object_gap(entity, depth)
        if not clause.source:
            earlier = [other for other in self.discourse.mentioned if other is not entity]
            gap = NounPhrase(Phrase(), entity, "d", is_pronoun=True)
            clause, case = arrange(gap.words, self.predicate(gap, earlier, depth), "final"), "nom"
        pronoun = Source(("who" if case == "nom" else "whom") if person else "which")
        german = Target(morphology.relative_pronoun(case, entity.agreement), (pronoun,))
        comma, closing = Target(",", (), (pronoun,)), Target(",", (), (pronoun,))
        return Phrase([pronoun, *clause.source], [comma, german, *clause.target, closing])

    def object_gap(self, entity: Entity, depth: int) -> tuple[Phrase, str]:
        """A verb-final clause whose object is the entity, and the object's case; an empty one where no verb fits."""
        fitting = self.lexicon.verbs_on(entity.classes)
        if not fitting:
            return Phrase(), "acc"
        verb = self.lexicon.draw(self.dice, f"gap of {entity.classes}", fitting)
        subject = self.new_noun_phrase(
            f"subject {verb.key}", verb.subjects, "nom", avoid=[entity.noun], possessor=None, depth=2
        )
        return arrange(subject.words, self.active(verb, subject, [], depth, gap=True), "final"), verb.case

    # ---- sentences

    def sentence(self) -> SentencePair:
        """One sentence pair: a noun phrase, a question, or a chain of clauses."""
        self.discourse = self.new_discourse()
        kind = self.dice.weighted(("fragment", "question", "conditional", "chain"), (0.03, 0.1, 0.16, 1.0))
        if kind == "fragment":
            return finish(self.new_noun_phrase("subject", ANIMATE, "nom").words + phrase(["."], ["."]))
        if kind == "question":
            return finish(self.question() + phrase(["?"], ["?"]))
        text = self.subordinate_first() if kind == "conditional" else self.clause("main")
        wanted = self.dice.number(*CHAIN_LENGTHS) if self.dice.chance(CHAINED) else 0
        while len(text.source) < wanted:
            text += self.continuation(text)
        return finish(text + phrase(["."], ["."]))

    def question(self) -> Phrase:
        """Does the man see the house? Sieht der Mann das Haus?"""
        subject = self.subject(1)
        return arrange(subject.words, self.predicate(subject, [], 1, question=True), "inverted", question=True)

    def subordinate_first(self) -> Phrase:
        """When he came, she slept: the main clause begins with its verb."""
        first = self.subordinator()
        clause = self.clause("final", 1)
        earlier = list(self.discourse.mentioned)
        subject = self.subject(0)
        main = arrange(subject.words, self.predicate(subject, earlier, 0, fronted=True), "inverted")
        return first + clause + phrase([","], [","]) + main

    def subordinator(self) -> Phrase:
        if self.dice.chance(0.25):
            return phrase(["when"], ["wenn" if self.discourse.tense == "present" else "als"])
        return self.expression(self.lexicon.draw(self.dice, "subordinator", self.lexicon.subordinators))

    def continuation(self, before: Phrase) -> Phrase:
        """Another clause: coordinated, with `then`, or subordinated."""
        kind = self.dice.weighted(("and", "but", "then", "subordinate"), (0.33, 0.46, 0.56, 1.0))
        if kind == "subordinate":
            conjunction = self.subordinator()
            comma = Target(",", (), (conjunction.source[0],))
            return Phrase(conjunction.source, [comma, *conjunction.target]) + self.clause("final", 1)
        if kind == "but":
            return phrase([",", "but"], [",", "aber"]) + self.clause("main")
        conjunction = phrase(["and"], ["und"])
        if any(target.text == "," for target in before.target):  # closes the clause before it, which may be subordinate
            conjunction.target.insert(0, Target(",", (), (conjunction.source[0],)))
        if kind == "and":
            return conjunction + self.clause("main")
        earlier = list(self.discourse.mentioned)
        subject = self.subject(0)
        rest = arrange(subject.words, self.predicate(subject, earlier, 0, fronted=True), "inverted")
        return conjunction + phrase(["then"], ["dann"]) + rest


def perfect_auxiliary(verb: Verb, plural: bool) -> str:
    if verb.takes_sein:
        return "sind" if plural else "ist"
    return "haben" if plural else "hat"


def simple_form(german: GermanVerb, tense: str, plural: bool) -> str:
    if tense == "past":
        return german.preterite_plural if plural else german.preterite
    return german.present_plural if plural else german.present


def form_of_be(past: bool, plural: bool) -> str:
    return ("were" if plural else "was") if past else ("are" if plural else "is")
