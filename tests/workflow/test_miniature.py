"""The miniature corpus: determinism, disjoint sets, tokenisation, links, and German that agrees."""

import hashlib
import os
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from sacremoses import MosesTokenizer

from workflow.miniature import corpus, morphology
from workflow.miniature.grammar import Complements, Grammar, Predicate, arrange
from workflow.miniature.lexicon import Dice, Lexicon
from workflow.miniature.nominal import Entity
from workflow.miniature.phrases import Phrase, SentencePair, finish, phrase, surface

ROOT = Path(__file__).parents[2]
LEXICON = Lexicon()
SIZES = {"train": 700, "dev": 100, "test": 200, "test2": 100, "gold": 100}


@pytest.fixture(scope="module")
def sets():
    return corpus.draw_sets(7, SIZES)


@pytest.fixture(scope="module")
def pairs(sets):
    return [pair for name in corpus.SETS for pair in sets[name]]


class Reluctant(Dice):
    """Dice which never grant a chance and always take the last: the grammar's plain choices."""

    def __init__(self):
        self.random = lambda: 0.999999


@pytest.fixture
def grammar():
    made = Grammar(LEXICON, Reluctant())
    made.discourse.time_first = True
    return made


def noun(grammar, english, plural=False):
    found = next(noun for noun in grammar.lexicon.nouns if noun.english == (english,))
    return grammar.noun_entity(found, plural)


def verb(grammar, key):
    return next(verb for verb in grammar.lexicon.verbs if verb.key == key)


def the(grammar, english, case, plural=False):
    return grammar.noun_phrase(noun(grammar, english, plural), case, ("the", "d"), modified=False)


def links(text: str) -> tuple[tuple[int, int], ...]:
    """Links written from 1, as a reader counts."""
    return tuple(sorted(tuple(int(n) - 1 for n in link.split("-")) for link in text.split()))


def check(pair: SentencePair, english: str, german: str, sure: str, possible: str = "") -> None:
    assert surface(pair.source) == english
    assert surface(pair.target) == german
    assert pair.sure == links(sure)
    assert pair.possible == links(possible)


# ---- sentences checked by hand


def test_a_separable_prefix_goes_last_in_the_main_clause_and_joins_the_verb_in_the_subordinate(grammar):
    grammar.discourse.choices["verb open öffnen"] = 1  # aufmachen
    group = grammar.verb_group(verb(grammar, "open öffnen"), "present", plural=False)
    subject, door = the(grammar, "man", "nom"), the(grammar, "door", "acc")
    predicate = Predicate(group, door.words.source, door.words.target)
    main = finish(arrange(subject.words, predicate, "main"))
    check(main, "the man opens the door", "der Mann macht die Tür auf", "1-1 2-2 3-3 4-4 5-5 3-6")
    final = finish(arrange(subject.words, predicate, "final"))
    check(final, "the man opens the door", "der Mann die Tür aufmacht", "1-1 2-2 4-3 5-4 3-5")


def test_not_and_a_become_kein_and_the_perfect_closes_its_bracket(grammar):
    buy = verb(grammar, "buy kaufen")
    group = grammar.verb_group(buy, "perfect", plural=False, negated=True)
    car = grammar.noun_phrase(noun(grammar, "car"), "acc", ("a", "ein"), negation=group.negation, modified=False)
    needs = Complements()
    grammar.add_object(needs, buy, car)
    middle = grammar.middle_field(needs, [], group.negation, [])
    clause = arrange(the(grammar, "soldier", "nom").words, Predicate(group, needs.english, middle), "final")
    check(
        finish(phrase(["because"], ["weil"]) + clause),
        "because the soldier has not bought a car",
        "weil der Soldat kein Auto gekauft hat",
        "1-1 2-2 3-3 4-7 5-4 6-6 7-4 8-5",
    )


def test_question_with_do_and_a_prepositional_object(grammar):
    wait = verb(grammar, "wait warten")
    group = grammar.verb_group(wait, "past", plural=False, question=True)
    needs = Complements()
    grammar.add_object(needs, wait, the(grammar, "train", "acc"))
    predicate = Predicate(group, needs.english, grammar.middle_field(needs, [], None, []))
    asked = arrange(the(grammar, "student", "nom").words, predicate, "inverted", question=True)
    check(
        finish(asked + phrase(["?"], ["?"])),
        "did the student wait for the train?",
        "hat der Student auf den Zug gewartet?",
        "2-2 3-3 4-7 5-4 6-5 7-6 8-8",
        "1-1",
    )


