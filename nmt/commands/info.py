"""`nmt info`: what a model folder is. Reads the folder's files alone; torch is not loaded."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from nmt.files import iterate_lines, read_json

EXAMPLES = (
    "nmt info results/miniature/models/base",
    "nmt info --json MODEL",
)


def info(
    folders: Annotated[list[Path], typer.Argument(help="Model folders.")],
    as_json: Annotated[bool, typer.Option("--json", help="JSON, a line a folder.")] = False,
) -> None:
    """Say what a model folder is: system, sizes, learning curve's best, provenance, and scores that lie near."""
    for folder in folders:
        facts = describe(folder)
        if as_json:
            print(json.dumps({"folder": str(folder), **facts}, ensure_ascii=False))
            continue
        print(folder)
        for key, value in facts.items():
            if value is not None:
                print(f"  {key.replace('_', ' '):<14} {value}")


def describe(folder: Path) -> dict[str, Any]:
    """What a folder's files say, in the order to print; a file that may be missing gives None.

    Raises ValueError for a folder without config.json or with damaged weights.
    """
    if not (folder / "config.json").is_file():
        raise ValueError(
            f"{folder}: not a model folder: config.json is missing; expected what `nmt train --output` writes"
        )
    system = read_json(folder / "config.json")
    provenance = read_json(folder / "provenance.json") if (folder / "provenance.json").is_file() else {}
    model, training = system.get("model", {}), system.get("training", {})
    weights = folder / "model.safetensors"
    return {
        "system": system.get("name"),
        "direction": system.get("direction"),
        "model": architecture(model),
        "attention": attention(model),
        "training": ", ".join(f"{key} {value}" for key, value in training.items() if value is not None) or None,
        "seed": system.get("seed"),
        "parameters": f"{parameters(weights):,}" if weights.is_file() else "weights are missing",
        "file": f"{weights.stat().st_size / 1e6:,.1f} MB" if weights.is_file() else None,
        "vocabulary": vocabulary(folder),
        "dictionary": dictionary(folder / "dictionary.tsv"),
        "best": best(folder / "curve.jsonl"),
        "trained": trained(provenance),
        "commit": commit(provenance),
        "versions": ", ".join(f"{k} {v}" for k, v in provenance.get("versions", {}).items() if v) or None,
        "scores": scores(folder),
    }


def architecture(model: dict[str, Any]) -> str:
    """Family, sizes and switches."""
    sizes = [f"{key} {model[key]}" for key in ("layers", "hidden", "embedding", "maxout", "dropout") if key in model]
    switches = [key.replace("_", " ") for key in ("reverse", "input_feeding") if model.get(key)]
    reading = [f"reading {model['reading']}"] if "reading" in model else []
    changed = [f"{key} {value}" for key, value in (model.get("readings") or {}).items()]
    return ", ".join([model.get("family", "luong"), *sizes, *switches, *reading, *changed])


def attention(model: dict[str, Any]) -> str:
    """Scope and score."""
    chosen = model.get("attention")
    if chosen is None:
        return "none" if "attention" in model or model.get("family", "luong") == "luong" else "global, additive"
    text = f"{chosen.get('scope', 'global')}, {chosen.get('score', 'general')}"
    return text + (f", window {chosen.get('window', 10)}" if chosen.get("scope", "global") != "global" else "")


def parameters(weights: Path) -> int:
    """The numbers in a safetensors file, from its header: its length (8 bytes, little-endian), then JSON."""
    with weights.open("rb") as file:
        header = file.read(int.from_bytes(file.read(8), "little"))
    try:
        tensors = json.loads(header)
    except ValueError as error:
        raise ValueError(f"{weights}: found no safetensors header; copy or train the model again") from error
    return sum(math.prod(tensor["shape"]) for name, tensor in tensors.items() if name != "__metadata__")


def vocabulary(folder: Path) -> str | None:
    """The words of both sides."""
    sides = {side: folder / f"{side}.vocab" for side in ("source", "target")}
    return ", ".join(f"{lines(path):,} {side} words" for side, path in sides.items() if path.is_file()) or None


def dictionary(path: Path) -> str | None:
    """How many words a dictionary translates."""
    return f"{lines(path):,} entries" if path.is_file() else None


def lines(path: Path) -> int:
    """The lines of a file."""
    return sum(1 for _ in iterate_lines(path))


def best(path: Path) -> str | None:
    """The learning curve's best point."""
    if not path.is_file():
        return None
    curve = [json.loads(line) for line in iterate_lines(path)]
    if not curve:
        return None
    point = min(curve, key=lambda record: record["dev_perplexity"])
    return f"dev perplexity {point['dev_perplexity']:.3f} at update {point['update']:,} of {curve[-1]['update']:,}"


def trained(provenance: dict[str, Any]) -> str | None:
    """How long, and on what."""
    if "training_seconds" not in provenance:
        return None
    seconds = provenance["training_seconds"]
    time = f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"
    return f"{time} on {provenance.get('device', 'an unknown device')}"


def commit(provenance: dict[str, Any]) -> str | None:
    """The commit of the code, and whether it was changed."""
    git = provenance.get("git")
    return git and git["commit"] + (", with changes" if git["changed"] else "")


def scores(folder: Path) -> str | None:
    """BLEU and perplexity of each test, where the score files of an experiment lie beside its models."""
    resolved = folder.resolve()
    found = []
    for path in sorted((resolved.parent.parent / "scores" / resolved.name).glob("*.json")):
        score = read_json(path)
        values = [
            f"BLEU{label} {score[kind]['bleu_tokenized']['score']:.2f}"
            for kind, label in (("raw", ""), ("replaced", " with <unk> replaced"))
            if score.get(kind)
        ]
        if score.get("perplexity"):
            values.append(f"perplexity {score['perplexity']['value']:.3f}")
        if values:
            found.append(f"{path.stem}: {', '.join(values)}")
    return "; ".join(found) or None
