"""The report: one file, whatever parts are there, nothing from outside, nothing unescaped; numbers as in the files."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import yaml

from nmt.attention_file import write_attention
from nmt.files import write_json
from workflow import charts, experiment, findings, reporting
from workflow.scripts import bleu_by_length, explorer, report

CONFIG = Path(__file__).resolve().parents[2] / "config"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Tags balanced outside SVG; ids, links and addresses collected."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.outside, self.marked = [], [], [], [], 0
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.marked += tag == "mark"
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if tag == "a" else []
        addresses = [attributes.get(name, "") for name in ("src", "href", "xlink:href")]
        self.outside += [a for a in addresses if a and not a.startswith(("#", "data:"))]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def table(name="table1", numbers=(("<base>", 7.0, "6", 12.0, "11.0"),)):
    cells = [
        {"label": label, "perplexity_ours": a, "perplexity_paper": b, "bleu_tokenized_ours": c,
         "bleu_tokenized_paper": d, "bleu_tokenized_p": None}
        for label, a, b, c, d in numbers
    ]  # fmt: skip
    return {
        "kind": "table", "name": name, "title": "Table 1 & more", "caption": "A <caption>.",
        "better": {"Perplexity": "low", "BLEU": "high"},
        "header": [["", "System"], ["Perplexity", "ours"], ["Perplexity", "difference"], ["BLEU", "ours"],
                   ["BLEU", "difference"]],
        "rows": [["<base>", "7.0", "+1.0", "12.0", "+1.0"], ["theirs", "–", "–", "not measured", "−0.0"]],
        "measured": [True, False], "cells": cells,
    }  # fmt: skip


def text_json():
    return {
        "lines_in": 4000, "lines_out": 3990, "words": {"en": 50000, "de": 51000},
        "removed": {"empty": 1, "too_long": 9, "duplicate": 0},
        "in": [{"language": "en", "path": "a/b/raw.en", "sha256": "feed" * 16}], "out": [],
    }  # fmt: skip


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("parts")
    write_json(tmp_path / "table1.json", table())
    bins = [{"from": 1, "to": 10, "n": 9, "bleu": 30.0, "interval": [27, 33]}]
    kinds = {"copy": {"count": 4, "right": 3, "wrong": 1}}
    score = {
        "system": "base", "test": "main", "unknown": {"in_output": 4, "kinds": kinds},
        "raw": {"by_length": bins, "bleu_tokenized": {"signature": "nrefs:1|tok:none"}},
        "conventions": {"unknown": "A replacement is right if."},
    }  # fmt: skip
    write_json(tmp_path / "score.json", score)
    for name in ("figure6", "figure6b"):
        bleu_by_length.main(
            tmp_path / name, raw=[f"base={tmp_path / 'score.json'}"], title="Figure 6", caption="By length"
        )
    words = [{"word": "Kerr", "unknown": True}, {"word": "&", "unknown": False}]
    outputs = [{"label": "best", "words": words}]
    sample = {"line": 3, "reason": "longest", "source": "a", "reference": "b", "outputs": outputs}
    about = {"kind": "samples", "title": "Table 5", "caption": "Rule.", "samples": [sample]}
    write_json(tmp_path / "samples.json", about)
    write_json(tmp_path / "text.json", text_json())
    found = {"tokens": 50000, "types": 1987, "known_types": 597, "known_tokens": 47500, "unknown_share": 0.05}
    write_json(tmp_path / "coverage.json", {"train": {"en": found}})
    model = {
        "device": "CPU", "seed": 1, "training_seconds": 7200, "wall_seconds": 7300, "parameters": 358656,
        "git": {"commit": "0123456789abcdef", "changed": True}, "versions": {"torch": "2.13"}, "data": {"x": "f00d"},
    }  # fmt: skip
    write_json(tmp_path / "model.json", model)
    points = [
        {"update": 600 * i, "epoch": i, "dev_perplexity": 9.5 - i, "seconds": 90, "words_per_second": 1000}
        for i in (1, 2)
    ]
    (tmp_path / "curve.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    for name, seconds in (("train/base", 7201.5), ("train/other", 60), ("vocabulary", 2)):
        path = tmp_path / "benchmarks" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\th:m:s\tmax_rss\tcpu_time\n{seconds}\t0:00:01\t310.4\t1\n")
    (tmp_path / "benchmarks" / "failed.tsv").write_text("")
    return tmp_path


def build(parts, **options):
    report.main("Report & title", parts / "report.html", **options)
    text = (parts / "report.html").read_text(encoding="utf-8")
    return text, Page(text)


def test_full_report(parts):
    names = ("table1", "figure6", "figure6b", "samples")
    config = experiment.load_file(CONFIG / "miniature.yaml")
    (parts / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    text, page = build(
        parts,
        summary=f"{config['note']}. These are the published scores",
        exhibit=[parts / f"{name}.json" for name in names],
        score=[parts / "score.json"],
        curve=[f"base={parts / 'curve.jsonl'}"],
        text=[f"train={parts / 'text.json'}"],
        provenance=[f"base={parts / 'model.json'}"],
        coverage=parts / "coverage.json",
        benchmark=parts / "benchmarks",
        datasets=CONFIG / "datasets.yaml",
        paper=[CONFIG / "luong2015.yaml"],
        config=parts / "config.yaml",
        commit="abc123",
    )
    assert text.count(config["note"]) == 2, "once in the abstract, once in the experiment's own text"
    assert page.outside == []
    assert re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", text) == [] and "@import" not in text
    assert len(page.ids) == len(set(page.ids)), "ids of two figures collide"
    assert all(link[1:] in page.ids for link in page.links)
    order = [
        text.index(f'<section id="{name}"') for name in ("abstract", *names, "curves", "cost", "data", "provenance")
    ]
    assert order == sorted(order)
    assert "&lt;base&gt;" in text and "Report &amp; title" in text and "A &lt;caption&gt;" in text
    assert page.marked == 1
    for expected in (
        "These are the published scores.", "3 (75%)", "1,200", "358,656", "2.000", "310",  # abstract, unknown, training
        "4,000", "3,990", "1 empty; 9 too long", "5.00%", "feed" * 16, "miniature-train",  # data
        "abc123", "0123456789ab + changes", "f00d", "nrefs:1|tok:none", "2 jobs, 2.0 h",  # provenance
        "of the systems, 1 of the 18 were trained", "50,000 en and 51,000 de words", "not values against values",
    ):  # fmt: skip
        assert expected in text, expected


def test_differences_are_shaded_by_what_is_better(parts):
    text, _ = build(parts, exhibit=[parts / "table1.json"])
    row = re.findall(r'<td class="(\w*)">([^<]+)</td>', text)
    assert row[:4] == [("ours", "7.0"), ("worse", "+1.0"), ("ours", "12.0"), ("better", "+1.0")]
    assert row[-2:] == [("absent", "not measured"), ("", "−0.0")]


def test_svg_takes_the_page_colours(parts):
    svg = reporting.inline_svg(parts / "figure6.svg", "f6")
    assert svg.startswith("<svg") and "currentColor" in svg and "var(--c0)" in svg
    assert "#1b1b1f" not in svg and "#fefefe" not in svg and "#0072b2" not in svg
    ids = set(re.findall(r'\bid="([^"]+)"', svg))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    assert used <= ids and all(name.startswith("f6-") for name in ids)


def test_report_of_nothing(parts):
    text, page = build(parts)
    assert "Provenance" in text and page.outside == [] and all(link[1:] in page.ids for link in page.links)


def test_other_json_is_refused(parts):
    with pytest.raises(ValueError, match=r"text\.json.*expected table"):
        build(parts, exhibit=[parts / "text.json"])


def test_script_data_cannot_end_the_script():
    assert report.embedded(["</script><b>"]) == '["\\u003c/script>\\u003cb>"]'


NUMBERS = [
    ("a", 9.0, "9", 10.0, "10"),
    ("b", 8.0, "8", 12.0, "11"),
    ("c", 8.5, "7", 11.0, "13"),
    ("d", 6.0, "–", 9.0, "–"),
]


def test_agreement_with_the_paper_is_counted():
    (found,) = findings.findings([table(numbers=NUMBERS)])
    # perplexity: a-b and a-c as in the paper, b-c not; BLEU the same; the paper has no number for d
    assert [sentence.split(" in ")[0] for sentence in found["orders"]] == [
        "Perplexity: 2 of 3 pairs of rows",
        "BLEU: 2 of 3 pairs of rows",
    ]
    assert found["contrary"] == ["c: +2.0 in the paper, −1.0 here"]
    assert findings.findings([table(numbers=[("a", None, "9", None, "10")])]) == []


def test_settings_that_differ_from_the_paper():
    paper = experiment.load_file(CONFIG / "luong2015.yaml")
    rows = findings.differences(experiment.load_file(CONFIG / "miniature.yaml"), paper)
    differ = {name: (theirs, ours) for name, theirs, ours in rows["differ"]}
    assert differ["cells a layer"] == ("1,000", "96") and differ["vocabulary"] == (
        "50,000 en, 50,000 de",
        "600 en, 800 de",
    )
    assert differ["models in ensemble"] == ("8", "4")
    assert "optimiser" in rows["agree"] and "clipping" in rows["agree"]
    assert findings.differences(paper, paper)["differ"] == []


def test_benchmarks_are_added_up_by_rule(parts):
    rules = reporting.by_rule(reporting.benchmarks(parts / "benchmarks"))
    assert rules["train"] == {"count": 2, "seconds": 7261.5, "longest": 7201.5, "memory": 310.4}
    assert set(rules) == {"train", "vocabulary"}
    boxes = {box["name"]: box for box in charts.stations(rules)["boxes"]}
    assert (boxes["train"]["count"], boxes["train"]["time"]) == (2, "2.0 h") and boxes["score"]["count"] == 0


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.25, "0.2 s"), (80, "80 s"), (90, "1.5 min"), (5400, "1.5 h"), (864000, "10.0 d")]
)
def test_durations(seconds, text):
    assert charts.duration(seconds) == text


def test_ticks_are_round_and_few():
    assert charts.ticks(0, 3500) == [0, 500, 1000, 1500, 2000, 2500, 3000, 3500]
    assert charts.ticks(1.15, 4.2) == [1.5, 2, 2.5, 3, 3.5, 4]


def test_chart_is_to_scale():
    points = [{"update": u, "dev_perplexity": float(np.exp(v))} for u, v in ((100, 3.0), (200, 1.0))]
    chart = charts.chart({"a": points, "none": [{"update": 1, "dev_perplexity": None}]})
    (series,) = chart["series"]
    first, last = series["points"]
    assert last["x"] == chart["right"] and first["x"] == pytest.approx((chart["left"] + chart["right"]) / 2, abs=0.1)
    assert first["y"] < last["y"] < chart["floor"]
    dense = [{"update": u, "dev_perplexity": 2.0} for u in range(1, 1001)]
    kept = charts.costs(dense)
    assert len(kept) <= 60 and kept[-1][0] == 1000


def test_plain_table_fits_a_terminal(parts):
    lines = reporting.plain_table(parts / "table1.json", 40).splitlines()
    assert lines[0] == "Table 1 & more" and len(lines) == 6  # the row that was not measured is left out
    assert lines[-1].split() == ["<base>", "7.0", "12.0"]
    assert max(map(len, lines)) <= 40


def test_a_run_ends_with_its_first_table_and_the_report(parts):
    (parts / "tables").mkdir(exist_ok=True)
    (parts / "tables" / "table1.json").write_text((parts / "table1.json").read_text())
    (parts / "report.html").touch()
    said = reporting.ending(parts)
    assert said.startswith("Table 1 & more") and said.endswith(f"The report: {parts / 'report.html'}")
    (parts / "tables" / "table1.json").rename(parts / "tables" / "widths.json")
    assert reporting.ending(parts) == said


# --- explorer --------------------------------------------------------------------------------------------------------

WEIGHTS = np.array([[0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])  # two words and the end, three source words


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "source").write_text("a b c\nx\na b d\n")
    (tmp_path / "target").write_text("A <unk>\nX\nB C\n")
    (tmp_path / "replaced").write_text("A Kerr\nX\nB C\n")
    (tmp_path / "gold.talp").write_text("1-1 3p2\n\n1-2\n")
    write_attention(tmp_path / "att.npz", [WEIGHTS, np.ones((2, 1)), None])
    return tmp_path


def test_explorer_of_translations(texts):
    explorer.main([f"s={texts / 'att.npz'}"], texts / "source", texts / "main.json",
                  words=[f"s={texts / 'target'}"], replaced=[f"s={texts / 'replaced'}"])  # fmt: skip
    found = json.loads((texts / "main.json").read_text())
    assert (found["text"], found["forced"], found["lines"]) == (
        "main",
        False,
        [1],
    )  # one too short, one without weights
    (sentence,) = found["systems"]["s"]
    assert sentence["words"] == ["A", "Kerr"] and sentence["unknown"] == [1]
    decoded = np.array([explorer.DIGITS.index(c) for c in sentence["weights"]]).reshape(3, 3) / 63
    np.testing.assert_allclose(decoded, WEIGHTS, atol=0.5 / 63 + 1e-3)


def test_explorer_of_forced_decoding(texts):
    explorer.main([f"s={texts / 'att.npz'}"], texts / "source", texts / "gold.json",
                  target=texts / "target", gold=texts / "gold.talp")  # fmt: skip
    found = json.loads((texts / "gold.json").read_text())
    assert found["references"] == [["A", "<unk>"]] and found["gold"] == [[[0, 0, 1], [2, 1, 0]]]


def test_explorer_refuses_weights_of_another_text(texts):
    (texts / "target").write_text("A B C D\nX\nB C\n")
    with pytest.raises(ValueError, match=r"att\.npz, sentence 1: found 3 by 3 weights, expected 5 by"):
        explorer.main([f"s={texts / 'att.npz'}"], texts / "source", texts / "o.json", target=texts / "target")
