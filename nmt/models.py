"""Building a model from its config, and model folders: weights, config, vocabularies, provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from nmt.bahdanau import BahdanauConfig, BahdanauModel
from nmt.config import from_mapping, nearest
from nmt.ensemble import Ensemble, Member
from nmt.files import atomic_path, read_json, write_json
from nmt.interface import TranslationModel
from nmt.luong import LuongConfig, LuongModel
from nmt.vocab import Vocabulary

FAMILIES: dict[str, tuple[type, type]] = {
    "luong": (LuongConfig, LuongModel),
    "bahdanau": (BahdanauConfig, BahdanauModel),
}


def build_model(config: Mapping[str, Any], vocabularies: tuple[int, int], seed: int) -> TranslationModel:
    """A freshly initialised model.

    config: the `model` section of a system (`family` and the family's keys); vocabularies: source and target sizes.
    Raises ValueError for an unknown family, key or value.
    """
    values = dict(config)
    family = values.pop("family", "luong")
    if family not in FAMILIES:
        raise ValueError(
            f"model.family: found {family!r}, expected one of {', '.join(FAMILIES)}{nearest(family, FAMILIES)}"
        )
    config_type, model_type = FAMILIES[family]
    sizes = {"source_vocabulary": vocabularies[0], "target_vocabulary": vocabularies[1]}
    model = model_type(from_mapping(config_type, {**sizes, **values}, "model"))
    model.initialise(torch.Generator().manual_seed(seed))
    return model


def save_model(
    folder: Path, model: TranslationModel, system: Mapping[str, Any], source: Vocabulary, target: Vocabulary
) -> None:
    """Write the weights, the system's config and the vocabularies into a model folder."""
    folder.mkdir(parents=True, exist_ok=True)
    source.save(folder / "source.vocab")
    target.save(folder / "target.vocab")
    write_json(folder / "config.json", dict(system))
    weights = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    with atomic_path(folder / "model.safetensors") as path:
        save_file(weights, path)


class Translator:
    """A trained model with its vocabularies, as loaded from a model folder."""

    def __init__(self, model: TranslationModel, system: dict[str, Any], source: Vocabulary, target: Vocabulary) -> None:
        self.model, self.system, self.source, self.target = model, system, source, target


def load_ensemble(folders: Sequence[Path], average: str, device: str | torch.device = "cpu") -> Translator:
    """Several model folders as one model; its system is that of the first, with `members` added.

    Raises ValueError naming the folder whose vocabularies differ from the first's.
    """
    members = [load_model(folder, device) for folder in folders]
    named = [
        Member(str(folder), each.model, each.source.words, each.target.words)
        for folder, each in zip(folders, members, strict=True)
    ]
    system = members[0].system | {"members": [each.system["name"] for each in members]}
    return Translator(Ensemble(named, average).eval(), system, members[0].source, members[0].target)


def load_model(folder: Path, device: str | torch.device = "cpu") -> Translator:
    """Read a model folder; the model is in evaluation mode on `device`.

    A `decoding.json` beside the weights says how to search. Raises ValueError naming the file that is missing,
    damaged, or does not fit the others.
    """
    for name in ("model.safetensors", "config.json", "source.vocab", "target.vocab"):
        if not (folder / name).is_file():
            raise ValueError(
                f"{folder}: not a model folder: {name} is missing; expected what `nmt train --output` writes"
            )
    system = read_json(folder / "config.json")
    if (folder / "decoding.json").is_file():
        system["decoding"] = read_json(folder / "decoding.json")
    if "model" not in system:
        raise ValueError(f"{folder / 'config.json'}: the key `model` is missing; expected what `nmt train` writes")
    source, target = Vocabulary.load(folder / "source.vocab"), Vocabulary.load(folder / "target.vocab")
    model = build_model(system["model"], (len(source), len(target)), seed=0)
    weights = folder / "model.safetensors"
    try:
        model.load_state_dict(load_file(weights))
    except SafetensorError as error:
        raise ValueError(f"{weights}: damaged weights ({error}); copy or train the model again") from error
    except (RuntimeError, OSError) as error:
        raise ValueError(f"{weights}: the weights do not fit config.json: {error}") from error
    return Translator(model.to(device).eval(), system, source, target)
