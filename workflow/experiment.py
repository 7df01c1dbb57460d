"""An experiment's configuration: read, merged, checked, and turned into the list of what must be computed.

Plain functions on plain dictionaries; the workflow's only Python that is more than a rule. Importing it costs
milliseconds: no torch, no pandas. Every error is a ValueError that names the file or key, what was found, what was
expected, and the cure.
"""

from __future__ import annotations

import copy
import difflib
import functools
import json
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError

Config = dict[str, Any]

SCHEMA = Path(__file__).parent / "schemas" / "config.schema.yaml"
SYSTEM_PARTS = ("model", "training", "decoding", "seed", "direction")  # what a system's description consists of
GOLD = "gold"  # the `test:` of a table about word alignments
DEV = "dev"  # the `test:` of a table about the dev text, and the name of that text
TRAIN = "train"  # the name of the joined training text
ALIGNER = "aligner"  # the statistical word aligner where scores are named by system
GOLD_COLUMNS = {"aer", "aer_input", "entropy", "sharpness"}  # what such a table can show
TRAINING_COLUMNS = {"updates", "epochs", "hours", "nll_train", "nll_dev"}  # what training itself says
NO_UNKNOWN_COLUMNS = {"bleu_tokenized_no_unk"}  # what is scored on the sentences without unknown words
NO_UNKNOWN = ".no-unk"  # marks that part of a test corpus, in whose translations `<unk>` is forbidden
POOL = "pool"  # the name of the training text before the selection by domain
GENERATED_NAMES = [f"miniature-{part}" for part in ("train", "dev", "test", "test2", "gold")]  # of `generate:`


# --- reading -----------------------------------------------------------------------------------------------------


