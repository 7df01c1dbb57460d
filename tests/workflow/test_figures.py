"""Figures: what is drawn equals the files; text stays text; samples follow the rule."""

import json
import math
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from nmt.attention_file import write_attention
from nmt.files import read_json, write_json
from nmt.vocab import SPECIALS, Vocabulary
from workflow.scripts import alignment_matrices, bleu_by_length, learning_curves, samples

SVG = "{http://www.w3.org/2000/svg}"


def texts(path):
    return ["".join(element.itertext()).strip() for element in ElementTree.parse(path).iter(f"{SVG}text")]


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def curve_file(path, scale=1.0):
    points = [
        {"update": 100 * i, "epoch": i, "dev_perplexity": math.exp(5 / i), "curve_perplexity": scale * math.exp(6 / i)}
        for i in range(1, 6)
    ]
    return write(path, [json.dumps(point) for point in [*points, {"update": 600, "curve_perplexity": None}]])


def test_learning_curve_is_the_logarithm(tmp_path):
    path = curve_file(tmp_path / "c.jsonl")
    updates, costs = learning_curves.read_curve(path, "curve_perplexity")
    assert updates == [100, 200, 300, 400, 500]
    assert costs == pytest.approx([6, 3, 2, 1.5, 1.2])
    _, costs = learning_curves.read_curve(path, "dev_perplexity")
    assert costs[0] == pytest.approx(5)


def test_learning_curves_figure(tmp_path):
    curves = [f"base (lr=1)={curve_file(tmp_path / 'a.jsonl')}", f"best={curve_file(tmp_path / 'b.jsonl', 0.5)}"]
    learning_curves.main(curves, tmp_path / "figure5", title="Curves", caption="Cost.")
    found = texts(tmp_path / "figure5.svg")
    assert {"base (lr=1)", "best", "Mini-batches", "ln perplexity (test)"} <= set(found)
    assert (tmp_path / "figure5.png").read_bytes()[:4] == b"\x89PNG"
    assert read_json(tmp_path / "figure5.json") == {
        "kind": "figure", "name": "figure5", "title": "Curves", "caption": "Cost.",
    }  # fmt: skip
    first = (tmp_path / "figure5.svg").read_bytes()
    learning_curves.main(curves, tmp_path / "figure5", title="Curves", caption="Cost.")
    assert (tmp_path / "figure5.svg").read_bytes() == first


def test_curves_that_cannot_be_drawn_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"bad.jsonl, line 1"):
        learning_curves.read_curve(write(tmp_path / "bad.jsonl", ["nonsense"]), "dev_perplexity")
    empty = write(tmp_path / "empty.jsonl", [json.dumps({"update": 1, "curve_perplexity": None})])
    with pytest.raises(ValueError, match=r"empty.jsonl.*dev"):
        learning_curves.main([f"x={empty}"], tmp_path / "figure5")


def test_bins_of_few_sentences_are_left_out():
    bins = [{"from": 1, "n": 10}, {"from": 11, "n": 9}]
    assert bleu_by_length.worth_drawing(bins) == bins[:1]
    assert bleu_by_length.worth_drawing(bins[1:]) == bins[1:]


def test_bleu_by_length_figure(tmp_path):
    bins = [
        {"from": 1, "to": 10, "n": 90, "bleu": 30.0, "interval": [27, 33]},
        {"from": 71, "to": None, "n": 12, "bleu": 9.0, "interval": [10, 12]},  # its interval does not hold the score
    ]
    write_json(tmp_path / "a.json", {"raw": {"by_length": bins}, "replaced": None})
    bleu_by_length.main(tmp_path / "figure6", raw=[f"base={tmp_path / 'a.json'}"])
    found = texts(tmp_path / "figure6.svg")
    assert {"base", "1–10", "71+", "n = 90", "n = 12"} <= set(found)
    with pytest.raises(ValueError, match="no scores of the replaced output"):
        bleu_by_length.main(tmp_path / "figure6", replaced=[f"base={tmp_path / 'a.json'}"])


def test_crossings_by_hand():
    assert alignment_matrices.crossings({(0, 0), (1, 1), (2, 2)}) == 0
    assert alignment_matrices.crossings({(0, 2), (1, 1), (2, 0)}) == 3
    assert alignment_matrices.crossings({(0, 1), (0, 2), (1, 0)}) == 2
    assert alignment_matrices.crossings({(0, 1), (1, 1), (2, 1)}) == 0


def test_sentence_of_the_figure(tmp_path):
    short, fit, long = ["w"] * 3, ["w"] * 8, ["w"] * 30
    sure = [{(0, 9), (9, 0)}, {(0, 0)}, {(0, 1), (1, 0)}, {(3, 4), (4, 3)}, {(0, 9), (1, 0)}]
    chosen = alignment_matrices.choose_sentence([short, fit, fit, fit, long], [short, fit, fit, fit, fit], sure)
    assert chosen == 2  # the first of the two that cross once; the others are too short or too long


def test_alignment_figure(tmp_path):
    source = write(tmp_path / "s", ["skip this", "he has seen the old house today"])
    target = write(tmp_path / "t", ["das", "er hat heute das alte Haus gesehen"])
    gold = write(tmp_path / "gold", ["1-1", "1-1 2-2 3-7 4-4 5-5 6-6 7p3"])
    weights = np.full((8, 8), 0.02)
    weights[6, 2] = 0.86
    write_attention(tmp_path / "a.npz", [np.ones((2, 3)) / 3, weights])
    options = {"source": source, "target": [target], "gold": gold, "output": tmp_path / "figure7"}
    alignment_matrices.main([f"global={tmp_path / 'a.npz'}"], **options)
    found = texts(tmp_path / "figure7.svg")
    assert found.count("gesehen") == 2 and found.count("house") == 2 and found.count("</s>") == 2
    assert "global" in found
    assert "Sentence 2" in read_json(tmp_path / "figure7.json")["caption"]


