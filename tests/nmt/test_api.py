"""The Python interface, on a model that copies words in capitals; and that `import nmt` is cheap."""

import subprocess
import sys

import numpy as np
import pytest

import nmt
from tests.nmt.copying import SYSTEM, environment, train, write_texts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api")
    write_texts(folder)
    train(folder, "model", SYSTEM)
    return folder


def test_translate(folder):
    model = nmt.load(folder / "model")
    assert (model.name, model.languages, model.attends) == ("copy", ("en", "de"), True)
    first, empty, unknown = model.translate(["a b", "", "e b"])
    assert (first.text, first.words, first.links) == ("A B", ["A", "B"], [(0, 0), (1, 1)])
    assert first.attention.shape == (3, 3)
    assert (empty.text, empty.links, empty.log_probability) == ("", [], 0.0)
    assert (unknown.text, unknown.replaced) == ("<unk> B", None)
    assert unknown.alignments["input"] == [1, 0]  # the last step looks at `</s>`, which is no word; ties go left


def test_the_dictionary_replaces_unknown_words(folder):
    model = nmt.load(folder / "model", dictionary=folder / "dictionary.tsv")
    found = model.translate(["e b", ""])
    assert [each.text for each in found] == ["E B", ""]
    assert found[0].tokens == ["<unk>", "B"]
    assert model.translate(["e b"], replace_unknown=False)[0].text == "<unk> B"
    assert nmt.load(folder / "model").translate(["e b"], replace_unknown=True)[0].text == "e B"


def test_align_and_score_read_what_is_given(folder):
    model = nmt.load(str(folder / "model"))
    assert model.align(["a b", "", "b"], ["A B", "A", "B B"]) == [[(0, 0), (1, 1)], [], [(0, 0), (0, 1)]]
    assert model.align(["a b"], ["A B"], step="input") == [[(1, 0), (0, 1)]]
    right, wrong, empty = model.score(["a b", "a b", "a"], ["A B", "B A", ""])
    assert right.words == wrong.words == 3
    assert right.log_probability > wrong.log_probability
    assert right.perplexity == pytest.approx(np.exp(-right.log_probability / 3))
    assert empty is None
    assert right.log_probability == pytest.approx(model.translate(["a b"])[0].log_probability, abs=1e-4)


def test_an_ensemble_and_a_beam(folder):
    model = nmt.load([folder / "model", folder / "model"], average="logits")
    assert model.name == "copy + copy"
    best = model.translate_best(["a b"], 3, beam=5)[0]
    assert best[0].text == "A B"
    assert best[0].log_probability > best[1].log_probability > best[2].log_probability


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda model: model.translate("a b"), "expected a list of lines"),
        (lambda model: model.translate(["a"], beam=0), "beam is 0, expected at least 1"),
        (lambda model: model.align(["a"], []), "found 1 source and 0 target lines"),
        (lambda model: model.align(["a"], ["A"], step="next"), "alignment step: found 'next'"),
        (lambda model: nmt.load([]), "found no model folder"),
        (lambda model: nmt.load("nowhere"), "nowhere: not a model folder"),
    ],
)
def test_mistakes_say_what_was_expected(folder, mistake, message):
    with pytest.raises(ValueError, match=message):
        mistake(nmt.load(folder / "model"))


def test_import_does_not_load_torch():
    script = "import sys, nmt; assert 'torch' not in sys.modules and 'numpy' not in sys.modules; nmt.load"
    subprocess.run([sys.executable, "-c", script], check=True, env=environment())
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = nmt.nothing
