"""Preparing text: identical to sacremoses, line by line together, and every bad input named."""

import gzip
import random

import numpy as np
import pytest
from sacremoses import MosesTokenizer

from nmt.files import read_json, read_lines
from workflow.cleaning import clean, escape_specials, parting_line
from workflow.scripts import prepare as script
from workflow.tokenising import Tokeniser

ENGLISH = [
    "Mr. Smith's \"well-known\" cost: 1,000.50 (i.e. £5) isn't...  O'Neill , says A.B.",
    "tabs\there\u2028and\u0085there\rand\u00a0there \u3000 x\x01y z\x00\x1fw",
    "<s> & | [x] 'quoted.'",
    "x \x02 y",
    "\u200bzero\ufeff width",
    "",
]
GERMAN = ["Das ist z.B. der 3. Tag , „Größe“ am 1. Mai 2,5%...", "L'état u.s.w. 'n Haus."]


def write(path, lines):
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return path


def run(tmp_path, english, german, **options):
    """Prepare two sides given as lines or as files; the outputs' lines and the report."""
    sides = {"en": english, "de": german}
    for name, side in sides.items():
        if isinstance(side, list):
            sides[name] = write(tmp_path / f"raw.{name}", side)
    script.main(
        text=[f"{name}={path}" for name, path in sides.items()],
        output=[f"{name}={tmp_path / 'out' / name}" for name in sides],
        report=tmp_path / "report.json",
        **{"threads": 1, "tokeniser": "none"} | options,
    )
    return *(read_lines(tmp_path / "out" / name) for name in sides), read_json(tmp_path / "report.json")


@pytest.mark.parametrize("options", [{}, {"escape": True}, {"aggressive_hyphens": True}])
@pytest.mark.parametrize("language, lines", [("en", ENGLISH), ("de", GERMAN), ("fr", GERMAN)])
def test_tokenised_as_sacremoses_does(language, lines, options):
    theirs = MosesTokenizer(lang=language)
    arguments = {
        "escape": options.get("escape", False),
        "aggressive_dash_splits": options.get("aggressive_hyphens", False),
    }
    for line in lines:
        expected = theirs.tokenize(line, **arguments)
        assert Tokeniser(language, **options)(clean(line)).split(" ") == (expected or [""])


def test_cleaning_leaves_single_spaces_and_no_breaks():
    assert clean(ENGLISH[1]) == "tabs here and there and there xy z w"
    assert clean("x \x02 y") == "x y"
    assert clean(" \u2029 ") == ""
    assert Tokeniser("en", "none")(clean("  a\u00a0b \x0c")) == "a b"


def test_reserved_words_are_escaped():
    assert escape_specials("<unk> a <s>b </s>") == "&lt;unk&gt; a <s>b &lt;/s&gt;"
    assert Tokeniser("en", "none")("<s> <unk> </s>") == "&lt;s&gt; &lt;unk&gt; &lt;/s&gt;"
    assert Tokeniser("en")("<unk>") == "< unk >"


def test_without_filter_line_i_stays_line_i(tmp_path):
    english, german, report = run(tmp_path, ["a", "", "c " * 99], ["", "", "x\u2028y"], max_length=None)
    assert english == ["a", "", " ".join("c" * 99)]
    assert german == ["", "", "x y"]
    assert (report["lines_in"], report["lines_out"], report["removed"]) == (3, 3, {})
    assert report["words"] == {"en": 100, "de": 2}
    with pytest.raises(ValueError, match="give --filter too"):
        run(tmp_path, ["a"], ["b"], max_length=5)


def test_filters_drop_pairs_and_count_them(tmp_path):
    english = ["one", "", "a b c d", "same", "a b c", "same", "held out", "same"]
    german = ["eins", "zwei", "kurz", "gleich", " \u00a0 ", "gleich", "neu", "anders"]
    held_out = write(tmp_path / "dev.en", ["held  o ut", "else"])  # in other tokens
    options = {"filter": True, "max_length": 3, "deduplicate": True, "exclude": [f"en={held_out}"]}
    english, german, report = run(tmp_path, english, german, **options)
    assert english == ["one", "same", "same"]
    assert german == ["eins", "gleich", "anders"]
    assert report["removed"] == {"empty": 2, "too_long": 1, "excluded": 1, "duplicate": 1}
    assert (report["lines_in"], report["lines_out"]) == (8, 3)
    assert report["words"] == {"en": 3, "de": 3}


