"""The fast tokeniser holds to sacremoses: on lines made to be nasty, and on whatever real text it is given."""

import os
import random
import unicodedata

import pytest
from sacremoses import MosesTokenizer

from workflow import tokenising
from workflow.cleaning import clean, raw_lines
from workflow.cli import labelled_path
from workflow.tokenising import MosesLines

LANGUAGES = ["en", "de", "fr", "it", "cs"]
LINES = 250  # of each kind, language and choice of options
REAL = "TOKENISER_TEXTS"

CLASSES: dict[str, list[str]] = {}  # a few characters of each Unicode category, spaces and surrogates aside
for code in [*range(0x20, 0x3000), *range(0x3000, 0x1F700, 7)]:
    CLASSES.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
CLASSES.pop("Cs")

PIECES = r"""
    . .. ... .... , ,, ' '' ` `` - -- --- " ( ) [ ] { } < > & | / \ : ; ? ! @ # $ % * + = _ ^ ~ € £ « » „ “ ” ‘ ’ – —
    … a A z é É ß œ Ω я 7 0 42 ½ ² ٣ 漢 字 한 か x's n't 'll 't l' d' qu' aujourd'hui John's '90s 90's
    Mr. Mr Dr. Prof. No. No Nos. z.B. z. B. usw. u.s.w. bzw. Art. pp. M. Mme. av. J.-C. i.e. e.g. U.S. U.S.A. A. B.C
    etc. 1. 3. 1,000 1,000.50 5, ,5 a,b a,5 5,a 1.2.3 .5 .net a.b www.example.org http://a.b/c?d=e,f me@a-b.org #tag @me
    <unk> <s> </s> <a href="x"> &amp; &lt; DOTMULTI DOTDOTMULTI xDOTMULTI. MULTI THISISPROTECTED000 _ELLIPSIS_ @-@ -LRB-
    well-known a-b-c 5-6 é-è -x x- Wwww Wwww. ı İ ǅ 𝔸 😀 😀.
""".split()  # noqa: SIM905
PIECES += [*"\u00ad\u200b\u200d\ufeff\ue000\u0378\x02\x1c\u2028", "a\u0301", "👩\u200d💻"]


def pieces(generator: random.Random) -> str:
    """Words and signs, joined with and without spaces."""
    return "".join(
        generator.choice(PIECES) + generator.choice(["", "", " ", " ", "  "]) for _ in range(generator.randrange(1, 14))
    )


def characters(generator: random.Random) -> str:
    """Characters of all kinds, with what the rules look for often among them."""
    kinds = list(CLASSES.values())
    return "".join(
        generator.choice("  ..,''-aA1") if generator.random() < 0.6 else generator.choice(generator.choice(kinds))
        for _ in range(generator.randrange(1, 30))
    )


def edges(generator: random.Random) -> str:
    """Little but what joins and parts words, so that rules meet."""
    return "".join(generator.choice(" '.,-aA1\"") for _ in range(generator.randrange(1, 12)))


def abbreviations(generator: random.Random, language: str) -> str:
    """What has or may have a full stop, before all that may follow it."""
    words = [*MosesTokenizer(lang=language).NONBREAKING_PREFIXES, "Wort", "a.b", "x-y", "5", "é", "D'art", "(x"]
    after = ["a", "B", "é", "É", "1st", "²", "٣", "(a", "'s", ",", "...", "", "-a", "ª", "ß", '"', "字"]
    stops = [".", ".", "..", ".,", ".'", '."', ".)", ""]
    return " ".join(
        generator.choice(words).partition(" ")[0] + generator.choice(stops) + " " + generator.choice(after)
        for _ in range(5)
    )


def compare(lines, language, both):
    theirs, ours = MosesTokenizer(lang=language), MosesLines(language, escape=both, aggressive_hyphens=both)
    for line in map(clean, lines):
        expected = theirs.tokenize(line, escape=both, aggressive_dash_splits=both)
        assert ours.tokenise(line).split(" ") == (expected or [""]), line


@pytest.mark.parametrize("both", [False, True], ids=["plain", "escaped"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_nasty_lines(language, both):
    generator = random.Random(f"{language} {both}")
    for make in (pieces, characters, edges, lambda generator: abbreviations(generator, language)):
        compare((make(generator) for _ in range(LINES)), language, both)


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(tokenising, "CHUNKS_KEPT", 5)
    lines = MosesLines("en", escape=False, aggressive_hyphens=False)
    line = "Mr. Smith's well-known e.g. (a) U.S. isn't No. 5. x y z."
    assert lines.tokenise(line) == " ".join(MosesTokenizer("en").tokenize(line, escape=False))
    assert 0 < len(lines) <= 5


@pytest.mark.skipif(REAL not in os.environ, reason=f"minutes; name texts: {REAL}='en=PATH de=PATH' (plain or .gz)")
@pytest.mark.parametrize("both", [False, True], ids=["plain", "escaped"])
def test_real_lines(both):
    for language, path in map(labelled_path, os.environ[REAL].split()):
        compare(raw_lines(path), language, both)