class _StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML in which a key stands once in a mapping: a repeated name must not silently replace the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[Any, int] = {}
        for key_node, _ in node.value:
            key, line = self.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if key in lines:
                where = f"{node.start_mark.name}:{line}"
                raise ValueError(f"{where}: `{key}` stands already in line {lines[key]}; rename or remove one of them")
            lines[key] = line
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Config:
    """The mapping in a YAML file; ValueError on repeated keys, broken YAML, or anything but a mapping."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            content = yaml.load(file, Loader=_StrictLoader)
    except FileNotFoundError as error:
        raise ValueError(f"{path}: no such configuration file; look in config/ for those that exist") from error
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: found {type(content).__name__}, expected a mapping of configuration keys")
    return content


@functools.cache
def read_schema() -> Config:
    """The schema of experiments; read once, not to be changed."""
    return read_yaml(SCHEMA)


def merge(below: Config, above: Config) -> Config:
    """`above` laid over `below`: mappings key by key, everything else (lists, null included) replaced."""
    merged = copy.deepcopy(below)
    for key, value in above.items():
        both_mappings = isinstance(merged.get(key), dict) and isinstance(value, dict)
        merged[key] = merge(merged[key], value) if both_mappings else copy.deepcopy(value)
    return merged


def with_includes(config: Config, folder: Path, including: tuple[str, ...] = ()) -> Config:
    """The configuration laid over the files of its `include:` list, and those over the files that they include.

    Paths are relative to `folder`, later files lie over earlier ones; including: the files on the way here.
    """
    below: Config = {}
    for name in config.get("include", []):
        if name in including:
            raise ValueError(f"{folder / name}: includes itself: {' -> '.join([*including, name])}; break the circle")
        below = merge(below, with_includes(read_yaml(folder / name), folder, (*including, name)))
    return merge(below, {key: value for key, value in config.items() if key != "include"})


# --- the schema --------------------------------------------------------------------------------------------------


def nearest(word: str, candidates: Iterable[str]) -> str:
    """A hint for a misspelt name: ` (did you mean `x`?)`, or the list of what there is."""
    candidates = sorted(candidates)
    close = difflib.get_close_matches(word, candidates, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"known are {', '.join(f'`{name}`' for name in candidates) or 'none'}"


def _explain(error: ValidationError) -> str:
    """One schema violation in words."""
    where = ".".join(map(str, error.absolute_path)) or "the top level"
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        unknown = [key for key in error.instance if key not in known]
        return "; ".join(f"at {where}: unknown key `{key}`: {nearest(str(key), known)}" for key in unknown)
    if error.validator == "oneOf":
        of_its_type = [inner for inner in error.context or [] if inner.validator != "type"]
        if of_its_type:
            return _explain(of_its_type[0])
    if error.validator == "type" and isinstance(error.instance, str) and _is_number(error.instance):
        return f"at {where}: found the text `{error.instance}`, expected a number; YAML reads 1e-6 as text, 1.0e-6 not"
    if error.validator == "enum" and isinstance(error.instance, str):
        choices = [str(value) for value in error.validator_value]
        return f"at {where}: found `{error.instance}`: {nearest(error.instance, choices)}"
    return f"at {where}: {error.message}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_schema(config: Config, schema: Config, where: str) -> None:
    """ValueError naming every key of the configuration that the schema does not allow."""
    errors = sorted(Draft202012Validator(schema).iter_errors(config), key=lambda error: list(map(str, error.path)))
    if errors:
        raise ValueError("\n".join(f"{where}: {_explain(error)}" for error in errors))


def fill_defaults(value: Any, rule: Config, schema: Config) -> Any:
    """The value with the default of each key that its rule describes and it lacks, at every depth.

    rule: the part of the schema that describes the value; schema: the whole, for its `$defs`.
    """
    rule = _dereference(rule, schema)
    if isinstance(value, list) and "items" in rule:
        return [fill_defaults(item, rule["items"], schema) for item in value]
    if not isinstance(value, dict):
        return value
    known = {key: _dereference(part, schema) for key, part in rule.get("properties", {}).items()}
    others = rule.get("additionalProperties") or {}
    absent = {key: part["default"] for key, part in known.items() if key not in value and "default" in part}
    return {key: fill_defaults(item, known.get(key, others), schema) for key, item in (value | absent).items()}


def _dereference(rule: Config, schema: Config) -> Config:
    return schema["$defs"][rule["$ref"].rpartition("/")[2]] | rule if "$ref" in rule else rule


# --- systems -----------------------------------------------------------------------------------------------------


def extends_chain(name: str, systems: Config) -> list[str]:
    """The systems that `name` builds on, the most basic first, `name` last."""
    chain = [name]
    while (parent := systems[chain[0]].get("extends")) is not None:
        if parent not in systems:
            raise ValueError(f"systems.{chain[0]}: extends `{parent}`, which is no system: {nearest(parent, systems)}")
        if parent in chain:
            raise ValueError(f"systems.{name}: extends itself: {' -> '.join([parent, *chain])}; break the circle")
        chain.insert(0, parent)
    return chain


def resolve_system(name: str, config: Config, schema: Config) -> Config:
    """A system in full: schema defaults, the experiment's `defaults`, its chain of `extends`, its own entry."""
    resolved = copy.deepcopy(config.get("defaults", {}))
    for ancestor in extends_chain(name, config["systems"]):
        resolved = merge(
            resolved, {key: value for key, value in config["systems"][ancestor].items() if key != "extends"}
        )
    resolved.setdefault("direction", "-".join(config["languages"]))
    rule = schema["$defs"]["model"]
    model = resolved.get("model", {})
    family = rule["families"][model.get("family", rule["properties"]["family"]["default"])]
    _check_family(name, family["keys"], config)
    resolved = fill_defaults(
        {"training": {}, "decoding": {}} | resolved | {"model": family["defaults"] | model},
        schema["$defs"]["system"],
        schema,
    )
    resolved["model"] = {key: value for key, value in resolved["model"].items() if key in family["keys"]}
    return {"name": name} | {key: resolved[key] for key in SYSTEM_PARTS}


def _check_family(name: str, known: list[str], config: Config) -> None:
    """ValueError for a key of the system's own that its family does not know; `defaults` are for any family."""
    for ancestor in extends_chain(name, config["systems"]):
        for key in config["systems"][ancestor].get("model", {}):
            if key not in known:
                raise ValueError(
                    f"systems.{ancestor}: `{key}` is no key of the model's family in systems.{name}: "
                    f"{nearest(key, known)}"
                )


def resolve_ensemble(name: str, config: Config, schema: Config) -> Config:
    """An ensemble in full; its direction is its members', its decoding the defaults' under its own."""
    ensemble = config["ensembles"][name]
    for member in ensemble["members"]:
        if member not in config["systems"]:
            raise ValueError(f"ensembles.{name}: member `{member}` is no system: {nearest(member, config['systems'])}")
    directions = sorted({config["systems"][member]["direction"] for member in ensemble["members"]})
    if len(directions) != 1:
        raise ValueError(f"ensembles.{name}: members translate in different directions ({', '.join(directions)})")
    decoding = merge(config.get("defaults", {}).get("decoding", {}), ensemble.get("decoding", {}))
    filled = fill_defaults(ensemble | {"decoding": decoding}, schema["$defs"]["ensemble"], schema)
    return {"name": name, "direction": directions[0]} | filled


