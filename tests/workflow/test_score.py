"""Scores against known sacreBLEU cases and hand-worked alignments."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from nmt.attention_file import write_attention
from nmt.files import read_json
from workflow.scoring import SAMPLES, bleu, paired_bootstrap
from workflow.scripts import align_score, compare, score


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_bleu_by_hand():
    # 1-grams 5/6, 2-grams 3/5, 3-grams 1/4; 4-grams 0/3: unsmoothed BLEU is 0
    result = bleu("bleu_tokenized", ["the cat sat on a mat"], ["the cat sat in a mat"], seed=1, samples=10)
    assert result["score"] == 0
    assert result["precisions"] == pytest.approx([100 * 5 / 6, 60, 25, 0])
    # 6 of 7, 5 of 6, 4 of 5, 3 of 4; 7 words against 8
    result = bleu("bleu_tokenized", ["a b c d e f x"], ["a b c d e f g h"], seed=1, samples=10)
    expected = 100 * math.exp(1 - 8 / 7) * (6 / 7 * 5 / 6 * 4 / 5 * 3 / 4) ** 0.25
    assert result["score"] == pytest.approx(expected)
    assert result["brevity_penalty"] == pytest.approx(math.exp(1 - 8 / 7))
    assert (result["hypothesis_length"], result["reference_length"]) == (7, 8)
    assert "tok:none|smooth:none" in result["signature"] and "bs:10|seed:1" in result["signature"]


def test_bleu_is_case_sensitive_and_safe_for_empty_lines():
    assert bleu("bleu_tokenized", ["A B C D"], ["a b c d"], 1, 10)["score"] == 0
    assert bleu("bleu_tokenized", ["", ""], ["a b c d", ""], 1, 10)["score"] == 0
    assert bleu("bleu_nist", ["", "a b c d"], ["", "a b c d"], 1, 10)["score"] == pytest.approx(100)


def test_interval_holds_the_score_and_depends_on_the_seed_alone():
    rng = np.random.default_rng(0)
    references = [" ".join(rng.choice(list("abcdefg"), 12)) for _ in range(60)]
    hypotheses = [" ".join(w if rng.random() < 0.8 else "x" for w in line.split()) for line in references]
    first, again, other = (bleu("bleu_tokenized", hypotheses, references, seed, 200) for seed in (1, 1, 2))
    assert first == again
    assert first["interval"] != other["interval"]
    assert first["interval"][0] < first["score"] < first["interval"][1]


def test_paired_bootstrap():
    rng = np.random.default_rng(0)
    references = [" ".join(rng.choice(list("abcdefghij"), 12)) for _ in range(100)]
    worse = [" ".join(w if rng.random() < 0.6 else "x" for w in line.split()) for line in references]
    clear = paired_bootstrap("bleu_tokenized", worse, references, references, 1, 200)
    assert clear["delta"] > 20 and clear["p"] == pytest.approx(1 / 201)
    same = paired_bootstrap("bleu_tokenized", worse, worse, references, 1, 200)
    assert same["delta"] == 0 and same["p"] == 1
    tied = paired_bootstrap("bleu_tokenized", ["x"] * 100, ["y"] * 100, references, 1, 200)
    assert tied["delta"] == 0 and tied["p"] == 1  # both are 0 whatever is drawn
    alike = [" ".join(w if rng.random() < 0.6 else "x" for w in line.split()) for line in references]
    assert paired_bootstrap("bleu_tokenized", worse, alike, references, 1, 200)["p"] > 0.05


def test_length_bins():
    bins = score.length_bins([0, 1, 10, 11, 70, 71, 200])
    assert bins == {(1, 10): [1, 2], (11, 20): [3], (61, 70): [4], (71, None): [5, 6]}


def test_replacements_are_judged_against_the_reference():
    raw = ["<unk> met <unk> and <unk>", "a <unk> Kerr"]
    replaced = ["Kerr met Dow and Dow", "a Kerr Kerr"]
    reference = ["Kerr met Dow and Ray", "a Kerr b"]  # one Dow to give; the second line's Kerr is already accounted for
    kinds = ["copy", "dictionary", "dictionary"]
    tokens = [{"line": 0, "position": p, "kind": k} for p, k in zip((0, 2, 4), kinds, strict=True)]
    tokens.append({"line": 1, "position": 1, "kind": "copy"})
    counts = score.judge_replacements(raw, replaced, reference, tokens)
    assert counts == {
        "in_output": 4,
        "kinds": {
            "copy": {"count": 2, "right": 1, "wrong": 1},
            "dictionary": {"count": 2, "right": 1, "wrong": 1},
        },
    }


@pytest.fixture
def texts(tmp_path):
    raw = ["The cat sat on the mat.", "There is a “house”.", "He didn't see it,"]
    tokens = ["The cat sat on the mat .", "There is a “ house ” .", "He didn 't see it ,"]
    return {
        "--translations": write(tmp_path / "t.txt", [tokens[0], 'There is a " <unk> " .', tokens[2]]),
        "--replaced": write(tmp_path / "t.replaced.txt", [tokens[0], 'There is a " house " .', tokens[2]]),
        "--reference-text": write(tmp_path / "ref.tok", tokens),
        "--reference-raw": write(tmp_path / "ref.raw", raw),
        "--source": write(tmp_path / "source.txt", ["a b c", "d " * 12, ""]),
    }


def call(script, options):
    arguments = [str(item) for pair in options.items() for item in pair]
    return subprocess.run(
        [sys.executable, "-m", f"workflow.scripts.{script}", *arguments], capture_output=True, text=True
    )


def test_score_file(texts, tmp_path):
    (tmp_path / "forced.json").write_text(json.dumps({"nll": 20.0, "words": 10, "perplexity": math.exp(2)}))
    (tmp_path / "rep.json").write_text(json.dumps({"tokens": [{"line": 1, "position": 4, "kind": "copy"}]}))
    names = {"--system": "s", "--test": "t", "--direction": "de-en", "--samples": 20}
    extra = {"--forced": tmp_path / "forced.json", "--replacements": tmp_path / "rep.json"}
    done = call("score", texts | names | extra | {"--output": tmp_path / "score.json"})
    assert done.returncode == 0, done.stderr
    found = read_json(tmp_path / "score.json")
    assert found["perplexity"] == {"value": math.exp(2), "words": 10, "nll": 20.0}
    assert found["unknown"]["kinds"] == {"copy": {"count": 1, "right": 1, "wrong": 0}}
    assert found["raw"]["bleu_tokenized"]["score"] < found["replaced"]["bleu_tokenized"]["score"] < 100  # quotes differ
    assert found["replaced"]["bleu_nist"]["score"] == pytest.approx(100)  # normalised: quotes are equal
    assert found["replaced"]["bleu_13a"]["score"] < 100  # not normalised
    assert [(row["from"], row["to"], row["n"]) for row in found["raw"]["by_length"]] == [(1, 10, 1), (11, 20, 1)]


def test_unequal_line_counts_name_both(texts, tmp_path):
    write(texts["--translations"], ["one line"])
    names = {"--system": "s", "--test": "t", "--direction": "de-en", "--output": tmp_path / "score.json"}
    done = call("score", texts | names)
    assert done.returncode == 1 and done.stderr.startswith("error: ")
    assert "has 1 lines" in done.stderr and "has 3" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "score.json").exists()


def test_comparisons_step_over_rows_without_system(texts, tmp_path):
    for system, lines in {
        "base": ["x", "y", "z"],
        "best": ["The cat sat on the mat .", "There is a <unk> .", "n"],
    }.items():
        (tmp_path / "translations" / system).mkdir(parents=True)
        write(tmp_path / "translations" / system / "t.txt", lines)
        write(tmp_path / "translations" / system / "t.replaced.txt", [line.replace("<unk>", "house") for line in lines])
    rows = [{"label": "theirs"}, {"system": "base"}, {"label": "theirs"}, {"system": "best"}]
    rows.append({"system": "best", "replace": True})
    spec = {"name": "t1", "test": "t", "direction": "de-en", "columns": ["perplexity", "bleu_tokenized"], "rows": rows}
    compare.main(
        json.dumps(spec),
        tmp_path / "translations",
        texts["--reference-text"],
        texts["--reference-raw"],
        tmp_path / "t1.json",
        samples=50,
    )
    found = read_json(tmp_path / "t1.json")["comparisons"]
    assert [(c["above"], c["row"], c["column"]) for c in found] == [(1, 3, "bleu_tokenized"), (3, 4, "bleu_tokenized")]
    assert found[0]["delta"] > 0 and all(0 < c["p"] <= 1 for c in found)


def test_alignment_scores_by_hand(tmp_path):
    # sure {(0,0), (1,1)}, possible also (2,1); found {(0,0), (2,1)}: |A&S| 1, |A&P| 2, |A| 2, |S| 2 -> AER 1/4
    write(tmp_path / "gold.talp", ["1-1 2-2 3p2", "1-1"])
    write(tmp_path / "source", ["a b c", "se en"])  # in other tokens than in the training text
    write(tmp_path / "target", ["x y", "z"])
    write(tmp_path / "training", ["something", "seen"])
    links = {"predicting": [[[0, 0], [2, 1]], [[0, 0]]], "input": [[[1, 0], [1, 1]], [[0, 0]]]}
    (tmp_path / "forced.json").write_text(json.dumps({"links": links, "perplexity": 2.0, "words": 5, "nll": 3.5}))
    steps = [[0.5, 0.5, 0, 0], [0, 0, 1, 0], [0.25, 0, 0.25, 0.5]]  # the last column, </s>, is left out
    write_attention(tmp_path / "a.npz", [np.array(steps), np.ones((2, 2)) / 2])
    paths = [tmp_path / name for name in ("forced.json", "gold.talp", "source", "target")]
    align_score.main(*paths, "s", "gold", tmp_path / "out.json", tmp_path / "a.npz", tmp_path / "training", samples=20)
    found = read_json(tmp_path / "out.json")
    assert (found["lines"], found["left_out_as_seen_in_training"]) == (1, 1)
    predicting, late = found["alignment"]["predicting"], found["alignment"]["input"]
    assert (predicting["aer"], predicting["precision"], predicting["recall"]) == (0.25, 1.0, 0.5)
    assert late["aer"] == pytest.approx(1 - (1 + 1) / (2 + 2))
    assert found["entropy"] == pytest.approx(4 * math.log(2) / 5)  # five steps in the two sentences
    assert found["sharpness"] == pytest.approx((0.5 + 1 + 0.5 + 0.5 + 0.5) / 5)


def test_gold_beyond_the_sentence_is_refused(tmp_path):
    write(tmp_path / "gold.talp", ["4-1"])
    write(tmp_path / "source", ["a b c"])
    write(tmp_path / "target", ["x"])
    (tmp_path / "forced.json").write_text(json.dumps({"links": {}}))
    paths = [tmp_path / name for name in ("forced.json", "gold.talp", "source", "target")]
    with pytest.raises(ValueError, match="line 1"):
        align_score.main(*paths, "s", "gold", tmp_path / "out.json", None, None, 1, SAMPLES)
