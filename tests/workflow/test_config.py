"""Configurations: every experiment is valid; what is wrong is named, with the cure."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import yaml

from workflow import experiment

ROOT = Path(__file__).parents[2]
EXPERIMENTS = sorted(path for path in (ROOT / "config").glob("*.yaml") if path.name != "datasets.yaml")
MINIMAL = {
    "name": "mine",
    "data": {"train": ["a"], "dev": "b", "tests": {"main": "c"}, "gold": "d"},
    "vocabulary": {"en": 100, "de": 100},
    "defaults": {"model": {"hidden": 8}},
    "systems": {
        "base": {"model": {"attention": None}},
        "dot": {"extends": "base", "model": {"attention": {"score": "dot"}}},
        "general": {"extends": "dot", "model": {"hidden": 16, "attention": {"score": "general"}}},
        "back": {"extends": "dot", "direction": "de-en"},
    },
    "ensembles": {"both": {"members": ["dot", "general"]}},
    "tables": {
        "table1": {
            "title": "One",
            "test": "main",
            "columns": ["perplexity", "bleu_tokenized"],
            "rows": [{"label": "Base", "system": "base"}, {"label": "Both", "system": "both", "replace": True}],
        }
    },
}


def load(**changes: object) -> dict:
    """MINIMAL with changes laid over it, resolved."""
    return experiment.load(experiment.merge(MINIMAL, changes), ROOT / "config", where="mine.yaml")


def refusal(**changes: object) -> str:
    """The error that changes to MINIMAL lead to."""
    with pytest.raises(ValueError) as error:
        load(**changes)
    return str(error.value)


def row(**changes: object) -> dict:
    """Changes that give table1 a single row."""
    return {"tables": {"table1": {"rows": [{"label": "A", **changes}]}}}


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_every_experiment_is_valid(path: Path) -> None:
    config = experiment.load_file(path)
    assert config["name"] == path.stem
    assert sorted(config["show"]) == sorted([*config["tables"], *config["figures"]])


def test_both_papers_in_one_report_is_each_and_a_fair_comparison() -> None:
    both, luong, bahdanau = (
        experiment.load_file(ROOT / "config" / f"{name}.yaml") for name in ("both", "miniature", "miniature-bahdanau")
    )
    for single in (luong, bahdanau):
        assert set(single["show"]) <= set(both["show"])
        for name, system in single["systems"].items():
            assert both["systems"][name] == system, name
        assert single["data"] == both["data"] and single["vocabulary"] == both["vocabulary"]

    def updates(system: str) -> int:
        training = both["systems"][system]["training"]
        an_epoch = -(-both["generate"]["train"] // training["batch_size"])
        return min(training["updates"] or 10**9, training["epochs"] * an_epoch)

    compared = experiment.table_systems(both["tables"]["attention-compared"])
    assert len(compared) > 2 and len({updates(system) for system in compared}) == 1


def test_the_schema_describes_every_key_and_gives_optional_ones_defaults() -> None:
    schema = experiment.read_schema()
    without_default = set()

    def walk(rule: dict, where: str) -> None:
        for key, part in rule.get("properties", {}).items():
            assert "description" in part or "$ref" in part, f"{where}.{key}"
            target = schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
            if "default" not in {**target, **part} and key not in rule.get("required", []):
                without_default.add(f"{where}.{key}")
            walk(part, f"{where}.{key}")
        for key in ("items", "additionalProperties"):
            if isinstance(rule.get(key), dict):
                walk(rule[key], f"{where}.{key}")

    walk(schema, "")
    for name, rule in schema["$defs"].items():
        walk(rule, name)
    absent_means_absent = {  # no value could stand for "not given"
        ".data.gold", "corpus.alignment", "system.extends", "system.direction", "system.model", "system.training",
        "system.decoding", "ensemble.decoding", "table.direction", "table.paper", "table.rows.items.system",
        "table.rows.items.paper_row", "table.rows.items.paper_table",
        *(f".defaults.{key}" for key in ("model", "training", "decoding", "seed")),
        *(f"model.readings.{key}" for key in schema["$defs"]["model"]["properties"]["readings"]["properties"]),
    }  # fmt: skip
    assert without_default <= absent_means_absent


def test_schema_defaults_are_the_models_own() -> None:
    """A key left out means the same to the workflow and to `python -m nmt`."""
    from nmt.optimiser import TrainingConfig
    from nmt.search import Decoding

    system = load()["systems"]["base"]
    assert TrainingConfig.from_dict(system["training"]) == TrainingConfig()
    assert Decoding(**system["decoding"]) == Decoding()


def test_a_system_is_defaults_then_its_chain_then_itself() -> None:
    config = MINIMAL | {"languages": ["en", "de"]}
    system = experiment.resolve_system("general", config, experiment.read_schema())
    assert system["model"]["hidden"] == 16
    assert system["model"]["attention"] == {"scope": "global", "score": "general", "window": 10, "longest": 50}
    assert system["direction"] == "en-de"
    assert system["training"]["clip"] == 5.0


def test_a_mapping_lies_over_null_and_null_over_a_mapping() -> None:
    assert experiment.merge({"a": None}, {"a": {"b": 1}}) == {"a": {"b": 1}}
    assert experiment.merge({"a": {"b": 1}}, {"a": None}) == {"a": None}
    assert experiment.merge({"a": {"b": 1, "c": [1, 2]}}, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}}


def test_merging_leaves_its_arguments_alone() -> None:
    below, above = {"a": {"b": 1}}, {"a": {"c": {"d": 2}}}
    copies = copy.deepcopy((below, above))
    experiment.merge(below, above)["a"]["c"]["d"] = 3
    assert (below, above) == copies


def test_includes_lie_beneath_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("title: one\nmirror: [one]\n")
    (tmp_path / "two.yaml").write_text("title: two\n")
    merged = experiment.with_includes({"include": ["one.yaml", "two.yaml"], "name": "x"}, tmp_path)
    assert merged == {"title": "two", "mirror": ["one"], "name": "x"}


def test_only_what_is_shown_is_computed() -> None:
    assert set(load()["systems"]) == {"base", "dot", "general"}  # the ensemble's members, not `back`
    alone = load(**row(system="base"))
    assert set(alone["systems"]) == {"base"} and alone["ensembles"] == {}
    assert load(show=[])["systems"] == {}


def test_training_is_determined_by_the_system_alone() -> None:
    before = experiment.system_json("dot", load())
    same = load(
        title="other", mirror=["m"], resources={"train": {"threads": 4}}, defaults={"decoding": {"beam": 3}},
        systems={"general": {"seed": 9}}, tables={"table1": {"caption": "other"}},
    )  # fmt: skip
    assert experiment.system_json("dot", same) == before
    for change in ({"seed": 2}, {"model": {"hidden": 9}}, {"training": {"epochs": 3}}):
        assert experiment.system_json("dot", load(systems={"dot": change})) != before
    assert "decoding" not in json.loads(before)


def test_an_ensemble_takes_its_members_direction() -> None:
    assert load()["ensembles"]["both"]["direction"] == "en-de"
    assert "different directions" in refusal(ensembles={"both": {"members": ["dot", "back"]}})


def test_a_family_gets_only_the_keys_it_knows() -> None:
    from nmt.models import build_model

    model = load(systems={"base": {"model": {"family": "bahdanau"}}}, **row(system="base"))["systems"]["base"]["model"]
    assert "layers" not in model and model["maxout"] == 500
    build_model(model | {"hidden": 4, "embedding": 4, "maxout": 4}, (5, 5), seed=1)


def test_a_family_has_its_own_defaults_and_refuses_keys_it_does_not_know() -> None:
    from nmt.bahdanau import BahdanauConfig
    from nmt.luong import LuongConfig

    system = {"base": {"model": {"family": "bahdanau"}}}
    model = load(systems=system, ensembles={"both": {"members": ["general"]}}, defaults={"model": {"hidden": 1000}})
    model = model["systems"]["base"]["model"]
    defaults = BahdanauConfig(source_vocabulary=9, target_vocabulary=9)
    for key in ("hidden", "embedding", "maxout", "initialisation", "alignment_initialisation"):
        assert model[key] == getattr(defaults, key), key
    model = load(defaults={"model": {"embedding": 7, "layers": 2}}, systems=system, **row(system="base"))["systems"]
    assert model["base"]["model"]["embedding"] == 7 and "layers" not in model["base"]["model"]
    luong = experiment.resolve_system("base", MINIMAL | {"languages": ["en", "de"], "defaults": {}},
                                      experiment.read_schema())["model"]  # fmt: skip
    for key in ("hidden", "embedding", "initialisation", "layers", "dropout"):
        assert luong[key] == getattr(LuongConfig(source_vocabulary=9, target_vocabulary=9), key), key
    message = refusal(systems={"base": {"model": {"family": "bahdanau", "dropout": 0.2}}}, **row(system="base"))
    assert "systems.base: `dropout` is no key of the model's family" in message


def test_a_number_that_yaml_takes_for_text_is_named() -> None:
    found = yaml.safe_load("{defaults: {training: {eps: 1e-6}}}")
    assert "defaults.training.eps: found the text `1e-6`, expected a number" in refusal(**found)
    assert load(**yaml.safe_load("{defaults: {training: {eps: 1.0e-6}}}"))["systems"]["dot"]["training"]["eps"] == 1e-6


def test_an_included_file_may_include_others_but_not_itself(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("include: [two.yaml]\ntitle: one\n")
    (tmp_path / "two.yaml").write_text("title: two\nnote: two\n")
    merged = experiment.with_includes({"include": ["one.yaml"], "name": "x"}, tmp_path)
    assert merged == {"title": "one", "note": "two", "name": "x"}
    (tmp_path / "two.yaml").write_text("include: [one.yaml]\n")
    with pytest.raises(ValueError, match=r"one\.yaml -> two\.yaml -> one\.yaml"):
        experiment.with_includes({"include": ["one.yaml"]}, tmp_path)


def test_the_domain_is_among_the_data() -> None:
    assert "`x` is neither training nor dev text" in refusal(prepare={"select": {"in_domain": ["x"], "words": 5}})
    assert experiment.in_domain_names(load(prepare={"select": {"in_domain": ["a", "b"], "words": 5}})) == ["a", "b"]
    assert experiment.in_domain_names(load()) == []


def test_unknown_keys_are_named_with_the_nearest() -> None:
    assert "unknown key `titel`: did you mean `title`?" in refusal(titel="x")
    message = refusal(systems={"dot": {"model": {"hiden": 3}}})
    assert "systems.dot.model" in message and "did you mean `hidden`?" in message
    message = refusal(systems={"dot": {"model": {"attention": {"score": "dott"}}}})
    assert "systems.dot.model.attention.score" in message and "did you mean `dot`?" in message
    assert "did you mean `replace`?" in refusal(**row(system="dot", replacee=True))
    assert refusal(titel="x").startswith("mine.yaml: ")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"defaults": {"model": {"hidden": "many"}}}, ["defaults.model.hidden", "many"]),
        ({"vocabulary": {"en": 3}}, ["vocabulary.en", "3"]),
        ({"defaults": {"model": {"dropout": 1.0}}}, ["defaults.model.dropout", "1.0"]),
        ({"name": "../elsewhere"}, ["name", "../elsewhere"]),
        ({"systems": {"a/b": {}}}, ["systems", "a/b"]),
        (row(system="bsae"), ["row `A`", "`bsae`", "did you mean `base`?"]),
        (row(), ["row `A`", "neither a system nor a row of the paper"]),
        (row(system="base", replace=True), ["`base` has no attention"]),
        (row(system="back"), ["`back` translates de-en", "en-de"]),
        ({"systems": {"dot": {"extends": "bsae"}}}, ["systems.dot", "`bsae`", "did you mean `base`?"]),
        ({"systems": {"base": {"extends": "general"}}}, ["extends itself", "->"]),
        ({"systems": {"dot": {"direction": "en-fr"}}}, ["systems.dot", "en-fr", "de-en"]),
        ({"ensembles": {"both": {"members": ["dot", "generl"]}}}, ["ensembles.both", "did you mean `general`?"]),
        ({"ensembles": {"both": {"members": ["dot", "dot"]}}}, ["ensembles.both.members"]),
        ({"ensembles": {"dot": {"members": ["general"]}}}, ["`dot` is both a system and an ensemble"]),
        ({"systems": {"aligner": {}}}, ["cannot be called `aligner`"]),
        ({"languages": ["en", "en"]}, ["`en`", "two different languages"]),
        ({"languages": ["en", "fr"]}, ["vocabulary", "fr"]),
        ({"show": ["tabel1"]}, ["show", "did you mean `table1`?"]),
        ({"show": ["table1", "table1"]}, ["listed twice"]),
        ({"tables": {"table1": {"test": "man"}}}, ["tables.table1", "did you mean `main`?"]),
        ({"tables": {"table1": {"columns": ["aer"]}}}, ["`aer`", "test: gold", "test: main"]),
        ({"tables": {"table1": {"test": "gold"}}}, ["`perplexity`", "test: gold"]),
        ({"tables": {"table1": {"columns": []}}}, ["needs `columns`"]),
        ({"figures": {"f": {"kind": "length", "title": "F", "systems": ["bsae"]}}}, ["did you mean `base`?"]),
        ({"figures": {"f": {"kind": "learning_curves", "title": "F", "systems": ["both"]}}}, ["no learning curve"]),
        ({"figures": {"f": {"kind": "alignments", "title": "F", "systems": ["base"]}}}, ["no attention"]),
        ({"data": {"train": ["a", "a"]}}, ["`a`", "twice"]),
        ({"data": {"dev": "c"}}, ["`c`", "two roles"]),
        ({"data": {"train": ["train"]}}, ["cannot be called `train`"]),
        ({"data": {"train": [{"name": "a"}]}}, ["data.train.0", "files"]),
        ({"generate": {"train": 5}}, ["miniature-train", "data"]),
        ({"include": ["nowhere.yaml"]}, ["nowhere.yaml", "no such"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(changes: dict, parts: list[str]) -> None:
    message = refusal(**changes)
    for part in parts:
        assert part in message, message


def test_two_rows_with_one_label() -> None:
    rows = [{"label": "A", "system": "base"}, {"label": "A", "system": "dot"}]
    assert "two rows are labelled `A`" in refusal(tables={"table1": {"rows": rows}})


def test_gold_tables_need_a_gold_corpus() -> None:
    config = copy.deepcopy(MINIMAL)
    del config["data"]["gold"]
    config["tables"]["table1"] |= {"test": "gold", "columns": ["aer"]}
    with pytest.raises(ValueError, match=r"name them under data\.gold"):
        experiment.load(config, ROOT / "config")


def test_a_repeated_name_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("systems:\n  base: {seed: 1}\n  other: {}\n  base: {seed: 2}\n")
    with pytest.raises(ValueError, match=r"twice\.yaml:4: `base` stands already in line 2"):
        experiment.read_yaml(path)


@pytest.mark.parametrize("text", ["a: [1", "- a\n- b\n", ""])
def test_files_that_are_no_mapping(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"bad\.yaml"):
        experiment.read_yaml(tmp_path / "bad.yaml")


def test_the_aligner_stands_in_a_table_as_a_system() -> None:
    table = {"title": "T", "test": "gold", "columns": ["aer"], "rows": [{"label": "HMM", "aligner": True}]}
    spec = experiment.table_spec("t", load(tables={"t": table}))
    assert spec["test"] == "d" and spec["rows"][0]["system"] == "aligner"


def test_reported_rows_exist() -> None:
    """Every `paper_row` of an experiment's tables is a row of reported.csv."""
    import csv

    with (ROOT / "config" / "reported.csv").open(encoding="utf-8") as file:
        known = {(line["paper"], line["table"], line["row"]) for line in csv.DictReader(file)}
    named = set()
    for path in EXPERIMENTS:
        for table in experiment.load_file(path)["tables"].values():
            for each in table["rows"]:
                if "paper_row" in each:
                    number = each.get("paper_table", table["paper"]["table"])
                    named.add((table["paper"]["paper"], number, str(each["paper_row"])))
    assert named <= known
    luong = {key for key in known if key[0] == "luong2015"}
    assert luong <= named  # all the paper's rows are in some table
