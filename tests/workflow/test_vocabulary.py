"""Vocabulary and binary text from prepared files."""

import numpy as np
import pytest

from nmt.corpus import BinaryText
from nmt.files import read_json, read_lines, write_lines
from workflow.scripts import binarise, vocabulary


def test_vocabularies_coverage_and_indices(tmp_path, capsys):
    texts = {"train.en": ["b a b", "", "c a b"], "train.de": ["x"], "dev.en": ["a z", "z z"], "dev.de": [""]}
    for name, lines in texts.items():
        write_lines(tmp_path / name, lines)
    vocabulary.main(texts=tmp_path, size=["en=5", "de=9"], output=tmp_path / "v", cover=["dev"], threads=1)
    assert read_lines(tmp_path / "v" / "en.txt") == ["<unk>", "<s>", "</s>", "b", "a"]
    assert read_lines(tmp_path / "v" / "de.txt") == ["<unk>", "<s>", "</s>", "x"]
    assert capsys.readouterr().err == "warning: de: 9 words asked for, 4 found; all are taken\n"
    vocabulary.main(texts=tmp_path, size=["en=5", "de=9"], output=tmp_path / "w", cover=["dev"], threads=2)
    for name in ("en.txt", "de.txt", "coverage.json"):
        assert read_lines(tmp_path / "w" / name) == read_lines(tmp_path / "v" / name)
    report = read_json(tmp_path / "v" / "coverage.json")
    assert report["train"]["en"] == {
        "types": 3,
        "known_types": 2,
        "tokens": 6,
        "known_tokens": 5,
        "unknown_share": pytest.approx(1 / 6),
    }
    assert report["dev"]["en"]["unknown_share"] == pytest.approx(3 / 4)
    assert report["dev"]["de"] == {"types": 0, "known_types": 0, "tokens": 0, "known_tokens": 0, "unknown_share": None}
    binarise.main(text=tmp_path / "dev.en", vocabulary=tmp_path / "v" / "en.txt", output=tmp_path / "b" / "dev.en")
    binary = BinaryText(tmp_path / "b" / "dev.en")
    np.testing.assert_array_equal(np.concatenate([binary[0], binary[1]]), [4, 0, 0, 0])
    assert binary.lengths.tolist() == [2, 2]


def test_a_text_without_words_is_refused(tmp_path):
    write_lines(tmp_path / "train.en", ["", ""])
    write_lines(tmp_path / "train.de", ["x"])
    with pytest.raises(ValueError, match=r"train\.en: expected words, found none"):
        vocabulary.main(texts=tmp_path, size=["en=5", "de=5"], output=tmp_path / "v", threads=2)
