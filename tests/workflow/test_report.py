"""The report: one file, whatever parts are there, nothing from outside, nothing unescaped."""

import json
import re
from html.parser import HTMLParser

import pytest

from nmt.files import write_json
from workflow.scripts import bleu_by_length, report

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
        assert tag != "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("parts")
    table = {
        "kind": "table", "title": "Table 1 & more", "caption": "A <caption>.",
        "better": {"Perplexity": "low", "BLEU": "high"},
        "header": [["", "System"], ["Perplexity", "ours"], ["Perplexity", "difference"], ["BLEU", "ours"],
                   ["BLEU", "difference"]],
        "rows": [["<base>", "7.0", "+1.0", "12.0", "+1.0"], ["theirs", "–", "–", "–", "−0.0"]],
        "measured": [True, False],
    }  # fmt: skip
    write_json(tmp_path / "table1.json", table)
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
    sample = {
        "line": 3,
        "reason": "longest",
        "source": "a",
        "reference": "b",
        "outputs": [{"label": "best", "words": words}],
    }
    write_json(
        tmp_path / "samples.json", {"kind": "samples", "title": "Table 5", "caption": "Rule.", "samples": [sample]}
    )
    write_json(tmp_path / "text.json", {"pairs": 4000, "dropped": {"empty": 1}, "sums": ["a", "b"]})
    point = {"update": 1200, "epoch": 2, "dev_perplexity": 3.5, "seconds": 90, "words_per_second": 1000}
    (tmp_path / "curve.jsonl").write_text(json.dumps(point) + "\n")
    return tmp_path


def build(parts, **options):
    report.main("Report & title", parts / "report.html", **options)
    text = (parts / "report.html").read_text(encoding="utf-8")
    return text, Page(text)


def test_full_report(parts):
    names = ("table1", "figure6", "figure6b", "samples")
    text, page = build(
        parts,
        summary="What was run",
        exhibit=[parts / f"{name}.json" for name in names],
        score=[parts / "score.json"],
        curve=[f"base={parts / 'curve.jsonl'}"],
        data=[f"train={parts / 'text.json'}"],
        provenance=[f"base={parts / 'text.json'}"],
        commit="abc123",
    )
    assert page.outside == []
    assert re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", text) == [] and "@import" not in text
    assert len(page.ids) == len(set(page.ids)), "ids of two figures collide"
    assert all(link[1:] in page.ids for link in page.links)
    order = [text.index(f'<section id="{name}">') for name in names]
    assert order == sorted(order)
    assert "&lt;base&gt;" in text and "Report &amp; title" in text and "A &lt;caption&gt;" in text
    assert page.marked == 1
    for expected in ("3 (75%)", "1,200", "4,000", "dropped.empty", "abc123", "nrefs:1|tok:none", "a, b"):
        assert expected in text


def test_differences_are_shaded_by_what_is_better(parts):
    text, _ = build(parts, exhibit=[parts / "table1.json"])
    row = re.findall(r'<td class="(\w*)">([^<]+)</td>', text)
    assert row[:4] == [("ours", "7.0"), ("worse", "+1.0"), ("ours", "12.0"), ("better", "+1.0")]
    assert row[-1] == ("", "−0.0")


def test_svg_takes_the_page_colour(parts):
    svg = report.inline_svg(parts / "figure6.svg", "f6")
    assert svg.startswith("<svg") and "currentColor" in svg
    assert "#1b1b1f" not in svg and "#fefefe" not in svg
    ids = set(re.findall(r'\bid="([^"]+)"', svg))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    assert used <= ids and all(name.startswith("f6-") for name in ids)


def test_report_of_nothing(parts):
    text, page = build(parts)
    assert "Provenance" in text and page.outside == []


def test_other_json_is_refused(parts):
    with pytest.raises(ValueError, match=r"text\.json.*expected table"):
        build(parts, exhibit=[parts / "text.json"])
