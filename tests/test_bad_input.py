"""Bad input, at the doors where it comes in: an error that names file, line and cure, or a rule that is stated here.

What concerns one module alone is tested with it: line counts (test_prepare, test_score, test_corpus), line ends and
UTF-8 (test_files), filters (test_prepare), gold links (test_alignment), configurations (test_config), standard input
(test_cli), damaged and foreign training states (test_checkpoint).
"""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

import nmt.__main__
from nmt.attention_file import read_attention
from nmt.checkpoint import StateFolder
from nmt.corpus import BinaryText, ParallelCorpus, binarise
from nmt.files import read_json, read_lines, write_json
from nmt.models import build_model, load_model, save_model
from nmt.search import Decoding, Hypothesis, translate
from nmt.training import TrainingConfig, train
from nmt.vocab import Vocabulary, build_vocabulary, split_words
from workflow.catalogue import Text
from workflow.scripts import dictionary, prepare, score, vocabulary
from workflow.scripts.extract import extract, open_member

ROOT = Path(__file__).parents[1]
SYSTEM = {"family": "luong", "layers": 1, "hidden": 4, "embedding": 4}
MODELS = {
    "plain": SYSTEM | {"attention": None},
    "global-dot": SYSTEM | {"attention": {"scope": "global", "score": "dot"}},
    "location": SYSTEM | {"attention": {"scope": "global", "score": "location"}},
    "local-m": SYSTEM | {"attention": {"scope": "local-m", "score": "general"}, "input_feeding": True},
    "local-p": SYSTEM | {"attention": {"scope": "local-p", "score": "general"}},
    "bahdanau": {"family": "bahdanau", "hidden": 4, "embedding": 4, "maxout": 2},
}


def prepared(folder: Path, raw: bytes, **options: object) -> list[str]:
    """One's own file of these bytes, extracted and prepared."""
    (folder / "own.en").write_bytes(raw)
    extract({"en": Text(str(folder / "own.en"))}, folder, folder / "raw", "own")
    prepare.main(
        text=[f"en={folder / 'raw' / 'own.en'}"], output=[f"en={folder / 'own.txt'}"], report=folder / "report.json",
        **{"tokeniser": "none", "threads": 1} | options,
    )  # fmt: skip
    return read_lines(folder / "own.txt")


def texts(folder: Path, pairs: list[tuple[str, str]], size: int = 50, name: str = "train") -> ParallelCorpus:
    """Prepared text as word indices; the vocabularies are those of the first text that is given in a folder."""
    sides = []
    for language, lines in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        path = folder / f"{language}.txt"
        if not path.exists():
            build_vocabulary(Counter(word for line in lines for word in split_words(line)), size).save(path)
        binarise(lines, Vocabulary.load(path), folder / f"{name}.{language}")
        sides.append(BinaryText(folder / f"{name}.{language}"))
    return ParallelCorpus(*sides)