# --- the whole experiment ----------------------------------------------------------------------------------------


def load(config: Config, folder: Path, where: str = "configuration") -> Config:
    """The experiment in full: includes merged, schema checked and defaults filled, systems resolved, names checked.

    config: as read from config/NAME.yaml; folder: the folder its includes are relative to; where: names the
    configuration in errors. Only the tables and figures that `show:` lists are kept, in its order, and of the systems
    and ensembles only those that they need.
    """
    schema = read_schema()
    config = with_includes(config, folder)
    check_schema(config, schema, where)
    inherited = {key: config.get(key, {}) for key in ("defaults", "systems", "ensembles")}  # filled once resolved
    config = fill_defaults({key: value for key, value in config.items() if key not in inherited}, schema, schema)
    config |= inherited
    try:
        return _resolve(config, schema)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def load_file(path: Path) -> Config:
    """`load` for a file in config/."""
    return load(read_yaml(path), path.parent, where=str(path))


def _resolve(config: Config, schema: Config) -> Config:
    _check_languages(config)
    _check_names(config)
    config = config | {"systems": {name: resolve_system(name, config, schema) for name in config["systems"]}}
    _check_directions(config)
    config = config | {"ensembles": {name: resolve_ensemble(name, config, schema) for name in config["ensembles"]}}
    config = _select_shown(config)
    _check_tables(config)
    _check_figures(config)
    return _drop_unneeded(config)


def _check_languages(config: Config) -> None:
    first, second = config["languages"]
    if first == second:
        raise ValueError(f"languages: source and target are both `{first}`; name two different languages")
    missing = [language for language in config["languages"] if language not in config["vocabulary"]]
    if missing:
        raise ValueError(f"vocabulary: no size for {', '.join(missing)}; every language of `languages` needs one")


def _check_names(config: Config) -> None:
    if ALIGNER in [*config["systems"], *config["ensembles"]]:
        raise ValueError(f"a system cannot be called `{ALIGNER}`: that is the statistical word aligner")
    both = sorted(set(config["systems"]) & set(config["ensembles"]))
    if both:
        raise ValueError(f"`{both[0]}` is both a system and an ensemble; rename one of them")
    both = sorted(set(config["tables"]) & set(config["figures"]))
    if both:
        raise ValueError(f"`{both[0]}` is both a table and a figure; rename one of them")
    known = generated_names(config)
    names = corpus_names(config)
    if known and not set(known) & set(names):
        raise ValueError(f"generate: none of {', '.join(known)} is used under `data`; name them there")
    others = {corpus_name(corpus) for corpus in [*config["data"]["tests"].values(), *gold_corpora(config)]}
    repeated = [*_repeated(train_names(config) + dev_names(config)), *(set(dev_names(config)) & others)]
    if repeated:
        raise ValueError(f"data: corpus `{repeated[0]}` is named in two roles or twice; remove one")
    inline = {corpus["name"]: corpus for corpus in corpora(config) if not isinstance(corpus, str)}
    for corpus in corpora(config):
        if not isinstance(corpus, str) and inline[corpus["name"]] != corpus:
            raise ValueError(f"data: two different corpora are called `{corpus['name']}`; rename one of them")
    for reserved in {TRAIN, DEV, POOL} & set(names):
        raise ValueError(
            f"data: a corpus cannot be called `{reserved}`: that is the name of the joined {reserved} text"
        )
    known = [*train_names(config), *dev_names(config)]
    for name in in_domain_names(config):
        if name not in known:
            raise ValueError(
                f"prepare.select.in_domain: `{name}` is neither training nor dev text: {nearest(name, known)}"
            )


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _check_directions(config: Config) -> None:
    allowed = ["-".join(config["languages"]), "-".join(reversed(config["languages"]))]
    for name, system in config["systems"].items():
        if system["direction"] not in allowed:
            raise ValueError(
                f"systems.{name}: direction `{system['direction']}` does not fit languages; use {' or '.join(allowed)}"
            )


