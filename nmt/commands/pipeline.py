"""What the experiments run: `nmt train`, `nmt evaluate`, `nmt force`, `nmt replace`."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.commands.console import Sentences
from nmt.commands.options import Average, Device, Models, Quiet
from nmt.files import read_json, read_lines, write_json, write_lines

if TYPE_CHECKING:
    from nmt.search import Hypothesis

Pair = tuple[Path, Path]

TRAIN_EXAMPLES = (
    "nmt train --system system.json --source-vocabulary en.txt --target-vocabulary de.txt \\",
    "    --train train.en train.de --dev dev.en dev.de --state STATE --output MODEL",
)
EVALUATE_EXAMPLES = (
    "nmt evaluate --model MODEL --source test.en --target test.de \\",
    "    --translations test.jsonl --attention test.attention.npz --forced forced.json",
)
FORCE_EXAMPLES = ("nmt force --model MODEL --source test.en --target test.de --output forced.json",)
REPLACE_EXAMPLES = (
    "nmt replace --translations test.jsonl --source test.en --dictionary en-de.tsv \\",
    "    --output replaced.txt --plain plain.txt --counts counts.json",
)


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
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's scalars.")] = None,
) -> None:
    """Train a system and write its model folder. Exit code 75: interrupted, the same command continues."""
    from nmt.api import choose_device
    from nmt.checkpoint import fingerprint
    from nmt.corpus import BinaryText, ParallelCorpus, ids_path, offsets_path
    from nmt.models import build_model, save_model
    from nmt.provenance import checksum, provenance
    from nmt.training import TrainingConfig, costs_a_sentence
    from nmt.training import train as run
    from nmt.vocab import Vocabulary

    started, place = time.monotonic(), choose_device(device)
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
        device=place,
        identity=identity,
        label=settings["name"],
        scalars=tensorboard,
    )
    save_model(output, model, settings, *vocabularies)
    write_lines(output / "curve.jsonl", [json.dumps(record) for record in result.curve])
    record = provenance(settings, settings["seed"], data, place, time.monotonic() - started)
    training = {
        **costs_a_sentence(result, corpora["train"], corpora["dev"], config),
        "updates": result.updates,
        "epochs": result.epochs,
        "best_update": result.best_update,
        "best_dev_perplexity": result.best_perplexity,
        "training_seconds": round(result.seconds, 3),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    write_json(output / "provenance.json", record | training)


def force(
    model: Models,
    source: Annotated[Path, typer.Option(help="Tokenised text, a sentence a line.")],
    target: Annotated[Path, typer.Option(help="Its translation, tokenised.")],
    output: Annotated[Path, typer.Option(help="JSON: negative log-likelihood, perplexity, alignment links, entropy.")],
    attention: Annotated[Path | None, typer.Option(help="Attention matrices (.npz).")] = None,
    average: Average = "probabilities",
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Read given translations (forced decoding): perplexity, and the word alignment that attention makes."""
    from nmt.api import load
    from nmt.attention_file import write_attention

    lines = parallel_lines(source, target)
    with Sentences(not quiet, len(lines[0]), label_of(output)) as count:
        read = load(model, device=device, average=average).read(*lines, count)
    if attention is not None:
        write_attention(attention, [hypothesis and hypothesis.attention for hypothesis in read])
    write_json(output, forced_record(read, lines[0]))


def evaluate(
    model: Models,
    source: Annotated[Path, typer.Option(help="Tokenised text, a sentence a line.")],
    target: Annotated[Path, typer.Option(help="Its reference, tokenised.")],
    translations: Annotated[Path, typer.Option(help="What `translate` writes: JSON lines.")],
    attention: Annotated[Path, typer.Option(help="Attention matrices of the translations (.npz).")],
    forced: Annotated[Path, typer.Option(help="What `force` writes of the reference: JSON.")],
    decoding: Annotated[str, typer.Option(help="JSON of decoding keys over those of the model.")] = "{}",
    average: Average = "probabilities",
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Translate a test and read its reference by force, in one process: loading a model takes longer than either."""
    from nmt.api import load
    from nmt.attention_file import write_attention
    from nmt.commands.translate import record, search_settings

    lines = parallel_lines(source, target)
    translator = load(model, device=device, average=average)
    settings = search_settings(translator, decoding, None, None)
    with Sentences(not quiet, 2 * len(lines[0]), label_of(translations)) as count:
        found = translator.translate_best(lines[0], 1, replace_unknown=False, decoding=settings, progress=count)
        read = translator.read(*lines, count)
    write_lines(translations, [json.dumps(record(best), ensure_ascii=False) for best in found])
    write_attention(attention, [best[0].attention for best in found])
    write_json(forced, forced_record(read, lines[0]))


def label_of(output: Path) -> str:
    """What the status calls the work on a file of an experiment: SYSTEM, TEXT."""
    return ", ".join(output.with_suffix("").parts[-2:])


def parallel_lines(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """The lines of both sides; ValueError if one has more."""
    lines = read_lines(source), read_lines(target)
    if len(lines[0]) != len(lines[1]):
        raise ValueError(
            f"{source} has {len(lines[0])} lines, {target} has {len(lines[1])}; expected one translation a line"
        )
    return lines


def forced_record(read: list[Hypothesis | None], source_lines: list[str]) -> dict[str, Any]:
    """What forced decoding says of a text: its cost, the attention's entropy, and the links under both rules."""
    from nmt.api import both_alignments
    from nmt.vocab import split_words

    lengths = [len(split_words(line)) for line in source_lines]
    found = {i: hypothesis for i, hypothesis in enumerate(read) if hypothesis is not None}
    nll, words = -sum(h.log_probability for h in found.values()), sum(len(h.words) + 1 for h in found.values())
    attends = any(hypothesis.attention is not None for hypothesis in found.values())
    links: dict[str, list[Any]] | None = None
    if attends:
        links = {step: [[] for _ in read] for step in ("predicting", "input")}
        for i, hypothesis in found.items():
            for step, positions in (both_alignments(hypothesis, lengths[i]) or {}).items():
                links[step][i] = [[position, t] for t, position in enumerate(positions)]
    return {
        "nll": nll,
        "words": words,
        "sentences": len(found),
        "perplexity": math.exp(nll / words) if words else None,
        "entropy": mean_entropy(list(found.values()), [lengths[i] for i in found]) if attends else None,
        "links": links,
    }


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


def mean_entropy(hypotheses: list[Hypothesis], lengths: list[int]) -> float:
    """Entropy of attention over the source's words in nats, mean over the steps of all sentences."""
    import numpy as np

    from nmt.alignment import attention_entropy

    pairs = zip(hypotheses, lengths, strict=True)
    return float(np.nanmean(np.concatenate([attention_entropy(h.attention, length) for h, length in pairs])))
