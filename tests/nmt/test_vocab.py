"""Vocabulary: order, specials, errors."""

from collections import Counter

import numpy as np
import pytest

from nmt.vocab import BOS, EOS, SPECIALS, UNK, Vocabulary, build_vocabulary


def test_most_frequent_words_with_specials_inside_and_ties_by_text():
    counts = Counter({"b": 2, "a": 2, "z": 5, "é": 2, "rare": 1, "</s>": 99})
    assert build_vocabulary(counts, 6).words == ["<unk>", "<s>", "</s>", "z", "a", "b"]
    assert build_vocabulary(counts, 50).words == ["<unk>", "<s>", "</s>", "z", "a", "b", "é", "rare"]
    with pytest.raises(ValueError, match="found 3"):
        build_vocabulary(counts, 3)


def test_encode_and_decode():
    vocabulary = Vocabulary([*SPECIALS, "Haus", "das"])
    indices = vocabulary.encode(["das", "Auto", "Haus", "</s>"])
    assert indices.dtype == np.int32
    assert indices.tolist() == [4, UNK, 3, EOS]
    assert vocabulary.decode(indices) == ["das", "<unk>", "Haus", "</s>"]
    assert vocabulary.encode([]).shape == (0,)
    assert (vocabulary.index("Haus"), vocabulary.index("?"), vocabulary.index("<s>")) == (3, UNK, BOS)
    assert "das" in vocabulary and "Auto" not in vocabulary
    assert len(vocabulary) == 5


def test_round_trip_keeps_odd_words(tmp_path):
    path = tmp_path / "v.txt"
    Vocabulary([*SPECIALS, "a\u2028b", "ü"]).save(path)
    assert Vocabulary.load(path).words == [*SPECIALS, "a\u2028b", "ü"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("a\nb\nc\n", r"v\.txt, lines 1-3: expected <unk> <s> </s>"),
        ("", r"v\.txt, lines 1-3"),
        ("<unk>\n<s>\n</s>\na\n\nb\n", r"v\.txt, line 5: expected one word"),
        ("<unk>\n<s>\n</s>\na b\n", r"v\.txt, line 4: expected one word, found 'a b'"),
        ("<unk>\n<s>\n</s>\na\nb\na\n", r"v\.txt, line 6: 'a' is already in line 4"),
    ],
)
def test_bad_files_are_refused_by_line(tmp_path, text, message):
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Vocabulary.load(path)