def _select_shown(config: Config) -> Config:
    available = [*config["tables"], *config["figures"]]
    shown = config["show"] if config["show"] is not None else available
    for name in shown:
        if name not in available:
            raise ValueError(f"show: `{name}` is no table or figure: {nearest(name, available)}")
    if len(set(shown)) < len(shown):
        raise ValueError("show: a table or figure is listed twice; list it once")
    kept = {
        kind: {name: config[kind][name] for name in shown if name in config[kind]} for kind in ("tables", "figures")
    }
    return config | kept | {"show": shown}


def _check_translator(name: str, where: str, config: Config) -> None:
    known = [*config["systems"], *config["ensembles"]]
    if name not in known:
        raise ValueError(f"{where}: `{name}` is no system or ensemble: {nearest(name, known)}")


def _check_test(role: str, where: str, config: Config) -> None:
    if role == GOLD:
        if "gold" not in config["data"]:
            raise ValueError(f"{where}: needs word-aligned sentences; name them under data.gold")
    elif role != DEV and role not in config["data"]["tests"]:
        raise ValueError(
            f"{where}: test `{role}` is no role under data.tests: {nearest(role, config['data']['tests'])}"
        )


def _check_columns(table: Config, where: str) -> None:
    """Alignment columns are scored on the gold corpus, all others on a test corpus; samples have no columns."""
    if table["kind"] == "samples":
        if table["columns"]:
            raise ValueError(f"{where}: sample translations have no columns; remove `columns`")
        return
    if not table["columns"]:
        raise ValueError(f"{where}: a table of scores needs `columns`")
    for column in table["columns"]:
        if (column in GOLD_COLUMNS) != (table["test"] == GOLD):
            home = "`test: gold`" if column in GOLD_COLUMNS else "a test corpus"
            raise ValueError(f"{where}: column `{column}` is scored on {home}, found `test: {table['test']}`")


def _check_tables(config: Config) -> None:
    for table_name, table in config["tables"].items():
        where = f"tables.{table_name}"
        _check_test(table["test"], where, config)
        direction = table.setdefault("direction", "-".join(config["languages"]))
        _check_columns(table, where)
        if repeated := _repeated([row["label"] for row in table["rows"]]):
            raise ValueError(f"{where}: two rows are labelled `{repeated[0]}`; label them apart")
        if table["test"] == GOLD and direction != "-".join(config["languages"]):
            raise ValueError(f"{where}: gold alignments are scored in the direction of `languages` only")
        for row in table["rows"]:
            row_where = f"{where}, row `{row['label']}`"
            if "system" not in row:
                if "paper_row" not in row and not row["aligner"]:
                    raise ValueError(f"{row_where}: names neither a system nor a row of the paper; it would be empty")
                continue
            _check_translator(row["system"], row_where, config)
            found = translator(row["system"], config)["direction"]
            if found != direction:
                raise ValueError(f"{row_where}: `{row['system']}` translates {found}, the table is about {direction}")
            if (row["replace"] or table["test"] == GOLD) and not has_attention(row["system"], config):
                raise ValueError(
                    f"{row_where}: `{row['system']}` has no attention to align by; name another, or replace nothing"
                )


def _check_figures(config: Config) -> None:
    for name, figure in config["figures"].items():
        where = f"figures.{name}"
        _check_test(figure["test"], where, config)
        for system in figure["systems"]:
            _check_translator(system, where, config)
            if figure["kind"] == "learning_curves" and system not in config["systems"]:
                raise ValueError(f"{where}: `{system}` is an ensemble, which has no learning curve; name systems")
            if figure["kind"] == "alignments" and not has_attention(system, config):
                raise ValueError(f"{where}: `{system}` has no attention to show; name systems with attention")


def _drop_unneeded(config: Config) -> Config:
    """Without the systems and ensembles that no table and no figure needs."""
    shown = shown_translators(config)
    ensembles = {name: ensemble for name, ensemble in config["ensembles"].items() if name in shown}
    wanted = shown | {member for ensemble in ensembles.values() for member in ensemble["members"]}
    systems = {name: system for name, system in config["systems"].items() if name in wanted}
    return {key: value for key, value in config.items() if key != "defaults"} | {
        "systems": systems,
        "ensembles": ensembles,
    }


# --- questions to a resolved experiment --------------------------------------------------------------------------


def corpus_name(corpus: str | Config) -> str:
    """The name of a corpus given by name or inline."""
    return corpus if isinstance(corpus, str) else corpus["name"]


def _listed(corpora: list | str | Config) -> list[str | Config]:
    return corpora if isinstance(corpora, list) else [corpora]


def train_names(config: Config) -> list[str]:
    """The corpora that are joined into the training text."""
    return [corpus_name(corpus) for corpus in config["data"]["train"]]


