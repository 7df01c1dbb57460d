"""Building, saving and loading models; a model that can learn a few sentences by heart."""

import json

import pytest
import torch

from nmt.models import build_model, load_model, save_model
from nmt.vocab import Vocabulary
from tests.nmt.test_luong import make_batch

WORDS = ["<unk>", "<s>", "</s>", *"abcdefgh"]
SMALL = {"family": "luong", "layers": 1, "hidden": 8, "embedding": 8}


def test_same_seed_same_weights():
    first, same, other = (build_model(SMALL, (11, 9), seed).state_dict() for seed in (1, 1, 2))
    for name, value in first.items():
        assert torch.equal(value, same[name])
        assert not torch.equal(value, other[name])


def test_initialisation_fills_its_range():
    model = build_model({**SMALL, "hidden": 40, "initialisation": 0.1}, (11, 9), 1)
    values = torch.cat([parameter.flatten() for parameter in model.parameters()])
    assert values.abs().max() <= 0.1
    assert values.min() < -0.099
    assert values.max() > 0.099
    assert values.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.02)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"family": "luonk"}, r"model\.family: found 'luonk', expected one of .*did you mean `luong`"),
        ({"hiden": 3}, r"model: unknown key `hiden` \(did you mean `hidden`\?\)"),
        ({"hidden": "big"}, r"model\.hidden: found 'big', expected a value of type int"),
        (
            {"attention": {"scope": "locl-m"}},
            r"model\.attention\.scope: found 'locl-m', expected one of global, local-m",
        ),
        ({"attention": "global"}, r"model\.attention: found 'global', expected a mapping"),
        (
            {"readings": {"padding": "mask"}},
            r"readings\.padding: found 'mask', expected one of masked, unmasked",
        ),
        ({"reverse": 1}, r"model\.reverse: found 1, expected a value of type bool"),
    ],
)
def test_wrong_config_is_named(config, message):
    with pytest.raises(ValueError, match=message):
        build_model({**SMALL, **config}, (11, 9), 1)


def saved(folder):
    system = {"name": "tiny", "model": {**SMALL, "attention": {"scope": "local-p"}}, "seed": 4}
    vocabulary = Vocabulary(WORDS)
    model = build_model(system["model"], (len(WORDS), len(WORDS)), 4)
    save_model(folder, model, system, vocabulary, vocabulary)
    return model


def test_saved_and_loaded_is_the_same(tmp_path):
    model, loaded = saved(tmp_path), load_model(tmp_path)
    batch = make_batch([([3, 4, 5], [6, 7])])
    assert torch.equal(model.eval()(batch).log_likelihood, loaded.model(batch).log_likelihood)
    assert loaded.system["name"] == "tiny"
    assert loaded.target.words == WORDS
    assert not loaded.model.training


def test_a_folder_that_is_no_model(tmp_path):
    saved(tmp_path)
    (tmp_path / "target.vocab").unlink()
    with pytest.raises(ValueError, match=r"not a model folder: target\.vocab is missing"):
        load_model(tmp_path)


def test_weights_that_do_not_fit(tmp_path):
    saved(tmp_path)
    system = json.loads((tmp_path / "config.json").read_text())
    system["model"]["hidden"] = 16
    (tmp_path / "config.json").write_text(json.dumps(system))
    with pytest.raises(ValueError, match=r"model\.safetensors: the weights do not fit config\.json"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"attention": None},
        {"attention": {"scope": "global", "score": "general"}, "input_feeding": True},
        {"attention": {"scope": "local-p", "score": "dot", "window": 3}, "input_feeding": True},
    ],
    ids=["none", "global-general-feed", "local-p-dot-feed"],
)
def test_learns_twenty_pairs_by_heart(change):
    generator = torch.Generator().manual_seed(0)
    pairs = []
    for _ in range(20):
        length = int(torch.randint(2, 7, (), generator=generator))
        source = torch.randint(3, 20, (length,), generator=generator).tolist()
        pairs.append((source, [word + 1 for word in reversed(source)]))
    config = {"family": "luong", "layers": 1, "hidden": 48, "embedding": 32, "initialisation": 0.3, **change}
    model = build_model(config, (20, 22), 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    batch = make_batch(pairs)
    for _ in range(150):
        loss = -model(batch).log_likelihood.sum() / batch.target_words
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.02
