"""The command line: `python -m nmt train | translate | force | replace`. Torch is loaded only by those that need it."""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.files import open_atomic, read_json, read_lines, write_json, write_lines

if TYPE_CHECKING:
    from nmt.models import Translator
    from nmt.search import Decoding, Hypothesis

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)

Pair = tuple[Path, Path]
Models = Annotated[list[Path], typer.Option("--model", help="Model folder; give it several times for an ensemble.")]
Average = Annotated[Literal["probabilities", "logits"], typer.Option(help="What an ensemble averages.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1 ... or auto: a GPU if there is one.")]
DecodingText = Annotated[str, typer.Option("--decoding", help="JSON of decoding keys over those of the model.")]


@app.command()
def train(
    system: Annotated[Path, typer.Option(help="JSON: name, direction, model, training, decoding, seed.")],
    source_vocabulary: Annotated[Path, typer.Option(help="A word a line.")],
    target_vocabulary: Annotated[Path, typer.Option(help="A word a line.")],
    train: Annotated[Pair, typer.Option(help="Prefixes of the binary source and target text.")],
    dev: Annotated[Pair, typer.Option(help="The same of the text that chooses the best weights.")],
    state: Annotated[Path, typer.Option(help="Folder for the training state, which an interrupted run continues.")],
    output: Annotated[Path, typer.Option(help="Model folder to write.")],
    curve: Annotated[Pair | None, typer.Option(help="A second text for the learning curve.")] = None,
    device: Device = "auto",
) -> None:
    """Train a system and write its model folder. Exit code 75: interrupted, the same command continues."""
    from nmt.checkpoint import fingerprint
    from nmt.corpus import BinaryText, ParallelCorpus, ids_path, offsets_path
    from nmt.models import build_model, save_model
    from nmt.provenance import checksum, provenance
    from nmt.training import TrainingConfig
    from nmt.training import train as run
    from nmt.vocab import Vocabulary

    started = time.monotonic()
    settings = read_json(system)
    config = TrainingConfig.from_dict(settings["training"])
    vocabularies = Vocabulary.load(source_vocabulary), Vocabulary.load(target_vocabulary)
    model = build_model(settings["model"], (len(vocabularies[0]), len(vocabularies[1])), settings["seed"])
    corpora = {name: ParallelCorpus(*map(BinaryText, pair)) for name, pair in (("train", train), ("dev", dev))}
    data = {
        f"{name}.{side}.{kind}": checksum(path(prefix))
        for name, pair in (("train", train), ("dev", dev))
        for side, prefix in zip(("source", "target"), pair, strict=True)
        for kind, path in (("ids", ids_path), ("offsets", offsets_path))
    } | {"source.vocabulary": checksum(source_vocabulary), "target.vocabulary": checksum(target_vocabulary)}
    decisive = {key: value for key, value in asdict(config).items() if key != "save_minutes"}
    identity = fingerprint(
        {"model": [type(model).__name__, asdict(model.config)], "training": decisive, "seed": settings["seed"], **data}
    )
    result = run(
        model,
        corpora["train"],
        corpora["dev"],
        config,
        settings["seed"],
        state / identity,
        curve=None if curve is None else ParallelCorpus(*map(BinaryText, curve)),
        device=choose_device(device),
        identity=identity,
    )
    save_model(output, model, settings, *vocabularies)
    write_lines(output / "curve.jsonl", [json.dumps(record) for record in result.curve])
    record = provenance(settings, settings["seed"], data, choose_device(device), time.monotonic() - started)
    training = {
        "updates": result.updates,
        "epochs": result.epochs,
        "best_update": result.best_update,
        "best_dev_perplexity": result.best_perplexity,
        "training_seconds": round(result.seconds, 3),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    write_json(output / "provenance.json", record | training)


@app.command()
def translate(
    model: Models,
    source: Annotated[Path | None, typer.Option(help="Tokenised text, a sentence a line; else standard input.")] = None,
    output: Annotated[Path | None, typer.Option(help="JSON lines: tokens, log-probability, alignment.")] = None,
    attention: Annotated[Path | None, typer.Option(help="Attention matrices (.npz).")] = None,
    average: Average = "probabilities",
    decoding: DecodingText = "{}",
    device: Device = "auto",
) -> None:
    """Translate by beam search. Without --output the translations go to standard output, a line each."""
    from nmt.attention_file import write_attention
    from nmt.search import translate as search

    translator = load(model, average, choose_device(device))
    lines = read_lines(source) if source else sys.stdin.read().splitlines()
    sources = encode(lines, translator.source)
    found = search(translator.model, sources, search_settings(translator, decoding), choose_device(device))
    tokens = [translator.target.decode(hypothesis.words) for hypothesis in found]
    if attention is not None:
        write_attention(attention, [hypothesis.attention for hypothesis in found])
    if output is None:
        for words in tokens:
            print(" ".join(words))
        return
    with open_atomic(output) as file:
        for words, hypothesis, sentence in zip(tokens, found, sources, strict=True):
            record = {
                "tokens": words,
                "log_probability": hypothesis.log_probability,
                "alignment": alignments(hypothesis, len(sentence)),
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


@app.command()
def force(
    model: Models,
    source: Annotated[Path, typer.Option(help="Tokenised text, a sentence a line.")],
    target: Annotated[Path, typer.Option(help="Its translation, tokenised.")],
    output: Annotated[Path, typer.Option(help="JSON: negative log-likelihood, perplexity, alignment links, entropy.")],
    attention: Annotated[Path | None, typer.Option(help="Attention matrices (.npz).")] = None,
    average: Average = "probabilities",
    device: Device = "auto",
) -> None:
    """Read given translations (forced decoding): perplexity, and the word alignment that attention makes."""
    from nmt.attention_file import write_attention
    from nmt.search import force as read

    translator = load(model, average, choose_device(device))
    pairs = encode(read_lines(source), translator.source), encode(read_lines(target), translator.target)
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(
            f"{source} has {len(pairs[0])} lines, {target} has {len(pairs[1])}; expected one translation a line"
        )
    kept = [i for i, (s, t) in enumerate(zip(*pairs, strict=True)) if len(s) and len(t)]
    sources, targets = ([side[i] for i in kept] for side in pairs)
    found = read(translator.model, sources, targets, search_settings(translator, "{}"), choose_device(device))
    nll, words = -sum(h.log_probability for h in found), sum(len(h.words) + 1 for h in found)
    attends = bool(found) and found[0].attention is not None
    links: dict[str, list[Any]] | None = None
    if attends:
        links = {step: [[] for _ in pairs[0]] for step in ("predicting", "input")}
        for i, hypothesis in zip(kept, found, strict=True):
            for step, positions in (alignments(hypothesis, len(pairs[0][i])) or {}).items():
                links[step][i] = [[position, t] for t, position in enumerate(positions)]
    if attention is not None:
        by_line = {i: hypothesis.attention for i, hypothesis in zip(kept, found, strict=True)}
        write_attention(attention, [by_line.get(i) for i in range(len(pairs[0]))])
    write_json(
        output,
        {
            "nll": nll,
            "words": words,
            "sentences": len(found),
            "perplexity": math.exp(nll / words) if words else None,
            "entropy": mean_entropy(found, sources) if attends else None,
            "links": links,
        },
    )


@app.command()
def replace(
    translations: Annotated[Path, typer.Option(help="What `translate --output` wrote.")],
    source: Annotated[Path, typer.Option(help="The tokenised source text.")],
    dictionary: Annotated[Path, typer.Option(help="source word TAB target word TAB count")],
    output: Annotated[Path, typer.Option(help="The translations with each <unk> replaced, a line each.")],
    counts: Annotated[Path, typer.Option(help="JSON: how many were replaced, and how.")],
    plain: Annotated[Path, typer.Option(help="The translations as they are, a line each.")],
    alignment_step: Annotated[Literal["predicting", "input"], typer.Option(help="Footnote 14.")] = "predicting",
    minimum_count: Annotated[int, typer.Option(help="Use dictionary entries seen at least so often.")] = 1,
) -> None:
    """Replace each <unk> through its aligned source word: by the dictionary, else by the word itself."""
    from nmt.unk import load_dictionary, replace_unknown
    from nmt.vocab import SPECIALS, split_words

    entries = load_dictionary(dictionary, minimum_count)
    records = [json.loads(line) for line in read_lines(translations)]
    sources = [split_words(line) for line in read_lines(source)]
    if len(records) != len(sources):
        raise ValueError(f"{translations} has {len(records)} lines, {source} has {len(sources)}; expected equally many")
    replaced, tokens_replaced = [], []
    for line, (record, words) in enumerate(zip(records, sources, strict=True)):
        alignment = record["alignment"] and record["alignment"][alignment_step]
        tokens, kind = (
            (record["tokens"], [None] * len(record["tokens"]))
            if alignment is None
            else replace_unknown(record["tokens"], alignment, words, entries)
        )
        replaced.append(" ".join(tokens))
        tokens_replaced += [{"line": line, "position": i, "kind": k} for i, k in enumerate(kind) if k]
    unknown = sum(record["tokens"].count(SPECIALS[0]) for record in records)
    kinds = Counter(token["kind"] for token in tokens_replaced)
    totals = {"dictionary": kinds["dictionary"], "copy": kinds["copy"]}
    write_lines(plain, [" ".join(record["tokens"]) for record in records])
    write_lines(output, replaced)
    write_json(counts, {"unknown": unknown, **totals, "alignment_step": alignment_step, "tokens": tokens_replaced})


def choose_device(name: str) -> str:
    """`auto` is a GPU if there is one."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name


def load(folders: list[Path], average: str, device: str) -> Translator:
    """One model, or an ensemble of several."""
    from nmt.models import load_ensemble, load_model

    if len(folders) == 1:
        return load_model(folders[0], device)
    return load_ensemble(folders, average, device)


def search_settings(translator: Translator, text: str) -> Decoding:
    """The model's own decoding settings, with those of `text` (JSON) over them."""
    from nmt.config import from_mapping
    from nmt.search import Decoding

    return from_mapping(Decoding, {**translator.system.get("decoding", {}), **json.loads(text)}, "decoding")


def encode(lines: list[str], vocabulary: Any) -> list[Any]:
    """Word indices of each line."""
    from nmt.vocab import split_words

    return [vocabulary.encode(split_words(line)) for line in lines]


def alignments(hypothesis: Hypothesis, source_length: int) -> dict[str, list[int]] | None:
    """The source word aligned with each output word, under both rules of footnote 14."""
    from nmt.unk import aligned_source

    if hypothesis.attention is None or source_length == 0:
        return None
    return {step: aligned_source(hypothesis.attention, source_length, step) for step in ("predicting", "input")}


def mean_entropy(hypotheses: list[Hypothesis], sources: list[Any]) -> float:
    """Entropy of attention over the source's words in nats, mean over the steps of all sentences."""
    import numpy as np

    from nmt.alignment import attention_entropy

    pairs = zip(hypotheses, sources, strict=True)
    return float(np.nanmean(np.concatenate([attention_entropy(h.attention, len(s)) for h, s in pairs])))


def main() -> None:
    """Run, and turn what the user can mend into one line on standard error."""
    from nmt.interruption import Interrupted

    try:
        app()
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        sys.exit(75)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