def test_want_to_with_a_dative_plural_and_a_pronoun_subject(grammar):
    help_ = verb(grammar, "help helfen")
    want = next(modal for modal in grammar.lexicon.modals["present"] if modal.english == ("want", "to"))
    needs = Complements()
    grammar.add_object(needs, help_, the(grammar, "worker", "dat", plural=True))
    he = grammar.pronoun(Entity(("person",), "m", False, "he"), "nom")
    predicate = Predicate(grammar.modal_group(help_, want, False), needs.english, needs.definite)
    pair = finish(arrange(he.words, predicate, "main"))
    check(pair, "he wants to help the workers", "er will den Arbeitern helfen", "1-1 2-2 4-5 5-3 6-4", "3-5")


def test_arrive_takes_sein_and_a_year_its_jahr(grammar):
    group = grammar.verb_group(verb(grammar, "arrive ankommen"), "past", plural=True)
    time = grammar.time("past")  # the last kind: a year, the last one
    predicate = Predicate(group, time.source, time.target)
    check(
        finish(arrange(the(grammar, "train", "nom", plural=True).words, predicate, "main")),
        "the trains arrived in 2019",
        "die Züge sind im Jahr 2019 angekommen",
        "1-1 2-2 3-7 4-4 5-6",
        "3-3 4-5 5-5",
    )


def test_in_the_contracts_and_a_weak_noun_declines(grammar):
    garden = grammar.prepositional(["in"], "in", the(grammar, "garden", "dat"))
    check(finish(garden), "in the garden", "im Garten", "1-1 2-1 3-2")
    soldier = grammar.prepositional(["in", "front", "of"], "vor", the(grammar, "soldier", "dat"))
    check(finish(soldier), "in front of the soldier", "vor dem Soldaten", "2-1 4-2 5-3", "1-1 3-1")


def test_a_pronoun_takes_the_gender_of_the_german_noun_that_was_chosen(grammar):
    assert surface(word.text for word in grammar.pronoun(noun(grammar, "car"), "nom").words.target) == "es"
    grammar.discourse.choices["car"] = 1  # der Wagen
    assert surface(word.text for word in grammar.pronoun(noun(grammar, "car"), "acc").words.target) == "ihn"
    assert grammar.possessive(noun(grammar, "company")) == ("its", "ihr")
    assert grammar.possessive(noun(grammar, "dog")) == ("its", "sein")


def test_a_before_a_vowel_and_commas_before_marks():
    pair = finish(phrase(["a", "apple", "."], ["ein", "Apfel", "."]))
    assert pair.source == ("an", "apple", ".")
    comma = phrase(["that"], [","])
    closed = finish(phrase(["x"], ["x"]) + Phrase(target=comma.target, source=comma.source) + phrase(["."], ["."]))
    assert closed.target == ("x", ".")
    assert closed.sure == links("1-1 3-2")


# ---- inflection


def test_adjectives_and_determiners():
    def said(stem, case, gender, adjective):
        article = morphology.determiner(stem, case, gender) + " " if stem else ""
        return article + adjective + morphology.adjective_ending(stem, case, gender)

    assert said("d", "nom", "m", "alt") == "der alte"
    assert said("d", "acc", "m", "alt") == "den alten"
    assert said("ein", "nom", "m", "alt") == "ein alter"
    assert said("ein", "acc", "n", "alt") == "ein altes"
    assert said("kein", "acc", "p", "alt") == "keine alten"
    assert said("ihr", "dat", "f", "alt") == "ihrer alten"
    assert said("dies", "gen", "m", "alt") == "dieses alten"
    assert said("viel", "dat", "p", "alt") == "vielen alten"
    assert said(None, "nom", "p", "alt") == "alte"


def test_noun_forms():
    def form(english, case, plural=False):
        found = next(noun for noun in LEXICON.nouns if noun.english == (english,))
        return found.german[0].form(case, plural)

    assert form("house", "gen") == "Hauses"
    assert form("lake", "gen") == "Sees"
    assert form("prison", "gen") == "Gefängnisses"
    assert form("teacher", "gen") == "Lehrers"
    assert form("woman", "gen") == "Frau"
    assert form("soldier", "acc") == form("soldier", "gen") == "Soldaten"
    assert form("car", "dat", plural=True) == "Autos"
    assert form("tree", "dat", plural=True) == "Bäumen"
    assert morphology.relative_pronoun("dat", "p") == "denen"