def test_sentences_without_gold():
    source = ["a b", *["known words here"] * 3, "of the European Economic Area ."]
    sources = [line.split() for line in source]
    sources[1:4] = [[*"abcdefghij"], [*"abcdefghik"], [*"abcdefghil"]]
    outputs = [[["x"], ["x"], ["<unk>"], ["x"], ["<unk>"]]]

    def choose(examples, count, words=None):
        vocabulary = Vocabulary([*SPECIALS, *words]) if words else None
        return alignment_matrices.choose_sentences(sources, outputs, examples, count, vocabulary, seed=1)

    chosen, rule = choose(["Economic  Area.", "nowhere"], 4)
    assert chosen == [4, 1, 3]  # an example may hold unknown words
    assert rule.startswith(" Those that the paper prints")
    assert choose(["Economic Area"], 1)[0] == [4]
    chosen, rule = choose([], 4, words="abcdefghijk")
    assert chosen == [1] and rule == " They were drawn at random (seed 1) from those of 10 to 20 words, none unknown."
    assert len(choose([], 1)[0]) == 1
    chosen, rule = choose([], 5, words="a")
    assert chosen == [0, 1, 2, 3, 4] and rule.endswith("from all.")
    outputs[0] = [[]] * 5
    with pytest.raises(ValueError, match="no sentence with words"):
        choose([], 4)


def test_alignments_of_the_systems_own_outputs(tmp_path):
    source = write(tmp_path / "s", ["a b", " ".join("abcdefghij"), " ".join("klmnopqrst")])
    one = write(tmp_path / "one.txt", ["x", "A B", "C"])
    two = write(tmp_path / "two.txt", ["x", "D", "E F G"])
    write_attention(tmp_path / "one.npz", [np.ones((n, m)) / m for n, m in ((2, 2), (3, 10), (2, 10))])
    write_attention(tmp_path / "two.npz", [np.ones((n, m)) / m for n, m in ((2, 3), (2, 11), (4, 11))])
    systems = [f"{name}={tmp_path / f'{name}.npz'}" for name in ("one", "two")]
    alignment_matrices.main(systems, source, [one, two], tmp_path / "figure3", sentences=2)
    found = texts(tmp_path / "figure3.svg")
    assert {"one, sentence 2", "one, sentence 3", "two, sentence 2", "two, sentence 3"} <= set(found)
    assert found.count("a") == 2 and {*"ABCDEFG"} <= set(found) and found.count("</s>") == 2
    caption = read_json(tmp_path / "figure3.json")["caption"]
    assert caption.startswith("Sentences 2, 3;") and "seed 12345" in caption
    with pytest.raises(ValueError, match="2 targets for 1 systems"):
        alignment_matrices.main(systems[:1], source, [one, two], tmp_path / "figure3")


def test_samples_follow_the_rule(tmp_path):
    source = ["a b", "not <x> no y", "q w e r t z", "", "r s", "m n", "he does not go"]
    best = ["<unk> b", "nein", "lang", "", "r", "m n", "er <unk> <unk>"]
    sizes = {"names": 1, "negations": 1, "longest": 1, "others": 2}
    chosen = samples.choose(source, best, "en", 1, sizes)
    assert chosen[:3] == [("unknown words", 6), ("negation", 1), ("longest", 2)]
    assert {reason for reason, _ in chosen[3:]} == {"random"} and {i for _, i in chosen[3:]} <= {0, 4, 5}
    assert chosen == samples.choose(source, best, "en", 1, sizes)
    sizes = {"names": 0, "negations": 0, "longest": 2, "others": 0}
    chosen = samples.choose(source, best, "en", 1, sizes, ["does  not go", "nowhere"])
    assert chosen == [("printed in the paper", 6), ("longest", 2), ("longest", 1)]
    assert samples.rule(sizes, [], 1).startswith(
        "Chosen by rule, each sentence once, the first of equals: the 2 longest sources."
    )


def test_samples_mark_replacements(tmp_path):
    source = write(tmp_path / "s", ["Orlando does not lie & rest", "x"])
    reference = write(tmp_path / "r", ["Orlando lügt nicht", "x"])
    best = write(tmp_path / "b", ["<unk> lügt nicht", "x"])
    replaced = write(tmp_path / "br", ["Orlando lügt nicht", "x"])
    base = write(tmp_path / "a", ["er lügt", "<unk>"])
    output = tmp_path / "samples"
    samples.main(source, reference, best, base, "en", output, best_replaced=replaced, names=1, negations=0, others=0)
    first = read_json(tmp_path / "samples.json")["samples"][0]
    assert first["outputs"][0]["words"][:2] == [
        {"word": "Orlando", "unknown": True},
        {"word": "lügt", "unknown": False},
    ]
    assert pd.read_csv(tmp_path / "samples.csv")["best"][0] == "⟦Orlando⟧ lügt nicht"
    assert "⟦Orlando⟧ lügt nicht" in (tmp_path / "samples.md").read_text(encoding="utf-8")
    tex = (tmp_path / "samples.tex").read_text(encoding="utf-8")
    assert "\\underline{Orlando} lügt" in tex and "lie \\& rest" in tex
    with pytest.raises(ValueError, match="number of words"):
        samples.mark("a <unk>", "a")
