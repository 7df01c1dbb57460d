"""The command line, from binary text to replaced translations, on a copy task with an unknown word."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nmt.__main__ import run
from nmt.attention_file import read_attention, write_attention
from nmt.commands import console
from tests.nmt.copying import INVERSE, SYSTEM, environment, invoke, train, write_texts

NMT = [sys.executable, "-m", "nmt"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts of five words, of which the rarest is unknown; models trained to copy them in capitals, and back."""
    folder = tmp_path_factory.mktemp("cli")
    write_texts(folder)
    train(folder, "model", SYSTEM)
    train(folder, "inverse", INVERSE)
    return folder


@pytest.fixture
def translate(folder):
    """Translations of what is given as standard input."""
    return lambda text, *options: invoke("translate", "--model", folder / "model", *options, input=text)


@pytest.fixture
def impatient():
    """Fails a test that waits for what never comes."""

    def give_up(*_):
        raise TimeoutError("waited a minute for lines that did not come")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


def failure(capsys, *arguments):
    """Exit code and standard error of a command that fails, one line long."""
    code = run([str(argument) for argument in arguments])
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return code, error


# ------------------------------------------------------------ what the experiments run


def test_train_writes_a_model_folder(folder):
    assert {path.name for path in (folder / "model").iterdir()} == {
        "model.safetensors", "config.json", "source.vocab", "target.vocab", "curve.jsonl", "provenance.json",
    }  # fmt: skip
    curve = [json.loads(line) for line in (folder / "model" / "curve.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in curve] == list(range(1, 11))
    provenance = json.loads((folder / "model" / "provenance.json").read_text())
    assert provenance["best_dev_perplexity"] == min(record["dev_perplexity"] for record in curve) < 1.2
    assert provenance["config"] == SYSTEM
    assert str(folder) not in json.dumps(provenance)


def test_evaluate_is_translate_and_force(folder, tmp_path):
    texts = ["--source", folder / "test.en", "--target", folder / "test.de"]
    places = [
        tmp_path / name for name in ("both.jsonl", "both.npz", "both.json", "apart.jsonl", "apart.npz", "apart.json")
    ]
    invoke("evaluate", "--model", folder / "model", *texts, "--decoding", '{"beam": 2}',
           "--translations", places[0], "--attention", places[1], "--forced", places[2])  # fmt: skip
    invoke("translate", "--model", folder / "model", *texts[:2], "--decoding", '{"beam": 2}', "--no-replace-unknown",
           "--output", places[3], "--attention", places[4])  # fmt: skip
    invoke("force", "--model", folder / "model", *texts, "--output", places[5])
    for both, apart in zip(places[:3], places[3:], strict=True):
        assert both.read_bytes() == apart.read_bytes()
    assert places[0].stat().st_size > 100


def test_translate_replace_and_force(folder):
    output, attention = folder / "test.jsonl", folder / "test.npz"
    invoke("translate", "--model", folder / "model", "--source", folder / "test.en", "--output", output,
           "--attention", attention)  # fmt: skip
    references = [line.split() for line in (folder / "test.de").read_text().splitlines()]
    records = [json.loads(line) for line in output.read_text().splitlines()]
    unknown = [["<unk>" if word == "E" else word for word in line] for line in references]
    assert [record["tokens"] for record in records] == unknown
    assert set(records[0]) == {"tokens", "log_probability", "alignment"}
    for record, matrix in zip(records, read_attention(attention), strict=True):
        assert record["alignment"]["predicting"] == list(range(len(record["tokens"])))
        assert matrix.shape == (len(record["tokens"]) + 1, len(record["tokens"]) + 1)
    invoke("replace", "--translations", output, "--source", folder / "test.en", "--dictionary",
           folder / "dictionary.tsv", "--output", folder / "replaced.txt", "--plain", folder / "plain.txt",
           "--counts", folder / "counts.json")  # fmt: skip
    assert [line.split() for line in (folder / "replaced.txt").read_text().splitlines()] == references
    counts = json.loads((folder / "counts.json").read_text())
    assert counts["unknown"] == counts["dictionary"] == sum(line.count("E") for line in references) > 0
    assert counts["copy"] == 0

    invoke("force", "--model", folder / "model", "--source", folder / "test.en", "--target", folder / "test.de",
           "--output", folder / "forced.json")  # fmt: skip
    forced = json.loads((folder / "forced.json").read_text())
    assert forced["words"] == sum(len(line) + 1 for line in references)
    assert 1 < forced["perplexity"] < 1.3
    assert forced["links"]["predicting"] == [[[i, i] for i in range(len(line))] for line in references]


def test_an_ensemble_of_equals_is_the_model(folder):
    one, two = folder / "one.jsonl", folder / "two.jsonl"
    for output, models in ((one, 1), (two, 2)):
        invoke("translate", *["--model", folder / "model"] * models, "--source", folder / "test.en", "--output", output)
    for alone, together in zip(one.read_text().splitlines(), two.read_text().splitlines(), strict=True):
        assert json.loads(alone)["tokens"] == json.loads(together)["tokens"]


def test_attention_file_keeps_empty_matrices(tmp_path):
    matrices = [np.eye(3), None, np.full((1, 2), 0.5)]
    write_attention(tmp_path / "a.npz", matrices)
    found = read_attention(tmp_path / "a.npz")
    assert [matrix.shape for matrix in found] == [(3, 3), (0, 0), (1, 2)]
    assert np.array_equal(found[2], [[0.5, 0.5]])


def test_training_that_is_told_to_stop_says_so_by_its_exit_code(folder, tmp_path):
    (tmp_path / "long.json").write_text(json.dumps(SYSTEM | {"training": SYSTEM["training"] | {"epochs": 10_000}}))
    pair = [folder / "train.en", folder / "train.de"]
    vocabularies = ["--source-vocabulary", folder / "en.txt", "--target-vocabulary", folder / "de.txt"]
    places = ["--state", tmp_path / "state", "--output", tmp_path / "model"]
    command = [
        *NMT,
        "train",
        "--system",
        tmp_path / "long.json",
        *vocabularies,
        "--train",
        *pair,
        "--dev",
        *pair,
        *places,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert "epoch 1," in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 75
        assert "the same command continues" in process.stderr.read().splitlines()[-1]
    assert not (tmp_path / "model").exists()


# ------------------------------------------------------------ translate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b\n\nb b b a\na\n", "A B\n\nB B B A\nA\n"),
        ("a b\na", "A B\nA\n"),  # no newline at the end
        ("a b\r\na\r\n", "A B\nA\n"),
        ("   \na\n", "\nA\n"),
        (" a  b \n", "A B\n"),
        ("", ""),
        ("\n", "\n"),
        ("\ufeffa\n", "A\n"),  # a byte order mark
        ("a\u2028b\n", "<unk>\n"),  # one line, one (unknown) word
        ("a \u0085 b\x0c\na\n", "A <unk> <unk>\nA\n"),
        ("a\tb c\0\na\n", "<unk> <unk>\nA\n"),
        ("a ||| b\n", "A <unk> B\n"),
    ],
)
def test_every_line_is_answered_by_a_line(translate, text, expected):
    assert translate(text) == expected


def test_input_that_is_no_utf_8_is_named_by_its_line(folder, capsys, monkeypatch):
    (folder / "latin1").write_bytes(b"a\nb\n\xfcber\n")
    with (folder / "latin1").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        code, error = failure(capsys, "translate", "--model", folder / "model")
    assert code == 1
    assert error.startswith("error: standard input, line 3: expected UTF-8, found the bytes fc 62 65 72 at byte 1")


def test_lines_that_are_too_long_are_refused(folder, capsys, tmp_path):
    (tmp_path / "long").write_text("a\n" + "a " * 41 + "\n")
    code, error = failure(
        capsys, "translate", "--model", folder / "model", "--source", tmp_path / "long", "--longest-line", 40
    )
    assert code == 1
    assert f"{tmp_path / 'long'}, line 2: found 41 words, expected at most 40; split" in error


def test_unknown_words_are_replaced_by_the_dictionary_given_or_the_folders_own(translate, folder):
    assert translate("e b e\n") == "<unk> B <unk>\n"
    given = ("--unk-replacement", folder / "dictionary.tsv")
    assert translate("e b z\n", *given) == "E B z\n"
    assert translate("e b\n", "--replace-unknown") == "e B\n"  # copied
    own = folder / "model" / "dictionary.tsv"
    own.write_text("e\tEE\t1\n")
    try:
        assert translate("e b\n") == "EE B\n"
        assert translate("e b\n", *given) == "E B\n"
        assert translate("e b\n", "--no-replace-unknown") == "<unk> B\n"
        record = json.loads(translate("e b\n", "--json"))
        assert (record["tokens"], record["replaced"]) == (["<unk>", "B"], ["EE", "B"])
    finally:
        own.unlink()


def test_n_best_lists_are_sorted_and_have_their_alignments(translate, tmp_path):
    found = translate("a b\n\n", "--n-best", "3", "--beam", "4", "--alignments", tmp_path / "links").splitlines()
    rows = [line.split(" ||| ") for line in found]
    assert [row[0] for row in rows] == ["0", "0", "0", "1"]
    assert rows[0][1] == "A B"
    scores = [float(row[2]) for row in rows]
    assert scores[0] > scores[1] > scores[2]
    links = (tmp_path / "links").read_text().splitlines()
    assert [len(line.split()) for line in links] == [len(row[1].split()) for row in rows]
    assert (links[0], links[3]) == ("0-0 1-1", "")
    record = json.loads(translate("a b\n", "--n-best", "3", "--json"))
    assert record["tokens"] == record["n_best"][0]["tokens"] == ["A", "B"]
    assert len(record["n_best"]) == 3


def test_raw_text_in_and_out(translate):
    pytest.importorskip("sacremoses")
    assert translate("a,b.\n", "--tokenise", "--replace-unknown") == "A , B .\n"
    assert translate("a,\u2028 b.\n", "--tokenise", "--replace-unknown", "--detokenise") == "A, B.\n"


def test_sacremoses_is_asked_for_where_it_is_missing(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    code, error = failure(capsys, "translate", "--model", folder / "model", "--tokenise")
    assert code == 1
    assert "need sacremoses, which is not installed: `pip install sacremoses`" in error


def test_three_thousand_lines_through_a_pipe_are_those_of_a_file(folder, tmp_path):
    rng = np.random.default_rng(7)
    lines = [" ".join(rng.choice(list("abcde"), size=rng.integers(0, 4))) for _ in range(3000)]
    (tmp_path / "text").write_text("".join(line + "\n" for line in lines))
    command = ["translate", "--model", folder / "model", "--beam", "1"]
    invoke(*command, "--source", tmp_path / "text", "--output", tmp_path / "translated")
    with subprocess.Popen(
        [*NMT, *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        found, _ = process.communicate((tmp_path / "text").read_bytes())
    assert process.returncode == 0
    assert found == (tmp_path / "translated").read_bytes()
    assert found.count(b"\n") == 3000


def test_a_slow_pipe_is_answered_as_it_comes_and_may_be_closed(folder, impatient):
    command = [*NMT, "translate", "--model", str(folder / "model")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        for text, answer in ((b"a b\n", b"A B\n"), (b"\nc", b"\n"), (b" d\n", b"C D\n")):
            process.stdin.write(text)
            process.stdin.flush()
            assert process.stdout.readline() == answer
        process.stdout.close()  # as `| head -3` does
        process.stdin.write(b"a\n")
        process.stdin.close()
        assert process.wait(timeout=30) == console.CLOSED_PIPE
        assert process.stderr.read() == b""


def test_control_c_leaves_no_file_and_no_stack_trace(folder, tmp_path):
    places = ["--output", tmp_path / "out", "--alignments", tmp_path / "links"]
    with subprocess.Popen(
        [*NMT, "translate", "--model", folder / "model", *places],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        # where the tests themselves run in the background, the signal is ignored by whatever they start
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        process.stdin.write(b"a\n")
        process.stdin.flush()
        deadline = time.monotonic() + 30
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []


def test_blocks_are_full_unless_the_stream_falls_silent(monkeypatch, impatient):
    read, write = os.pipe()
    monkeypatch.setattr(console, "PATIENCE", 0)
    with os.fdopen(read, "rb") as stream:
        blocks = console._stream_blocks(stream, 2)
        os.write(write, b"1\n2\n3\n4")
        assert next(blocks) == [b"1", b"2"]
        assert next(blocks) == [b"3"]
        os.write(write, b"4\n")
        os.close(write)
        assert list(blocks) == [[b"44"]]


# ------------------------------------------------------------ align, score, show, info


def test_align_in_one_and_in_two_directions(folder, tmp_path):
    pair = ["--source", folder / "test.en", "--target", folder / "test.de"]
    lengths = [len(line.split()) for line in (folder / "test.en").read_text().splitlines()]
    diagonal = [" ".join(f"{i}-{i}" for i in range(length)) for length in lengths]
    assert invoke("align", "--model", folder / "model", *pair).splitlines() == diagonal
    for method in ("grow-diag-final-and", "intersection", "union"):
        invoke("align", "--model", folder / "model", "--inverse", folder / "inverse", *pair, "--symmetrise", method,
               "--output", tmp_path / "links")  # fmt: skip
        assert (tmp_path / "links").read_text().splitlines() == diagonal
    (tmp_path / "en").write_text("a b c\n\n")
    (tmp_path / "de").write_text("A\nA\n")
    uneven = ["--source", tmp_path / "en", "--target", tmp_path / "de", "--format", "talp"]
    assert invoke("align", "--model", folder / "model", *uneven) == "1-1\n\n"
    both = ["--model", folder / "model", "--inverse", folder / "inverse", "--symmetrise", "union"]
    assert invoke("align", *both, *uneven) == "1-1 2-1 3-1\n\n"  # local-m: each word of the source looks at the last


def test_align_refuses_models_and_texts_that_do_not_fit(folder, capsys, tmp_path):
    pair = ["--source", folder / "test.en", "--target", folder / "test.de"]
    code, error = failure(capsys, "align", "--model", folder / "model", "--inverse", folder / "model", *pair)
    assert (code, "--inverse: found a model of en-de, expected one of de-en" in error) == (1, True)
    (tmp_path / "short").write_text("A\n")
    code, error = failure(
        capsys, "align", "--model", folder / "model", "--source", folder / "test.en", "--target", tmp_path / "short"
    )
    assert (code, f"{tmp_path / 'short'} ends after line 1, but {folder / 'test.en'} goes on" in error) == (1, True)


def test_scores_add_up_to_those_of_force(folder, tmp_path, capsys):
    pair = ["--source", folder / "test.en", "--target", folder / "test.de"]
    invoke("score", "--model", folder / "model", *pair, "--output", tmp_path / "scores")
    invoke("force", "--model", folder / "model", *pair, "--output", tmp_path / "forced.json")
    forced = json.loads((tmp_path / "forced.json").read_text())
    rows = [list(map(float, line.split("\t"))) for line in (tmp_path / "scores").read_text().splitlines()]
    assert sum(row[0] for row in rows) == pytest.approx(-forced["nll"], abs=1e-4)
    assert sum(row[1] for row in rows) == forced["words"]
    for log_probability, words, perplexity in rows:
        assert perplexity == pytest.approx(np.exp(-log_probability / words), rel=1e-4)


def test_show_prints_the_matrix_and_draws_it(folder, tmp_path):
    found = invoke("show", "a b", "--model", folder / "model").splitlines()
    assert [line.split() for line in found] == [
        ["a", "b", "</s>"], ["A", "100", ".", "."], ["B", ".", "100", "."], ["</s>", ".", ".", "100"],
    ]  # fmt: skip
    invoke("show", "a $b$", "--model", folder / "model", "--target", "A", "--output", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_info_says_what_a_folder_is(folder):
    found = json.loads(invoke("info", folder / "model", "--json"))
    assert found["system"] == "copy"
    assert found["attention"] == "local-m, dot, window 0"
    # embeddings 2 x 7 x 16; LSTMs 2 x 4 x 24 x (16 + 24); W_c 24 x 48; W_s 7 x 24
    assert found["parameters"] == f"{224 + 7680 + 1152 + 168:,}"
    assert found["vocabulary"] == "7 source words, 7 target words"
    assert found["best"].endswith("of 300")
    assert "direction      en-de" in invoke("info", folder / "model")


# ------------------------------------------------------------ what goes wrong


def test_help_and_mistakes_do_not_load_torch(folder):
    script = "import sys; from nmt.__main__ import run; run(sys.argv[1:]); assert 'torch' not in sys.modules"
    for arguments in (["--help"], ["translate", "--help"], ["info", str(folder / "model")], ["transalte"]):
        subprocess.run([sys.executable, "-c", script, *arguments], check=True, capture_output=True, env=environment())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["translate", "--model", "nowhere"], 1, "nowhere: not a model folder"),
        (["translate", "--model", "M", "--source", "nowhere"], 1, "nowhere: No such file or directory"),
        (["translate", "--model", "M", "--source", "."], 1, ".: found a folder, expected a text file"),
        (["translate", "--model", "M", "--device", "cuda:9"], 1, "device cuda:9: "),
        (["translate", "--model", "M", "--decoding", "beam 3"], 1, "--decoding: found 'beam 3', expected JSON"),
        (["translate", "--model", "M", "--decoding", '{"bean": 3}'], 1, "did you mean `beam`?"),
        (["translate", "--model", "M", "--bem", "3"], 2, "No such option: --bem"),
        (["translate", "--model", "M", "--beam", "0"], 2, "greater than or equal to 1"),
        (["translate"], 2, "Missing option '--model'"),
        (["transalte"], 2, "Did you mean 'translate'"),
        (["info", "."], 1, ".: not a model folder: config.json is missing"),
        (["show", " ", "--model", "M"], 1, "the sentence is empty"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(folder, capsys, arguments, code, message):
    arguments = [folder / "model" if argument == "M" else argument for argument in arguments]
    if arguments == ["translate"]:
        arguments = ["translate", "--quiet"]
    found, error = failure(capsys, *arguments)
    assert found == code
    assert error.startswith("error: ")
    assert message in error


def test_damaged_weights_are_named(folder, capsys, tmp_path):
    for path in (folder / "model").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.safetensors").write_bytes((folder / "model" / "model.safetensors").read_bytes()[:500])
    code, error = failure(capsys, "translate", "--model", tmp_path)
    assert code == 1
    assert f"{tmp_path / 'model.safetensors'}: damaged weights" in error


def test_replacement_and_alignment_need_attention(folder, capsys):
    train(folder, "plain", SYSTEM | {"model": SYSTEM["model"] | {"attention": None}, "training": {"epochs": 1}})
    command = ["translate", "--model", folder / "plain", "--source", folder / "test.en"]
    code, error = failure(capsys, *command, "--unk-replacement", folder / "dictionary.tsv")
    assert (code, "has no attention" in error) == (1, True)
    assert len(invoke(*command).splitlines()) == 12
    assert not Path("plain.json").exists()
