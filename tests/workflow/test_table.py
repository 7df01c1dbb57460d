"""Tables: each cell equals the score file or the paper; three formats from one frame; LaTeX escaped."""

import json

import pandas as pd
import pytest

from nmt.files import read_json, write_json
from workflow.scripts import table
from workflow.tables import latex_escape, measured, show

REPORTED = """paper,table,row,system,direction,testset,metric,value
bahdanau2015,4,1,wrong paper,en-fr,newstest2014,ppl,99
luong2015,4,1,global (location),en-de,newstest2014,ppl,6.4
luong2015,4,1,global (location),en-de,newstest2014,bleu_tokenized,18.1
luong2015,4,1,global (location),en-de,newstest2014,bleu_tokenized_unk,19.3
luong2015,4,4,local-m (dot),en-de,newstest2014,ppl,>7.0
luong2015,4n,1,global (concat identity),en-de,newstest2014,ppl,6.7
"""
SPEC = {
    "name": "table4",
    "title": "Architectures & scores",
    "caption": "All with 50% dropout, names_with_underscores",
    "paper": {"paper": "luong2015", "table": "4"},
    "test": "mine",
    "direction": "en-de",
    "columns": ["perplexity", "bleu_tokenized", "bleu_tokenized_unk"],
    "rows": [
        {"label": "global (location)", "paper_row": 1, "system": "location"},
        {"label": "local-m (dot) & more", "paper_row": 4, "system": "unrun"},
        {"label": "concat_identity", "paper_row": 1, "paper_table": "4n", "system": "concat"},
        {"label": "theirs alone", "paper_row": 1},
    ],
}


def bleu(score):
    return {"score": score, "interval": [score - 1, score + 1.5], "signature": "nrefs:1|tok:none"}


@pytest.fixture
def built(tmp_path):
    (tmp_path / "reported.csv").write_text(REPORTED)
    write_json(
        tmp_path / "scores/location/mine.json",
        {
            "raw": {"bleu_tokenized": bleu(20.04)},
            "replaced": {"bleu_tokenized": bleu(22.5)},
            "perplexity": {"value": 5.25, "words": 100, "nll": 165.8},
        },
    )
    write_json(tmp_path / "scores/concat/mine.json", {"raw": {"bleu_tokenized": bleu(10)}, "perplexity": None})
    comparison = {"row": 2, "above": 0, "column": "bleu_tokenized", "p": 0.0001}
    write_json(tmp_path / "comparisons.json", {"comparisons": [comparison]})
    options = [tmp_path / "scores", tmp_path / "reported.csv", tmp_path / "out/table4", tmp_path / "comparisons.json"]
    table.main(json.dumps(SPEC), *options, False, "Trained on 4,000 generated pairs")
    return tmp_path / "out"


def test_csv_equals_score_files_and_paper(built):
    frame = pd.read_csv(built / "table4.csv", dtype={"perplexity_paper": str})
    first, unrun, concat, theirs = frame.to_dict("records")
    assert (first["bleu_tokenized_ours"], first["bleu_tokenized_paper"]) == (20.04, 18.1)
    assert first["bleu_tokenized_difference"] == pytest.approx(1.94)
    assert (first["bleu_tokenized_low"], first["bleu_tokenized_high"]) == (pytest.approx(19.04), pytest.approx(21.54))
    assert first["bleu_tokenized_unk_ours"] == 22.5
    assert (first["perplexity_ours"], first["perplexity_paper"]) == (5.25, "6.4")
    assert (first["system"], first["test"], first["bleu_tokenized_signature"]) == (
        "location",
        "mine",
        "nrefs:1|tok:none",
    )
    assert unrun["perplexity_paper"] == ">7.0" and pd.isna(unrun["perplexity_difference"])
    assert pd.isna(unrun["perplexity_ours"])
    assert (concat["perplexity_paper"], concat["bleu_tokenized_p"]) == ("6.7", 0.0001)  # the footnote's own table
    assert pd.isna(theirs["system"]) and theirs["bleu_tokenized_paper"] == 18.1


def test_markdown_shows_the_same(built):
    lines = (built / "table4.md").read_text(encoding="utf-8").splitlines()
    header, _, first, unrun, concat, theirs = [line.strip("| ").split(" | ") for line in lines[2:]]
    assert header[:4] == ["System", "Perplexity: paper", "Perplexity: ours", "Perplexity: difference"]
    cells = dict(zip(header, first, strict=True))
    assert (cells["BLEU: ours"], cells["BLEU: difference"], cells["BLEU: 95% interval"]) == (
        "20.0",
        "+1.9",
        "[19.0, 21.5]",
    )
    assert dict(zip(header, unrun, strict=True))["BLEU: ours"] == "not measured"
    assert dict(zip(header, concat, strict=True))["BLEU: p"] == "<0.001"
    assert dict(zip(header, theirs, strict=True))["BLEU: ours"] == "–"
    assert "BLEU after unk replacement: p" not in header  # no row has one
    assert "not like the paper's in kind" in lines[0] and "4,000 generated pairs" in lines[0]