def test_length_is_counted_in_tokens(tmp_path):
    english, _, report = run(tmp_path, ["a, b", "a b"], ["x", "y"], tokeniser="moses", filter=True, max_length=2)
    assert english == ["a b"]
    assert report["removed"]["too_long"] == 1


def test_processes_and_chunks_do_not_change_the_text(tmp_path, monkeypatch):
    words = random.Random(0)
    lines = [
        " ".join(words.choices(["Mr.", "don't", "x,y", "é", "(ok)", ""], k=words.randrange(9))) for _ in range(200)
    ]
    options = {"tokeniser": "moses", "filter": True, "max_length": 9}
    alone = run(tmp_path, lines, lines[::-1], **options)
    monkeypatch.setattr(script, "LINES_A_CHUNK", 7)
    assert run(tmp_path, lines, lines[::-1], threads=2, **options) == alone
    assert 0 < len(alone[0]) < 200


def test_several_texts_are_joined_and_marks_at_their_starts_removed(tmp_path):
    first, second = write(tmp_path / "1", ["\ufeffa", "b"]), write(tmp_path / "2", ["\ufeffc"])
    outputs = [f"en={tmp_path / 'out'}"]
    script.main(
        text=[f"en={first}", f"en={second}"], output=outputs, report=tmp_path / "r", tokeniser="none", threads=1
    )
    assert read_lines(tmp_path / "out") == ["a", "b", "c"]
    assert [each["path"] for each in read_json(tmp_path / "r")["in"]] == [str(first), str(second)]


def test_windows_line_ends_are_normalised(tmp_path):
    path = tmp_path / "raw.en"
    path.write_bytes(b"a\r\nb\rc\r\n")
    assert run(tmp_path, path, ["x", "y"])[0] == ["a", "b c"]


@pytest.mark.parametrize("threads", [1, 2])
def test_bad_utf8_names_file_and_line_and_writes_nothing(tmp_path, threads):
    path = tmp_path / "raw.de"
    path.write_bytes(b"gut\n" * 1500 + b"schlecht \xfc\n")
    with pytest.raises(ValueError, match=r"raw\.de, line 1501: expected UTF-8, found the bytes fc 0a"):
        run(tmp_path, ["good"] * 1501, path, threads=threads)
    assert not list(tmp_path.glob("out/*"))


def test_unequal_line_counts_name_counts_and_place(tmp_path):
    words = random.Random(1)
    lengths = [words.randrange(3, 90) for _ in range(400)]
    english = ["x" * length for length in lengths]
    german = ["y" * round(1.1 * length) for index, length in enumerate(lengths) if index != 250]
    with pytest.raises(ValueError, match=r"raw\.en has 400 lines, .*raw\.de has 399.*seem to part near line 251"):
        run(tmp_path, english, german)


def test_parting_line_of_texts_cut_short():
    lengths = np.random.default_rng(0).integers(3, 90, 100)
    assert parting_line(lengths, lengths[:90]) == 91
    assert parting_line(lengths[10:], lengths) == 1
    assert parting_line(lengths, lengths[:0]) == 1


def test_progress_is_plain_lines_a_bar_or_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(script, "LINES_A_CHUNK", 10)
    lines = ["word"] * 100
    run(tmp_path, lines, lines)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 10 and told[-1] == "prepare report: 0.0 of 0.0 MB"
    run(tmp_path, lines, lines, quiet=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    run(tmp_path, lines, lines)
    assert "prepare report: 100%" in capsys.readouterr().err


@pytest.mark.parametrize("cut", [False, True])
def test_gzipped_text(tmp_path, cut):
    path = tmp_path / "raw.en.gz"
    whole = gzip.compress(b"".join(b"%d\n" % number for number in range(3000)))
    path.write_bytes(whole[:-2000] if cut else whole)
    numbers = [str(number) for number in range(3000)]
    if cut:
        with pytest.raises(ValueError, match=r"raw\.en\.gz, after line \d+: damaged gzip file"):
            run(tmp_path, path, numbers)
    else:
        assert run(tmp_path, path, numbers)[0] == numbers
