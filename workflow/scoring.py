"""BLEU with its convention, interval and significance: sacreBLEU's own numbers, as plain dictionaries."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from nmt.files import read_lines

SAMPLES = 1000

CONVENTIONS = {
    "bleu_tokenized": "Tokenised, case-sensitive, unsmoothed corpus BLEU of the tokenised output against the tokenised "
    "reference (sacreBLEU tokenize=none, smooth=none; the same as multi-bleu.perl).",
    "bleu_nist": "Case-sensitive BLEU as mteval-v13a.pl counts it (sacreBLEU tokenize=13a, smooth=exp): the output is "
    "detokenised by sacremoses, the reference is the raw text, and punctuation is normalised on both sides.",
    "bleu_13a": "As bleu_nist, without punctuation normalisation on either side: plain sacreBLEU.",
    "interval": "95% interval of sacreBLEU's bootstrap over sentences: its mean plus or minus its half width.",
    "by_length": "Tokenised BLEU of the sentences whose tokenised source has that many words; empty sources are in no "
    "bin.",
    "perplexity": "exp of the negative log-likelihood a target word by forced decoding of the tokenised reference; the "
    "end of the sentence and <unk> count as words.",
    "unknown": "A replacement is right if its word occurs in the reference and no other word of the output already "
    "accounts for that occurrence; else it is wrong (a correct synonym counts as wrong).",
}


def read_parallel(path: Path, lines: int, partner: Path) -> list[str]:
    """The lines of `path`; ValueError with both counts unless there are `lines` of them, as in `partner`."""
    found = read_lines(path)
    if len(found) != lines:
        raise ValueError(
            f"{path} has {len(found)} lines, but {partner} has {lines}; they must be parallel, line for line: "
            "delete the one that is out of date and build it again"
        )
    return found


def bleu_metric(name: str) -> BLEU:
    """sacreBLEU's metric behind a name of `CONVENTIONS`."""
    if name == "bleu_tokenized":
        return BLEU(tokenize="none", smooth_method="none", force=True)
    if name in ("bleu_nist", "bleu_13a"):
        return BLEU(tokenize="13a", smooth_method="exp", force=True)
    raise ValueError(f"found the metric {name!r}, expected bleu_tokenized, bleu_nist or bleu_13a")


def bleu(name: str, hypotheses: Sequence[str], references: Sequence[str], seed: int, samples: int = SAMPLES) -> dict:
    """Corpus BLEU (0 to 100) with bootstrap mean, 95% interval, brevity penalty, lengths (words) and signature."""
    os.environ["SACREBLEU_SEED"] = str(seed)  # the only way to seed sacreBLEU's resampling
    metric = bleu_metric(name)
    score = metric.corpus_score(hypotheses, [references], n_bootstrap=samples)
    return {
        "score": float(score.score),
        "mean": float(score._mean),
        "interval": [float(score._mean - score._ci), float(score._mean + score._ci)],
        "precisions": [float(p) for p in score.precisions],
        "brevity_penalty": float(score.bp),
        "hypothesis_length": int(score.sys_len),
        "reference_length": int(score.ref_len),
        "signature": str(metric.get_signature()),
    }


def paired_bootstrap(
    name: str, baseline: Sequence[str], system: Sequence[str], references: Sequence[str], seed: int, samples: int
) -> dict:
    """sacreBLEU's paired bootstrap: `delta` = system - baseline in BLEU, `p` = how often chance alone gives more.

    Equal scores get p = 1: sacreBLEU would give its smallest p where no resampling tells the two apart.
    """
    os.environ["SACREBLEU_SEED"] = str(seed)
    systems = [("baseline", baseline), ("system", system)]
    signatures, scores = PairedTest(systems, {name: bleu_metric(name)}, [references], "bs", samples)()
    below, above = scores["BLEU"]
    return {
        "delta": float(above.score - below.score),
        "p": 1.0 if above.score == below.score else float(above.p_value),
        "signature": str(signatures["BLEU"]),
    }


class Surface:
    """Detokenised text of one language, as readers see it; `normalise` levels quotes, dashes and spaces."""

    def __init__(self, language: str, escaped: bool):
        from sacremoses import MosesDetokenizer, MosesPunctNormalizer  # half a second, for the few that need them

        self.detokeniser = MosesDetokenizer(lang=language)
        self.normaliser = MosesPunctNormalizer(lang=language)
        self.escaped = escaped  # the tokens hold Moses' XML entities

    def detokenise(self, line: str) -> str:
        return self.detokeniser.detokenize(line.split(), unescape=self.escaped)

    def normalise(self, line: str) -> str:
        return self.normaliser.normalize(line)


def bleu_texts(name: str, tokenised: Sequence[str], surface: Surface) -> list[str]:
    """System output in the form that the metric `name` reads."""
    if name == "bleu_tokenized":
        return list(tokenised)
    detokenised = [surface.detokenise(line) for line in tokenised]
    return [surface.normalise(line) for line in detokenised] if name == "bleu_nist" else detokenised


def reference_texts(name: str, tokenised: Sequence[str], raw: Sequence[str], surface: Surface) -> list[str]:
    """The reference in the form that the metric `name` reads."""
    if name == "bleu_tokenized":
        return list(tokenised)
    return [surface.normalise(line) for line in raw] if name == "bleu_nist" else list(raw)


def provenance(inputs: Sequence[Path | None], seed: int) -> dict[str, Any]:
    """Checksums of the inputs (by file name), the seed, and the versions that decide the numbers."""
    return {
        "inputs": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in inputs if path},
        "seed": seed,
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("sacrebleu", "sacremoses", "numpy")},
        },
    }