def dev_names(config: Config) -> list[str]:
    """The corpora that are joined into the dev text."""
    return [corpus_name(corpus) for corpus in _listed(config["data"]["dev"])]


def gold_corpora(config: Config) -> list[str | Config]:
    """The word-aligned corpus, if there is one."""
    return [config["data"]["gold"]] if "gold" in config["data"] else []


def corpora(config: Config) -> list[str | Config]:
    """Every corpus of the experiment: training, dev, tests, gold."""
    data = config["data"]
    return [*data["train"], *_listed(data["dev"]), *data["tests"].values(), *gold_corpora(config)]


def corpus_names(config: Config) -> list[str]:
    """The names of all corpora, in the order of `corpora`."""
    return [corpus_name(corpus) for corpus in corpora(config)]


def generated_names(config: Config) -> list[str]:
    """The corpora that the experiment generates: miniature-train, ..."""
    return GENERATED_NAMES if config["generate"] else []


def in_domain_names(config: Config) -> list[str]:
    """The corpora that the training text is chosen to be like; none if all of it is taken."""
    return config["prepare"]["select"]["in_domain"] if config["prepare"]["select"] else []


def pinned_names(config: Config) -> list[str]:
    """The corpora that stand in config/datasets.yaml, each once."""
    generated = generated_names(config)
    names = [corpus for corpus in corpora(config) if isinstance(corpus, str)]
    return [name for name in dict.fromkeys(names) if name not in generated]


def translator(name: str, config: Config) -> Config:
    """The system or ensemble of that name."""
    return config["systems"].get(name) or config["ensembles"][name]


def members(name: str, config: Config) -> list[str]:
    """The systems whose models translate together as `name`: an ensemble's members, or the system alone."""
    return config["ensembles"][name]["members"] if name in config["ensembles"] else [name]


def has_attention(name: str, config: Config) -> bool:
    """Whether every model behind `name` attends to the source; what alignments and replacement need."""
    return all(config["systems"][member]["model"]["attention"] is not None for member in members(name, config))


def shown_translators(config: Config) -> set[str]:
    """The systems and ensembles that a table or a figure names."""
    rows = {system for table in config["tables"].values() for system in table_systems(table)}
    return rows | {system for figure in config["figures"].values() for system in figure["systems"]}


def role_corpus(role: str, config: Config) -> str:
    """The name of the text that plays a test role: a corpus, the gold corpus, or dev."""
    if role == DEV:
        return DEV
    return corpus_name(config["data"]["gold"] if role == GOLD else config["data"]["tests"][role])


def table_systems(table: Config) -> list[str]:
    """The systems and ensembles of a table in the order of its rows, each once."""
    return list(dict.fromkeys(row["system"] for row in table["rows"] if "system" in row))


def needs_scores(table: Config) -> bool:
    """Whether a table shows more than its systems' training."""
    return not set(table["columns"]) <= TRAINING_COLUMNS


def no_unknown_tests(config: Config) -> list[str]:
    """The corpora of which some table wants the sentences without unknown words alone."""
    tables = [table for table in config["tables"].values() if NO_UNKNOWN_COLUMNS & set(table["columns"])]
    return sorted({role_corpus(table["test"], config) for table in tables})


def has_aligner(table: Config) -> bool:
    """Whether a row of the table is the statistical aligner."""
    return any(row["aligner"] for row in table["rows"])


def table_spec(name: str, config: Config) -> Config:
    """A table as its scripts read it: corpus instead of role, and the statistical aligner as a system.

    In its title `{test}` becomes the corpus, in the label of a row `{members}` the number of an ensemble's models.
    """
    table = config["tables"][name]
    corpus = role_corpus(table["test"], config)
    rows = [_row_spec(row, config) for row in table["rows"]]
    return table | {"name": name, "title": table["title"].replace("{test}", corpus), "test": corpus, "rows": rows}


def _row_spec(row: Config, config: Config) -> Config:
    system = ALIGNER if row["aligner"] else row.get("system")
    members = len(config["ensembles"].get(system, {}).get("members", ()))
    label = row["label"].replace("{members}", str(members))
    return row | {"label": label} | ({} if system is None else {"system": system})


def system_json(name: str, config: Config) -> str:
    """What determines a trained model, as JSON: decoding left out, since another beam is no other model."""
    system = config["systems"][name]
    return json.dumps({key: value for key, value in system.items() if key != "decoding"}, sort_keys=True)
