"""Beam search of OpenNMT-py with our weights, so that both search the very same distributions.

Its model has biases, which are zero, and one word more, `<blank>` (index 1), which is never predicted. Ours reads the
source from its `</s>` back to its first word; OpenNMT-py is given the words in that order.
"""

from __future__ import annotations

import time

import onmt
import torch
from onmt.models import NMTModel
from onmt.translate import GNMTGlobalScorer, Translator
from opennmt import EOS, PAD, build
from torch import Tensor
from turns import begin, receive, reply


def with_blank(weight: Tensor) -> Tensor:
    """Rows of words, with one for `<blank>` after that of `<unk>`."""
    return torch.cat([weight[:1], torch.zeros_like(weight[:1]), weight[1:]])


def load(model: NMTModel, ours: dict[str, Tensor], layers: int) -> None:
    """Give our weights to its model."""
    weights = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    for side, name in (("encoder", "source"), ("decoder", "target")):
        embedding = with_blank(ours[f"{name}_embedding.weight"])
        weights[f"{side}.embeddings.make_embedding.emb_luts.0.weight"] = embedding
    for layer in range(layers):
        for part in ("weight_ih", "weight_hh"):
            weights[f"encoder.rnn.{part}_l{layer}"] = ours[f"encoder.layers.{layer}.{part}_l0"]
            weights[f"decoder.rnn.layers.{layer}.{part}"] = ours[f"decoder.layers.{layer}.{part}_l0"]
    weights["decoder.attn.linear_in.weight"] = ours["attention.score.project.weight"].t()
    weights["decoder.attn.linear_out.weight"] = ours["combine.weight"]
    weights["generator.weight"] = with_blank(ours["output.weight"])
    weights["generator.bias"][PAD] = -1e9
    torch.nn.Module.load_state_dict(model, weights)
    model.eval()


def main() -> None:
    """Translate all sentences on each request, in batches of like length, the longest first."""
    sizes = begin(f"OpenNMT-py {onmt.__version__}")
    _, vocabs, model = build(sizes | {"vocabulary": sizes["vocabulary"] + 1, "batch": 64})
    saved = torch.load(sizes["model"])
    load(model, saved["weights"], sizes["layers"])
    sources = [[EOS, *(word + 1 for word in reversed(words))] for words in saved["sources"][: sizes["sentences"]]]
    order = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    scorer = GNMTGlobalScorer(alpha=0.0, beta=0.0, length_penalty="none", coverage_penalty="none")
    while True:
        request = receive()
        search = Translator(model, vocabs, beam_size=request["beam"], global_scorer=scorer, dump_beam=False)
        found, size = [], request["batch"]
        start = time.perf_counter()
        for first in range(0, len(order), size):
            batch = [torch.tensor(sources[i]) for i in order[first : first + size]]
            length = torch.tensor([len(source) for source in batch])
            padded = torch.nn.utils.rnn.pad_sequence(batch, batch_first=True, padding_value=PAD)
            result = search.translate_batch({"src": padded.unsqueeze(2), "srclen": length}, attn_debug=False)
            found += [best[0] for best in result["predictions"]]
        seconds = time.perf_counter() - start
        words = [[word - 1 for word in hypothesis.tolist() if word != EOS] for hypothesis in found]
        reply(seconds=seconds, translations=[words[i] for i in sorted(range(len(order)), key=order.__getitem__)])


if __name__ == "__main__":
    main()