# ------------------------------------------------------------ characters


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\xef\xbb\xbfa b\n", "a b"),  # a byte order mark at the start of a file is no text
        ("a\u2028b\u2029c\u0085d\u00a0e\tf\vg\fh\ri\n".encode(), "a b c d e f g h i"),  # spaces, not line ends
        (b"a\x00b c\x01\n", "ab c"),  # NUL and other control characters are left out
        ("a\u200bb\u200d \ufeffc\n".encode(), "a\u200bb\u200d \ufeffc"),  # zero-width characters are letters
        (b" \t \xc2\xa0 \n", ""),  # spaces alone are an empty line
        (b"a b", "a b"),  # the last line needs no end
        (b"a b\r\n", "a b"),
        (b"<unk> <s> </s> <unk>x\n", "&lt;unk&gt; &lt;s&gt; &lt;/s&gt; <unk>x"),  # reserved words become others
        (b"a ||| b &amp; &#124; | <b>\n", "a ||| b &amp; &#124; | <b>"),  # no character else means anything
    ],
)  # fmt: skip
def test_characters_follow_stated_rules(tmp_path: Path, raw: bytes, expected: str) -> None:
    lines = prepared(tmp_path, b"before\n" * (not raw.startswith(b"\xef")) + raw)
    assert lines[-1] == expected
    assert len(lines) == 1 + (not raw.startswith(b"\xef"))
    assert split_words(expected) == expected.split()  # so that scoring, which splits so, counts the same words


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
def test_other_encodings_are_named_by_line(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(ValueError, match=r"own\.en, line \d+: expected UTF-8, found the bytes .*; convert the file"):
        prepared(tmp_path, "größer als nötig\n".encode(encoding))


def test_words_that_look_like_markup_go_through_every_station(tmp_path: Path) -> None:
    """Through vocabulary, indices and dictionary, and none of them becomes <unk>."""
    words = ["|||", "&amp;", "&lt;unk&gt;", "<unk>x", "\u200b", "a\u200bb", '"', "'", "$x", "\\n", "-", "#"]
    for language in ("en", "de"):
        lines = [" ".join(words[i:] + words[:i]) for i in range(len(words))] * 2
        (tmp_path / f"train.{language}").write_text("".join(line + "\n" for line in lines))
    vocabulary.main(texts=tmp_path, size=["en=15", "de=15"], output=tmp_path / "vocabulary")
    known = Vocabulary.load(tmp_path / "vocabulary" / "en.txt")
    assert set(known.words[3:]) == set(words)
    binarise(read_lines(tmp_path / "train.en"), known, tmp_path / "binary")
    assert known.decode(BinaryText(tmp_path / "binary")[1]) == words[1:] + words[:1]
    sides = {"source": tmp_path / "train.en", "target": tmp_path / "train.de"}
    dictionary.main(**sides, output=tmp_path / "dictionary.tsv", aligner="ibm1", minimum_count=1)
    assert {tuple(line.split("\t")[:1]) for line in read_lines(tmp_path / "dictionary.tsv")} <= {(w,) for w in words}
    assert all(line.count("\t") == 2 for line in read_lines(tmp_path / "dictionary.tsv"))


# ------------------------------------------------------------ lengths


@pytest.mark.parametrize("tokeniser", ["none", "moses"])
def test_very_long_lines_and_words(tmp_path: Path, tokeniser: str) -> None:
    """Training text leaves such lines out by their words, quickly; elsewhere line i stays line i."""
    lines = ["short", "word " * 100_000, "x" * 1_000_000, "short"]
    raw = "".join(line + "\n" for line in lines).encode()
    assert [len(line.split()) for line in prepared(tmp_path, raw, tokeniser=tokeniser)] == [1, 100_000, 1, 1]
    kept = prepared(tmp_path, raw, tokeniser=tokeniser, filter=True, max_length=50)
    assert [len(line) for line in kept] == [5, 1_000_000, 5]  # a word is a word: rare, so that it becomes <unk>
    assert read_json(tmp_path / "report.json")["removed"]["too_long"] == 1


def test_a_sentence_of_dev_beyond_all_use_is_named(tmp_path: Path) -> None:
    corpus = texts(tmp_path, [("a b", "A B")] * 4)
    dev = texts(tmp_path, [("a", "A"), ("a " * 1001, "A")], name="dev")
    with pytest.raises(ValueError, match=r"dev\.en, line 2: found 1001 words, expected at most 1000"):
        run(tmp_path, corpus, dev)


def run(folder: Path, corpus: ParallelCorpus, dev: ParallelCorpus, name: str = "global-dot", **training: int):
    """A model trained for an epoch; its best perplexity."""
    model = build_model(MODELS[name], tuple(len(Vocabulary.load(folder / f"{x}.txt")) for x in ("en", "de")), 1)
    config = TrainingConfig.from_dict({"epochs": 1, "batch_size": 2, "fetch": 2} | training)
    return model, train(model, corpus, dev, config, 1, folder / "state" / name, progress=False).best_perplexity


@pytest.mark.parametrize("name", MODELS)
def test_batches_of_one_pair_of_one_word(tmp_path: Path, name: str) -> None:
    corpus = texts(tmp_path, [("a", "A"), ("b", "B"), ("c", "C")])
    model, perplexity = run(tmp_path, corpus, corpus, name, batch_size=1, fetch=1, max_length=1)
    assert 1 < perplexity < 10
    best, empty = translate(model, [np.array([3]), np.array([], np.int64)], Decoding(beam=2))
    assert np.isfinite(best.log_probability) and empty.words == []


def test_empty_pairs_are_neither_trained_nor_evaluated_on(tmp_path: Path) -> None:
    full = [("a b", "A"), ("b", "B A"), ("a", "A")]
    found = []
    for name, pairs in (("full", full), ("holes", [("", "A"), full[0], ("a", ""), *full[1:], ("", "")])):
        (tmp_path / name).mkdir()
        for language in ("en", "de"):
            build_vocabulary(Counter({"a": 2, "b": 1, "A": 2, "B": 1}), 9).save(tmp_path / name / f"{language}.txt")
        corpus = texts(tmp_path / name, pairs)
        found.append(run(tmp_path / name, corpus, corpus, batch_size=3, fetch=3)[1])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_a_dev_text_without_a_known_word_is_refused(tmp_path: Path) -> None:
    corpus = texts(tmp_path, [("a b", "A B")] * 4)
    dev = texts(tmp_path, [("a b", "x y"), ("b", "")], name="dev")
    with pytest.raises(ValueError, match=r"dev\.de: of 2 words found none in the vocabulary.*right language"):
        run(tmp_path, corpus, dev)
    some = texts(tmp_path, [("x y", "x y"), ("b", "x A")], name="dev")
    assert np.isfinite(run(tmp_path, corpus, some)[1])


# ------------------------------------------------------------ numbers of lines


def test_another_version_of_a_test_set_is_not_scored(tmp_path: Path) -> None:
    """newstest2014 has 3,003 sentences; a filtered version has 2,737."""
    for name, lines in (("hypothesis", 2737), ("reference", 3003), ("raw", 3003), ("source", 3003)):
        (tmp_path / name).write_text("a b\n" * lines)
    with pytest.raises(ValueError, match=r"hypothesis has 2737 lines, but .*reference has 3003; they must be parallel"):
        score.main(
            translations=tmp_path / "hypothesis", reference_text=tmp_path / "reference",
            reference_raw=tmp_path / "raw", source=tmp_path / "source", system="s", test="t", direction="en-de",
            output=tmp_path / "score.json", samples=2, seed=1, escaped=False,
        )  # fmt: skip
    assert not (tmp_path / "score.json").exists()


# ------------------------------------------------------------ what files may hold


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
)
def test_of_an_archive_only_files_are_read(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        outside = tarfile.TarInfo("../outside")
        outside.size = 4
        archive.addfile(outside, io.BytesIO(b"evil"))
        member = tarfile.TarInfo("text.en")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    with pytest.raises(ValueError, match=r"expected text\.en to be a file, found a link, folder or device"):  # noqa: SIM117
        with open_member(tmp_path / "a.tar", "text.en"):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


def test_nothing_that_is_read_is_executed(tmp_path: Path) -> None:
    """Weights, training states, word indices and attention that hold a pickle instead."""
    trap, sprung = tmp_path / "trap", Trap(tmp_path / "sprung")
    torch.save({"weights": sprung}, trap)
    with pytest.raises(Exception, match=r"weights_only|Unsupported|WeightsUnpickler"):
        torch.load(trap, weights_only=True)  # it is a trap
    words = Vocabulary(["<unk>", "<s>", "</s>", "a"])
    model = tmp_path / "model"
    save_model(model, build_model(SYSTEM, (4, 4), 1), {"name": "m", "model": SYSTEM}, words, words)
    for number, content in enumerate((trap.read_bytes(), pickle.dumps(sprung))):
        (model / "model.safetensors").write_bytes(content)
        with pytest.raises(Exception, match=r"header|safetensors"):
            load_model(model)
        with StateFolder(tmp_path / f"state{number}") as folder:
            folder.save({"weights": torch.ones(2)}, {"update": 1})
            (folder.path / "000001.safetensors").write_bytes(content)
            assert folder.load() is None
    array = np.array([sprung], dtype=object)
    np.save(tmp_path / "text.ids.npy", array, allow_pickle=True)
    np.save(tmp_path / "text.offsets.npy", np.array([0, 1]))
    with pytest.raises(ValueError, match=r"text\.ids\.npy: not a binary text"):
        BinaryText(tmp_path / "text")
    np.savez(tmp_path / "attention.npz", weights=array, shapes=np.array([[1, 1]]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        read_attention(tmp_path / "attention.npz")
    assert not (tmp_path / "sprung").exists()
    pickle.loads(pickle.dumps(sprung))
    assert (tmp_path / "sprung").exists()  # the trap works


# ------------------------------------------------------------ places and memory


def script(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A script of the workflow, by hand."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, ROOT / "workflow" / "scripts" / f"{name}.py", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_places_that_are_wrong_are_named_without_a_stack_trace(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a\n")
    (tmp_path / "words").write_text("<unk>\n<s>\n</s>\n")
    no_text = script("binarise", "--text", tmp_path / "no", "--vocabulary", tmp_path / "words", "--output", "x")
    inside = tmp_path / "text" / "below-a-file" / "x"
    no_room = script("binarise", "--text", tmp_path / "text", "--vocabulary", tmp_path / "words", "--output", inside)
    for failed, place in ((no_text, tmp_path / "no"), (no_room, tmp_path / "text")):
        assert failed.returncode == 1
        assert failed.stderr.startswith("error: ") and failed.stderr.count("\n") == 1
        assert str(place) in failed.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError), StateFolder(tmp_path / "state"):
        pass


def test_a_gpu_too_small_for_translation_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def too_small(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    words = Vocabulary(["<unk>", "<s>", "</s>", "a"])
    save_model(tmp_path, build_model(SYSTEM, (4, 4), 1), {"name": "m", "model": SYSTEM}, words, words)
    (tmp_path / "text").write_text("a\n")
    monkeypatch.setattr("nmt.api.translate_best", too_small)
    arguments = ["translate", "--model", str(tmp_path), "--source", str(tmp_path / "text"), "--quiet"]
    assert nmt.__main__.run(arguments) == 1
    assert capsys.readouterr().err == "error: the GPU's memory is too small: lower --beam, or use --device cpu\n"


@pytest.mark.parametrize("budget", [1, 40, 1000])
def test_a_batch_of_the_search_keeps_to_its_budget(monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    """Hypotheses x source words; a sentence alone may be over it."""
    batches = []

    def search(_: object, source: torch.Tensor, length: torch.Tensor, decoding: Decoding) -> list[list[Hypothesis]]:
        batches.append(decoding.beam * source.numel() if len(source) > 1 else 0)
        return [[Hypothesis([n], 0.0, None)] for n in length.tolist()]

    monkeypatch.setattr("nmt.search.beam_search", search)
    lengths = np.random.default_rng(0).integers(1, 60, 100).tolist()
    found = translate(None, [np.ones(n, np.int64) for n in lengths], Decoding(beam=3, token_budget=budget))
    assert [hypothesis.words for hypothesis in found] == [[n] for n in lengths]
    assert max(batches) <= budget
    assert budget < 1000 or len(batches) < 50


def test_json_that_is_none(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"a": 1})
    (tmp_path / "a.json").write_text((tmp_path / "a.json").read_text()[:-3])
    with pytest.raises(ValueError, match=r"a\.json, line \d: found no valid JSON .*build it again"):
        read_json(tmp_path / "a.json")