def test_articles_agree_with_their_nouns_everywhere(pairs):
    nouns = {}
    for entry in LEXICON.nouns:
        for german in entry.german:
            nouns.setdefault(german.singular, set()).add((german.gender, german.weak))
    plurals = {german.plural for entry in LEXICON.nouns for german in entry.german}
    allowed = {"der": "mf", "die": "f", "das": "n", "den": "m", "dem": "mn", "im": "mn", "zur": "f", "zum": "mn"}
    seen = 0
    for pair in pairs:
        for before, article, word in zip(("", *pair.target), pair.target, pair.target[1:], strict=False):
            relative = before == ","  # den Frau Kovar sieht
            if article in allowed and word in nouns and word not in plurals and not relative:
                seen += 1
                assert any(gender in allowed[article] for gender, _ in nouns[word]), (article, word)
                weak = all(weak for _, weak in nouns[word])
                assert not (weak and article in {"den", "dem", "im", "zum"}), (article, word)
    assert seen > 300


def test_the_cases_that_prepositions_ask_for(pairs):
    text = "\n".join(surface(pair.target) for pair in pairs)
    assert len(re.findall(r"\b(mit|von|bei) (dem|der|den|einem|einer)\b", text)) > 10
    assert not re.findall(r"\b(mit|von|bei|zu|aus) (die|das|ein|eine|einen|ihn)\b", text)
    assert not re.findall(r"\b(für|ohne|gegen) (dem|der|einem|einer|ihm|ihnen)\b", text)
    assert not re.findall(r"\b(von|in|zu|bei) dem (?!,)[A-ZÄÖÜ]", text)  # contracted


def test_subordinate_clauses_end_in_their_finite_verb(pairs):
    clauses = [re.search(r", (?:weil|obwohl) ([^,]*)\.$", surface(pair.target)) for pair in pairs]
    ends = [clause[1].split()[-1] for clause in clauses if clause]
    modals = "kann|können|muss|müssen|darf|dürfen|will|wollen|sollten?|konnten?|mussten?|wollten?|wird|werden|wurden?"
    third = {german.prefix + german.present for verb in LEXICON.verbs for german in verb.german}
    infinitives = {german.prefix + german.infinitive for verb in LEXICON.verbs for german in verb.german}
    preterites = {f for v in LEXICON.verbs for g in v.german if g.preterite for f in (g.preterite, g.preterite_plural)}
    for end in ends:
        finite = re.fullmatch(f"(?:{modals}|hat|haben|ist|sind|war|waren)", end)
        assert finite or end in third | infinitives | preterites, end
    assert len(ends) > 5


# ---- the corpus as a whole


def test_the_same_seed_gives_the_same_pairs_whatever_the_size_of_the_training_set(sets):
    again = corpus.draw_sets(7, SIZES | {"train": 200})
    assert again["test"] == sets["test"] and again["gold"] == sets["gold"]
    assert again["train"] == sets["train"][:200]
    assert corpus.draw_sets(8, {"test": 50})["test"] != sets["test"][:50]


def test_the_text_does_not_depend_on_the_python_version():
    drawn = corpus.draw_sets(1, {"train": 100})["train"]
    text = "\n".join(f"{surface(p.source)}|{surface(p.target)}|{corpus.talp_line(p)}" for p in drawn)
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "946d7f3649adc9a60a224e59c82228ed46251358d5859079645f910e75c6f54d"
    )


def test_no_source_occurs_twice(pairs):
    assert len({pair.source for pair in pairs}) == len(pairs) == sum(SIZES.values())


class Scripted:
    """A grammar which writes what it is told."""

    def __init__(self, *sources: str):
        self.rest = [SentencePair(tuple(text.split()), ("x", "y", "."), (), ()) for text in sources]

    def sentence(self) -> SentencePair:
        return self.rest.pop(0) if self.rest else SentencePair(("same", "again", "."), ("x", "y", "."), (), ())


