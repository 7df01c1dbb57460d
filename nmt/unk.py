"""Replacing `<unk>` in the output by way of the attention (Luong et al. 2015, section 4; Luong et al. 2015b)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from nmt.files import iterate_lines
from nmt.vocab import SPECIALS, UNK

STEPS = ("predicting", "input")


def aligned_source(attention: np.ndarray, source_length: int, step: str = "predicting") -> list[int]:
    """The source word each output word is linked to: the largest weight over the source's words.

    attention: (words + 1, columns), row i the step that predicts word i, the last row the one that predicts `</s>`;
    a column after the source's words, that of `</s>`, is never linked to. step: `predicting` links a word by the
    step that predicts it, `input` by the next step, where it is the input (footnote 14). Ties go to the left.
    Returns 0-based positions. Raises ValueError for an unknown step, and for output words without a source word.
    """
    if step not in STEPS:
        raise ValueError(f"alignment step: found {step!r}, expected one of {', '.join(STEPS)}")
    rows = attention[:-1] if step == "predicting" else attention[1:]  # (words, columns)
    weights = rows[:, :source_length]
    if len(weights) and not weights.shape[1]:
        raise ValueError(f"alignment: found {len(weights)} output words and no source word to link them to")
    return weights.argmax(axis=1).tolist() if len(weights) else []


def replace_unknown(
    tokens: Sequence[str], alignment: Sequence[int], source_words: Sequence[str], dictionary: Mapping[str, str]
) -> tuple[list[str], list[str | None]]:
    """Each `<unk>` becomes the dictionary's translation of the source word it is linked to, else that word itself.

    alignment: for each token the 0-based source position (`aligned_source`); source_words: the surface words, as
    they were before unknown ones became `<unk>`. Returns the tokens and for each None, `dictionary` or `copy`.
    Raises ValueError if the alignment does not fit the tokens or the source.
    """
    if len(alignment) != len(tokens):
        raise ValueError(f"unknown words: found {len(alignment)} links for {len(tokens)} tokens, expected one each")
    replaced: list[str] = []
    kinds: list[str | None] = []
    for token, position in zip(tokens, alignment, strict=True):
        if not 0 <= position < len(source_words):
            raise ValueError(
                f"unknown words: found a link to source word {position}, expected 0 to {len(source_words) - 1}; "
                "use the source text that was translated"
            )
        if token != SPECIALS[UNK]:
            replaced.append(token)
            kinds.append(None)
            continue
        word = source_words[position]
        replaced.append(dictionary.get(word, word))
        kinds.append("dictionary" if word in dictionary else "copy")
    return replaced, kinds


def load_dictionary(path: str | os.PathLike[str], minimum_count: int = 1) -> dict[str, str]:
    """The most frequent translation of each source word, from lines `source TAB target TAB count`.

    Pairs counted fewer than `minimum_count` times are left out; of equally frequent translations the first by text
    is taken. Raises ValueError naming file and line.
    """
    best: dict[str, tuple[int, str]] = {}  # source word -> (-count, target word)
    for number, line in enumerate(iterate_lines(path), start=1):
        fields = line.split("\t")
        if len(fields) != 3 or not fields[0] or not fields[1] or not (fields[2].isascii() and fields[2].isdigit()):
            raise ValueError(
                f"{path}, line {number}: found {line!r}, expected a source word, a target word and a count between "
                "tabs; build the dictionary again"
            )
        source, target, count = fields[0], fields[1], int(fields[2])
        if count >= minimum_count:
            best[source] = min(best.get(source, (-count, target)), (-count, target))
    return {source: target for source, (_, target) in best.items()}
