"""Raw text to words and back, by sacremoses, which is needed for nothing else here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

SPACE = re.compile(r"\s+")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b]")


def tokeniser(language: str) -> Callable[[str], str]:
    """Tokenises a line as the experiments do by default: white space made single spaces, nothing escaped."""
    moses = _sacremoses().MosesTokenizer(lang=language)

    def tokenise(line: str) -> str:
        line = SPACE.sub(" ", CONTROL.sub("", line)).strip()
        return moses.tokenize(line, escape=False, return_str=True) if line else ""

    return tokenise


def detokeniser(language: str) -> Callable[[str], str]:
    """Joins the words of a line as the language writes them."""
    moses = _sacremoses().MosesDetokenizer(lang=language)
    return lambda line: moses.detokenize(line.split(" "), unescape=False) if line else ""


def _sacremoses() -> Any:
    try:
        import sacremoses
    except ImportError as error:
        raise ValueError(
            "--tokenise and --detokenise need sacremoses, which is not installed: `pip install sacremoses`, or give "
            "text that is tokenised already"
        ) from error
    return sacremoses
