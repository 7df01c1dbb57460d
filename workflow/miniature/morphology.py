"""Inflection: German articles, adjectives, pronouns and nouns; English plurals and verb forms."""

import re

# gender m, f, n or p (plural)
DEFINITE = {
    "nom": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "acc": {"m": "den", "f": "die", "n": "das", "p": "die"},
    "dat": {"m": "dem", "f": "der", "n": "dem", "p": "den"},
    "gen": {"m": "des", "f": "der", "n": "des", "p": "der"},
}
STRONG_ENDING = {
    "nom": {"m": "er", "f": "e", "n": "es", "p": "e"},
    "acc": {"m": "en", "f": "e", "n": "es", "p": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "p": "en"},
    "gen": {"m": "es", "f": "er", "n": "es", "p": "er"},
}
PERSONAL = {
    "nom": {"m": "er", "f": "sie", "n": "es", "p": "sie", "we": "wir"},
    "acc": {"m": "ihn", "f": "sie", "n": "es", "p": "sie", "we": "uns"},
    "dat": {"m": "ihm", "f": "ihr", "n": "ihm", "p": "ihnen", "we": "uns"},
}
ENGLISH_OBJECT = {"he": "him", "she": "her", "it": "it", "they": "them", "we": "us"}
ENGLISH_POSSESSIVE = {"he": "his", "she": "her", "it": "its", "they": "their", "we": "our"}
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}


def determiner(stem: str, case: str, gender: str) -> str:
    """A declined determiner. Stems: `d` (der), `dies`, `jed`, `all`..., or those like `ein`, bare in three places."""
    if stem == "d":
        return DEFINITE[case][gender]
    bare = is_indefinite(stem) and (case, gender) in {("nom", "m"), ("nom", "n"), ("acc", "n")}
    return stem if bare else stem + STRONG_ENDING[case][gender]


def is_indefinite(stem: str) -> bool:
    """Whether the determiner declines like `ein`."""
    return stem in {"ein", "kein", "mein", "sein", "ihr", "unser"}


def adjective_ending(stem: str | None, case: str, gender: str) -> str:
    """Ending of an adjective after the determiner `stem`; None: no determiner, or one that does not decline (drei)."""
    if stem is None or stem in {"viel", "einig"}:
        return STRONG_ENDING[case][gender]
    if case in {"dat", "gen"} or gender == "p" or (case, gender) == ("acc", "m"):
        return "en"
    return STRONG_ENDING["nom"][gender] if is_indefinite(stem) else "e"


def relative_pronoun(case: str, gender: str) -> str:
    return "denen" if (case, gender) == ("dat", "p") else DEFINITE[case][gender]


def german_noun(singular: str, plural: str, gender: str, weak: bool, case: str, is_plural: bool) -> str:
    """A declined noun: die Häuser, den Häusern; des Hauses; den Studenten (weak)."""
    if is_plural:
        return plural + "n" if case == "dat" and plural[-1] not in "ns" else plural
    if weak and case != "nom":
        return plural
    if case == "gen" and gender != "f":
        return singular + genitive_ending(singular)
    return singular


def genitive_ending(singular: str) -> str:
    if singular.endswith("nis"):
        return "ses"
    if singular.endswith("anke"):  # Gedanke, des Gedankens
        return "ns"
    if singular.endswith(tuple("aeiou")):
        return "s"
    short = len(re.findall("[aeiouäöüy]+", singular.lower())) == 1
    return "es" if singular.endswith(("s", "ß", "z")) or (short and singular[-1] not in "lm") else "s"


def english_plural(singular: str) -> str:
    if singular.endswith(("s", "x", "ch", "sh")):
        return singular + "es"
    if re.search("[^aeiou]y$", singular):
        return singular[:-1] + "ies"
    return singular + "s"


def english_third_person(base: str) -> str:
    if base == "have":
        return "has"
    return base + "es" if base == "go" else english_plural(base)


def english_past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    return base[:-1] + "ied" if re.search("[^aeiou]y$", base) else base + "ed"