def test_zero_has_no_sign():
    fields = {"paper": None, "p": 0.2, "ours": -0.04, "difference": -0.04, "low": -0.04, "high": -0.04}
    frame = pd.DataFrame([{"system": "base", **{f"bleu_tokenized_{name}": value for name, value in fields.items()}}])
    shown = show(frame, "bleu_tokenized")
    assert (shown["ours"], shown["difference"], shown["95% interval"]) == (["0.0"], ["+0.0"], ["[0.0, 0.0]"])


def test_latex_is_escaped_and_even(built):
    text = (built / "table4.tex").read_text(encoding="utf-8")
    assert "Architectures \\& scores. All with 50\\% dropout, names\\_with\\_underscores" in text
    assert "local-m (dot) \\& more" in text and "concat\\_identity" in text
    body = text[text.index("\\midrule") : text.index("\\bottomrule")]
    columns = len(pd.DataFrame(read_json(built / "table4.json")["rows"]).columns)
    rows = [line.replace("\\&", "") for line in body.splitlines() if line.endswith("\\\\")]
    assert len(rows) == 4 and {row.count("&") for row in rows} == {columns - 1}
    assert text.count("{") == text.count("}")
    assert "$-$" in text and "−" not in text


def test_json_says_which_way_is_better(built):
    found = read_json(built / "table4.json")
    assert found["better"] == {"Perplexity": "low", "BLEU": "high", "BLEU after unk replacement": "high"}
    assert found["measured"] == [True, False, True, False]


def test_replaced_rows_and_alignment_columns(tmp_path):
    (tmp_path / "reported.csv").write_text(REPORTED)
    rule = {"aer": 0.341, "interval": [0.3, 0.4]}
    write_json(tmp_path / "s/hmm/gold.json", {"alignment": {"symmetric": rule | {"aer": 0.2}}})
    scores = {"alignment": {"predicting": rule, "input": rule | {"aer": 0.9}}, "entropy": 1.234}
    write_json(tmp_path / "s/a/gold.json", scores)
    write_json(tmp_path / "s/a/mine.json", {"raw": {"bleu_nist": bleu(5)}, "replaced": {"bleu_nist": bleu(7)}})
    rows = [
        {"label": "a", "system": "a", "test": "gold"},
        {"label": "aligner", "system": "hmm", "aligner": True, "test": "gold"},
        {"label": "r", "system": "a", "replace": True},
    ]
    columns = ["aer", "aer_input", "entropy", "bleu_nist"]
    spec = {"name": "t", "title": "T", "test": "mine", "columns": columns, "rows": rows}
    frame = table.build_frame(spec, tmp_path / "s", {}, pd.read_csv(tmp_path / "reported.csv", dtype=str))
    assert frame["aer_ours"].tolist()[:2] == [0.341, 0.2]
    assert frame["aer_input_ours"].tolist()[:2] == [0.9, 0.2]
    assert frame["entropy_ours"][0] == 1.234
    assert frame["bleu_nist_ours"][2] == 7


def test_unknown_words_are_shared_out():
    kinds = {"dictionary": {"count": 3, "right": 1, "wrong": 2}, "copy": {"count": 1, "right": 1, "wrong": 0}}
    score = {"unknown": {"in_output": 4, "kinds": kinds}}
    columns = ("unknown", "unknown_dictionary", "unknown_copy", "unknown_wrong")
    assert [measured(score, column, False)["value"] for column in columns] == [4, 75, 25, 50]
    assert measured({"unknown": None}, "unknown_copy", False) == {}
    nothing = {"unknown": {"in_output": 0, "kinds": {}}}
    assert measured(nothing, "unknown", False) == {"value": 0} and measured(nothing, "unknown_copy", False) == {}


def test_sentences_left_out_are_counted_in_the_caption(tmp_path):
    write_json(tmp_path / "a/gold.json", {"lines": 500, "left_out_as_seen_in_training": 8})
    spec = {"test": "gold", "rows": [{"label": "theirs"}, {"label": "a", "system": "a"}]}
    assert table.left_out(spec, tmp_path).startswith("8 of 508 sentences occur in the training text")
    assert table.left_out(spec | {"test": "other"}, tmp_path) == ""


def test_a_row_of_others_is_not_ours_to_measure(tmp_path):
    (tmp_path / "reported.csv").write_text(REPORTED)
    rows = [{"label": "theirs", "aligner": False}, {"label": "ours", "system": "aligner", "aligner": True}]
    spec = {"name": "t", "title": "T", "test": "gold", "columns": ["aer"], "rows": rows}
    frame = table.build_frame(spec, tmp_path, {}, pd.read_csv(tmp_path / "reported.csv", dtype=str))
    assert table.display_frame(frame, ["aer"])[("AER", "ours")].tolist() == ["–", "not measured"]


def test_unknown_column_is_named(tmp_path):
    spec = json.dumps(SPEC | {"columns": ["blue"]})
    with pytest.raises(ValueError, match=r"'blue'.*bleu_tokenized"):
        table.main(spec, tmp_path, tmp_path, tmp_path / "t")


def test_latex_escape():
    assert latex_escape("a_b & 50% <unk> \\ {x}") == (
        "a\\_b \\& 50\\% \\textless{}unk\\textgreater{} \\textbackslash{} \\{x\\}"
    )