def test_known_and_ill_sized_sentences_are_drawn_again():
    grammar = Scripted("a b .", "a b .", "b .", "c " * 51, "c d .")
    seen = set()
    assert corpus.new_pair(grammar, seen, "dev").source == ("a", "b", ".")
    assert corpus.new_pair(grammar, seen, "dev").source == ("c", "d", ".")
    assert corpus.new_pair(grammar, seen, "dev").source == ("same", "again", ".")
    with pytest.raises(ValueError, match="set dev: found no new sentence in 100 attempts"):
        corpus.new_pair(grammar, seen, "dev")


def test_moses_returns_the_words_of_the_grammar(pairs):
    for language, side in (("en", "source"), ("de", "target")):
        moses = MosesTokenizer(lang=language)
        for pair in pairs:
            words = getattr(pair, side)
            assert tuple(moses.tokenize(surface(words), escape=False)) == words


def test_links_are_in_range_and_reach_every_word(pairs):
    for pair in pairs:
        all_links = pair.sure + pair.possible
        assert len(set(all_links)) == len(all_links)
        assert {i for i, _ in all_links} == set(range(len(pair.source)))
        assert {j for _, j in all_links} == set(range(len(pair.target)))
        unsure = set(range(len(pair.target))) - {j for _, j in pair.sure}
        assert {pair.target[j] for j in unsure} <= {",", "hat", "haben", "ist", "sind", "Jahr"}


def test_names_and_numbers_are_linked_to_their_copies(pairs):
    numbers = 0
    for pair in pairs:
        for i, j in pair.sure:
            if pair.source[i].isdigit():
                numbers += 1
                assert pair.target[j].rstrip(".") == pair.source[i]
    assert numbers > 30


def test_a_sentence_keeps_to_its_translation_of_a_word(pairs):
    options = [{german.singular for german in entry.german} for entry in LEXICON.nouns if len(entry.german) == 2]
    checked = 0
    for pair in pairs:
        for pattern in options:
            used = [word for word in pair.target if word in pattern]
            checked += len(used) > 1
            assert len(set(used)) <= 1, pair
    assert checked > 5


def test_talp_counts_from_one_and_turns():
    pair = SentencePair(("in", "the", "garden"), ("im", "Garten"), ((0, 0), (2, 1)), ((1, 0),))
    assert corpus.talp_line(pair) == "1-1 2p1 3-2"
    assert corpus.talp_line(pair, turned=True) == "1-1 1p2 2-3"


def test_statistics_say_what_the_experiment_needs(sets):
    train = corpus.statistics(sets, (600, 800))["train"]
    test = corpus.statistics(sets, (600, 800))["test"]
    assert 10.5 < train["mean_length"][0] < 13
    assert 0.08 < train["over_25_words"] < 0.16
    assert 0.6 < train["not_monotone"] < 0.9
    assert all(0.03 < share < 0.15 for share in test["unknown"])
    assert min(len(pair.source) for pair in sets["train"]) >= 3
    assert max(max(len(pair.source), len(pair.target)) for pair in sets["train"]) <= 50


def test_is_monotone_is_no_crossing_by_brute_force(sets):
    for pair in sets["dev"]:
        crossing = any((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(pair.sure, 2))
        assert corpus.is_monotone(pair) == (not crossing)


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match=r"'nonsense'.*expected"):
        corpus.draw_sets(1, {"nonsense": 3})
    with pytest.raises(ValueError, match="-1 pairs"):
        corpus.draw_sets(1, {"train": -1})


def command(folder: Path, *flags: str, hash_seed: str = "0") -> subprocess.CompletedProcess:
    sizes = ["--train", "60", "--dev", "5", "--test", "5", "--test2", "5", "--gold", "10", "--seed", "3"]
    line = [sys.executable, "workflow/scripts/miniature.py", *sizes, "--output", str(folder), *flags]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed}
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_the_command_writes_the_same_bytes_under_any_hash_seed(tmp_path):
    for seed in ("1", "2"):
        assert command(tmp_path / seed, "--train-links", hash_seed=seed).returncode == 0
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    texts = [f"miniature-{name}.{language}" for name in corpus.SETS for language in ("en", "de")]
    assert names == sorted([*texts, "miniature-gold.talp", "miniature-train.talp"])
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert len((tmp_path / "1" / "miniature-gold.talp").read_text().splitlines()) == 10


def test_the_command_refuses_other_languages_without_a_stack_trace(tmp_path):
    done = command(tmp_path, "--source", "fr")
    assert done.returncode == 1
    assert done.stderr.startswith("error: --source fr --target de")
    assert not list(tmp_path.iterdir())
