"""Beam search of this package, as `nmt.search.translate` does it for everyone."""

from __future__ import annotations

import time

import numpy as np
import torch
from turns import begin, receive, reply

from nmt.attention import AttentionConfig
from nmt.luong import LuongConfig, LuongModel
from nmt.search import Decoding, translate


def main() -> None:
    """Translate all sentences on each request."""
    sizes = begin("ours")
    vocabulary, hidden = sizes["vocabulary"], sizes["hidden"]
    model = LuongModel(
        LuongConfig(
            vocabulary, vocabulary, sizes["layers"], hidden, hidden, input_feeding=True, attention=AttentionConfig()
        )
    )
    saved = torch.load(sizes["model"])
    model.load_state_dict(saved["weights"])
    sources = [np.array(source) for source in saved["sources"][: sizes["sentences"]]]
    while True:
        decoding = Decoding(beam=receive()["beam"])
        start = time.perf_counter()
        found = translate(model, sources, decoding)
        seconds = time.perf_counter() - start
        reply(seconds=seconds, translations=[hypothesis.words for hypothesis in found])


if __name__ == "__main__":
    main()
