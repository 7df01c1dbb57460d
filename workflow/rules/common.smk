"""The experiment matrix: which texts, systems, scores, tables and figures there are, and which files stand for them.

This is the only place that expands it. What a configuration means is worked out in workflow/experiment.py.
"""

import json
import os
import re
import signal
from pathlib import Path

import yaml
from snakemake import benchmark
from snakemake.exceptions import WorkflowError

from workflow import experiment
from workflow.catalogue import corpus_downloads, corpus_entry, load_catalogue
from workflow.live import Live
from workflow.reporting import ending

ROOT = Path(workflow.basedir)
DATASETS = os.path.relpath(ROOT / "config" / "datasets.yaml")
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT), os.getenv("PYTHONPATH")])))  # for nmt in jobs

# Slurm's warning before a time limit goes to every process of a job; whoever does not take it up, as training does, is
# not to end by it. A signal that is ignored here is ignored in the jobs too.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)

# Seconds between two looks at a job's memory in its first minute; snakemake's 0.5 cost the run of config/tiny.yaml 5 of
# the 12 seconds that snakemake itself took (benchmarks/dag.py).
benchmark.BENCHMARK_INTERVAL_SHORT = 2.0

try:
    for path in workflow.configfiles:
        experiment.read_yaml(Path(path))  # for repeated keys, which snakemake's own reading lets pass
    where = str(next(iter(workflow.configfiles), "configuration"))
    EXPERIMENT = experiment.load(config, ROOT / "config", where=where)
    catalogue = load_catalogue(Path(DATASETS))
    PINNED = {name: corpus_entry(catalogue, name) for name in experiment.pinned_names(EXPERIMENT)}
    DOWNLOADS = {name: corpus_downloads(entry, EXPERIMENT["languages"]) for name, entry in PINNED.items()}
except ValueError as error:
    raise WorkflowError(str(error)) from None

OUT = f"results/{EXPERIMENT['name']}"
existing = next(place for place in (Path(OUT), *Path(OUT).parents) if place.exists())
if not workflow.dryrun and not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
    raise WorkflowError(
        f"{existing}: results go here, expected a folder that can be written to; give write permission, or run in "
        "another folder by --directory FOLDER"
    )
LANGUAGES = EXPERIMENT["languages"]
PAIR, INVERSE = "-".join(LANGUAGES), "-".join(reversed(LANGUAGES))
PREPARE, BOOTSTRAP = EXPERIMENT["prepare"], EXPERIMENT["bootstrap"]
PINS = {download.name: download for downloads in DOWNLOADS.values() for download in downloads}
OWN = {corpus["name"]: corpus for corpus in experiment.corpora(EXPERIMENT) if isinstance(corpus, dict)}
TESTS = sorted({experiment.corpus_name(corpus) for corpus in EXPERIMENT["data"]["tests"].values()})
GOLD = [experiment.corpus_name(corpus) for corpus in experiment.gold_corpora(EXPERIMENT)]
DOMAIN = experiment.in_domain_names(EXPERIMENT)
TEXTS = [experiment.TRAIN, experiment.POOL, experiment.DEV, *DOMAIN, *TESTS, *GOLD]  # all that is prepared
NO_UNKNOWN = [f"{test}{experiment.NO_UNKNOWN}" for test in experiment.no_unknown_tests(EXPERIMENT)]


live = Live()  # what the jobs are doing, while they run


REFERENCE = f"results/reference/{EXPERIMENT['name']}"  # scores that were published, see workflow/scripts/publish.py


def is_published():
    """Whether tables, figures and report are made from the published scores: where nothing was computed yet."""
    asked = set(workflow.dag_settings.targets)
    computed = any(Path(OUT, part).exists() for part in ("state", "models", "forced", "scores"))
    return bool(asked) and asked <= {"tables", "figures", "report"} and Path(REFERENCE).exists() and not computed


def results():
    """The folder in which tables and figures find scores; known only once snakemake knows its targets."""
    return REFERENCE if is_published() else OUT


def any_of(names):
    """A wildcard constraint: one of the names, or nothing at all."""
    return "|".join(names) or "(?!)"


wildcard_constraints:
    system=any_of([*EXPERIMENT["systems"], *EXPERIMENT["ensembles"]]),
    corpus="[A-Za-z0-9_-]+",
    language=any_of(LANGUAGES),
    text=any_of([*TEXTS, *map(re.escape, NO_UNKNOWN)]),
    test=any_of([*TESTS, experiment.DEV, *map(re.escape, NO_UNKNOWN)]),
    gold=any_of(GOLD),


# --- what jobs ask for -----------------------------------------------------------------------------------------------


def threads_of(station):
    """CPU threads of a station's jobs."""
    return EXPERIMENT["resources"][station]["threads"]


def memory_of(station):
    """Memory in MB of a station's jobs, doubled for each of the first two retries."""
    return lambda wildcards, attempt: EXPERIMENT["resources"][station]["memory_mb"] * 2 ** min(attempt - 1, 2)


def minutes_of(station):
    """Time limit of a station's jobs."""
    return EXPERIMENT["resources"][station]["minutes"]


def gpus_of(station):
    """GPUs of a station's jobs."""
    return EXPERIMENT["resources"][station]["gpu"]


def on_device(wildcards, resources):
    """What a command is run by, so that it sees GPUs of its own, or none; another number makes nothing stale."""
    if not resources.gpu:
        return ["env", "CUDA_VISIBLE_DEVICES="]
    return ["python", script("with_gpu.py"), "--count", str(resources.gpu), "--"]


def script(name):
    """A script as an input of the rule that runs it, so that editing it runs the rule again.

    Rules upstream of training wrap it in `ancient`: there an edit must not retrain; delete results to have it applied.
    """
    return os.path.relpath(ROOT / "workflow" / "scripts" / name)


# --- texts -----------------------------------------------------------------------------------------------------------


def raw(corpora, language):
    """The raw texts of some corpora."""
    return [f"{OUT}/raw/{corpus}.{language}" for corpus in corpora]


def raw_inputs(corpora):
    """The raw texts of some corpora as inputs, a name a language."""
    return {language: raw(corpora, language) for language in LANGUAGES}


def raw_members(text):
    """The corpora behind a text: those of the training or dev text, or the corpus itself."""
    joined = {
        experiment.TRAIN: experiment.train_names(EXPERIMENT),
        experiment.POOL: experiment.train_names(EXPERIMENT),
        experiment.DEV: experiment.dev_names(EXPERIMENT),
    }
    return joined.get(text, [text])


def labelled(flag, paths_by_label):
    """Flags `--flag LABEL=PATH` for each path of each label."""
    return [part for label, paths in paths_by_label.items() for path in paths for part in (flag, f"{label}={path}")]


def text_flags(wildcards, input):
    """What prepare.py reads."""
    return labelled("--text", {language: input[language] for language in LANGUAGES})


def output_flags(wildcards, output):
    """What prepare.py writes."""
    return labelled("--output", {language: [output[language]] for language in LANGUAGES})


def tokeniser_flags(tokeniser):
    """How prepare.py tokenises."""
    switches = [
        ("--escape", PREPARE["escape"]),
        ("--aggressive-hyphens", PREPARE["aggressive_hyphens"]),
    ]
    return [
        "--tokeniser",
        tokeniser,
        *(flag for flag, chosen in switches if chosen and tokeniser != "none"),
    ]


def seen_elsewhere():
    """The raw texts whose lines training must not see, a name a language; empty if it may."""
    corpora = [*experiment.dev_names(EXPERIMENT), *TESTS, *GOLD] if PREPARE["exclude_seen"] else []
    return {f"exclude_{language}": raw(dict.fromkeys(corpora), language) for language in LANGUAGES}


def filter_flags(wildcards, input):
    """What prepare.py leaves out of the training text."""
    return [
        "--filter",
        "--max-length",
        PREPARE["max_length"],
        *(["--deduplicate"] if PREPARE["deduplicate"] else []),
        *labelled("--exclude", {language: input[f"exclude_{language}"] for language in LANGUAGES}),
    ]


def select_inputs(wildcards):
    """The prepared text to choose from, and that of the domain; for each language, in the order of the corpora."""
    texts = {"pool": [experiment.POOL], "domain": DOMAIN}
    return {
        name: [f"{OUT}/text/{text}.{side}" for text in found for side in LANGUAGES] for name, found in texts.items()
    }


def select_flags(wildcards, input, output):
    """What select_data.py reads and writes, and how it chooses."""
    files = {"--pool": input.pool, "--domain": input.domain, "--output": [output[side] for side in LANGUAGES]}
    paths = [
        part
        for flag, found in files.items()
        for part in labelled(flag, {side: found[i :: len(LANGUAGES)] for i, side in enumerate(LANGUAGES)})
    ]
    return [*paths, *(part for key in ("words", "order", "seed") for part in (f"--{key}", PREPARE["select"][key]))]


def known_flags(wildcards, input, output):
    """What known.py reads and writes."""
    files = {"--text": input.text, "--raw": input.raw, "--vocabulary": input.vocabulary}
    files |= {"--text-output": output.text, "--raw-output": output.raw}
    pairs = [(flag, dict(zip(LANGUAGES, map(list, zip(paths))))) for flag, paths in files.items()]
    return [part for flag, paths in pairs for part in labelled(flag, paths)]


def own_path(path):
    """A path of an inline corpus, below data_root unless it is absolute."""
    return str(Path(EXPERIMENT["data_root"]) / path)


def extract_inputs(wildcards):
    """The archives of a pinned corpus, or one's own files."""
    name = wildcards.corpus
    if name in PINNED:
        return [f"results/downloads/{download.name}" for download in DOWNLOADS[name]]
    own = OWN[name]
    return [
        own_path(path)
        for path in [
            *own["files"].values(),
            *([own["alignment"]] if "alignment" in own else []),
        ]
    ]


def extract_flags(wildcards):
    """Where extract.py finds a corpus."""
    name = wildcards.corpus
    if name in PINNED:
        return ["--dataset", name]
    own = OWN[name]
    files = labelled(
        "--file",
        {language: [own_path(path)] for language, path in own["files"].items()},
    )
    return [
        *files,
        *(["--alignment", own_path(own["alignment"])] if "alignment" in own else []),
    ]


def further_flags(wildcards, input, output):
    """The gold sentences, for the aligner of the training text to align as well."""
    flags = ("--align-source", "--align-target", "--alignments")
    return [part for pair in zip(flags, [*input.further, *output.links]) for part in pair]


def gold_links(corpus, results=OUT):
    """The gold alignment of a corpus."""
    name = corpus if corpus in experiment.generated_names(EXPERIMENT) else f"{corpus}.{PAIR}"
    return f"{results}/raw/{name}.talp"


def binary(text, languages):
    """The four files of a parallel text in word indices."""
    return [f"{OUT}/binary/{text}.{language}.{part}.npy" for language in languages for part in ("ids", "offsets")]


def prefixes(files):
    """The prefixes that such files share, source and target."""
    return [path.removesuffix(".ids.npy") for path in files if path.endswith(".ids.npy")]


# --- systems ---------------------------------------------------------------------------------------------------------


def languages_of(system):
    """Source and target language of a system or ensemble."""
    return experiment.translator(system, EXPERIMENT)["direction"].split("-")


def train_inputs(wildcards):
    """What determines a model, and the text of its learning curve."""
    source, target = languages = languages_of(wildcards.system)
    return {
        "system": f"{OUT}/systems/{wildcards.system}.json",
        "source_vocabulary": f"{OUT}/vocabulary/{source}.txt",
        "target_vocabulary": f"{OUT}/vocabulary/{target}.txt",
        "train": binary(experiment.TRAIN, languages),
        "dev": binary(experiment.DEV, languages),
        "curve": binary(experiment.role_corpus("main", EXPERIMENT), languages),
    }


def models_of(wildcards):
    """The weights that translate together."""
    return [f"{OUT}/models/{member}/model.safetensors" for member in experiment.members(wildcards.system, EXPERIMENT)]


def model_flags(wildcards, input):
    """The model folders, and how an ensemble averages."""
    folders = [part for path in input.models for part in ("--model", str(Path(path).parent))]
    ensemble = EXPERIMENT["ensembles"].get(wildcards.system)
    return [*folders, *(["--average", ensemble["average"]] if ensemble else [])]


def decoding_json(wildcards):
    """How to search; which step's attention aligns a word is replace's business."""
    decoding = experiment.translator(wildcards.system, EXPERIMENT)["decoding"]
    if wildcards.text in NO_UNKNOWN:
        decoding = decoding | {"forbid_unknown": True}
    return json.dumps(
        {key: value for key, value in decoding.items() if key != "alignment_step"},
        sort_keys=True,
    )


def source_text(wildcards):
    """The prepared source of a test or gold corpus for a system."""
    return f"{OUT}/text/{wildcards.text}.{languages_of(wildcards.system)[0]}"


def target_text(wildcards):
    """The prepared reference."""
    return f"{OUT}/text/{wildcards.text}.{languages_of(wildcards.system)[1]}"


# --- scores, tables, figures -----------------------------------------------------------------------------------------


def note(wildcards):
    """The experiment's sentence for captions, and whether the numbers were computed here."""
    published = "These are the published scores; nothing was computed here"
    return f"{EXPERIMENT['note'].rstrip('. ')}. {published}" if is_published() else EXPERIMENT["note"]


def is_measured(system, text):
    """Whether a system's results on a text are there or are to be computed."""
    if is_published():
        return Path(f"{results()}/scores/{system}/{text}.json").exists()
    return EXPERIMENT["train"] or system == experiment.ALIGNER or Path(f"{OUT}/forced/{system}/{text}.json").exists()


def measured(systems, text):
    """Those of the systems."""
    return [system for system in systems if is_measured(system, text)]


def is_trained(system):
    """Whether a system's learning curve is there or is to be computed."""
    return (EXPERIMENT["train"] and not is_published()) or Path(f"{results()}/models/{system}/curve.jsonl").exists()


def tables_of(kind):
    """The tables of a kind."""
    return [name for name, table in EXPERIMENT["tables"].items() if table["kind"] == kind]


def figures_of(kind):
    """The figures of a kind."""
    return [name for name, figure in EXPERIMENT["figures"].items() if figure["kind"] == kind]


def score_inputs(wildcards):
    """What a score is worked out from; what replacement made, too, where there is attention to replace by."""
    system, test = wildcards.system, wildcards.test
    source, target = languages_of(system)
    inputs = {
        "translations": f"{OUT}/translations/{system}/{test}.txt",
        "source": f"{OUT}/text/{test}.{source}",
        "reference": f"{OUT}/text/{test}.{target}",
        "raw_reference": f"{OUT}/raw/{test}.{target}",
    }
    if test in NO_UNKNOWN:  # nothing to replace, and the cost is that of the whole text
        return inputs
    inputs["forced"] = f"{OUT}/forced/{system}/{test}.json"
    if experiment.has_attention(system, EXPERIMENT):
        inputs["replaced"] = f"{OUT}/translations/{system}/{test}.replaced.txt"
        inputs["replacements"] = f"{OUT}/translations/{system}/{test}.replacements.json"
    return inputs


def further_score_flags(wildcards, input):
    """The flags for forced decoding and for what replacement made, if anything."""
    flags = {
        "--forced": input.get("forced"),
        "--replaced": input.get("replaced"),
        "--replacements": input.get("replacements"),
    }
    return [part for flag, path in flags.items() if path for part in (flag, path)]


def escaped_flag():
    """Whether the prepared text holds Moses' escapes."""
    return ["--escaped"] if PREPARE["escape"] and PREPARE["tokeniser"] == "moses" else []


def spec(table):
    """A table as JSON for its scripts."""
    return json.dumps(experiment.table_spec(table, EXPERIMENT), sort_keys=True)


def table_test(table):
    """The text that a table is about."""
    return experiment.role_corpus(EXPERIMENT["tables"][table]["test"], EXPERIMENT)


def table_scores(wildcards):
    """The score files of a table's rows."""
    table, test = EXPERIMENT["tables"][wildcards.table], table_test(wildcards.table)
    aligner = [experiment.ALIGNER] if experiment.has_aligner(table) else []
    texts = [test] if experiment.needs_scores(table) else []
    if experiment.NO_UNKNOWN_COLUMNS & set(table["columns"]):
        texts.append(f"{test}{experiment.NO_UNKNOWN}")
    systems = [*experiment.table_systems(table), *aligner]
    return [f"{results()}/scores/{system}/{text}.json" for text in texts for system in measured(systems, text)]


def table_models(wildcards):
    """What the models of a table say of their training, if it shows that."""
    table = EXPERIMENT["tables"][wildcards.table]
    if not experiment.TRAINING_COLUMNS & set(table["columns"]):
        return []
    systems = [system for system in experiment.table_systems(table) if system in EXPERIMENT["systems"]]
    return [f"{results()}/models/{system}/provenance.json" for system in systems if is_trained(system)]


def compared_spec(table):
    """A table whose rows name their system only if it is measured."""
    whole, test = experiment.table_spec(table, EXPERIMENT), table_test(table)
    rows = [
        {key: value for key, value in row.items() if key != "system" or is_measured(value, test)}
        for row in whole["rows"]
    ]
    return whole | {"rows": rows}


def comparisons_of(table):
    """The significance of a table's steps, if it has steps in BLEU."""
    whole = compared_spec(table)
    steps = sum("system" in row for row in whole["rows"]) > 1 and any("bleu" in column for column in whole["columns"])
    path = f"{results()}/scores/comparisons/{table}.json"
    return [path] if steps and (not is_published() or Path(path).exists()) else []


def compared_texts(wildcards):
    """The translations behind a table, and what they are held against."""
    table, test = EXPERIMENT["tables"][wildcards.table], table_test(wildcards.table)
    systems = measured(experiment.table_systems(table), test)
    attentive = [system for system in systems if experiment.has_attention(system, EXPERIMENT)]
    target = table["direction"].split("-")[1]
    return {
        "translations": [f"{OUT}/translations/{system}/{test}.txt" for system in systems],
        "replaced": [f"{OUT}/translations/{system}/{test}.replaced.txt" for system in attentive],
        "reference": f"{OUT}/text/{test}.{target}",
        "raw_reference": f"{OUT}/raw/{test}.{target}",
    }


def sample_inputs(wildcards):
    """The texts of a table of samples: the first row's system is the best, the second's the base."""
    table, test = EXPERIMENT["tables"][wildcards.table], table_test(wildcards.table)
    source, target = table["direction"].split("-")
    inputs = {
        "source": f"{results()}/text/{test}.{source}",
        "reference": f"{results()}/text/{test}.{target}",
    }
    for role, system in zip(("best", "base"), experiment.table_systems(table), strict=True):
        inputs[role] = f"{results()}/translations/{system}/{test}.txt"
        if experiment.has_attention(system, EXPERIMENT):
            inputs[f"{role}_replaced"] = f"{results()}/translations/{system}/{test}.replaced.txt"
    return inputs


def sample_flags(wildcards, input):
    """The same as flags."""
    table = EXPERIMENT["tables"][wildcards.table]
    paths = {f"--{name.replace('_', '-')}": path for name, path in input.items() if name != "script"}
    labels = dict(
        zip(
            ("--best-label", "--base-label"),
            (row["label"] for row in table["rows"]),
            strict=True,
        )
    )
    flags = paths | labels | {"--language": table["direction"].split("-")[0], "--title": table["title"]}
    flags |= {"--caption": table["caption"], "--note": note(wildcards)}
    flags |= {f"--{sort}": table["samples"][sort] for sort in ("names", "negations", "longest", "others")}
    examples = [part for example in table["samples"]["examples"] for part in ("--example", example)]
    return [*(f"{flag}={value}" for flag, value in flags.items()), *examples]


def heading_flags(wildcards):
    """Title and caption of a figure."""
    figure = EXPERIMENT["figures"][wildcards.figure]
    return [f"--title={figure['title']}", f"--caption={figure['caption']}"]


def figure_test(figure):
    """The text that a figure is about."""
    return experiment.role_corpus(EXPERIMENT["figures"][figure]["test"], EXPERIMENT)


def figure_systems(figure):
    """The systems that a figure can show."""
    spec = EXPERIMENT["figures"][figure]
    if spec["kind"] == "learning_curves":
        return [system for system in spec["systems"] if is_trained(system)]
    return measured(spec["systems"], figure_test(figure))


def figure_files(path):
    """One file for each system of a figure; `path` names it, with {system} and {test}."""

    def files(wildcards):
        test = figure_test(wildcards.figure)
        return [f"{results()}/{path.format(system=system, test=test)}" for system in figure_systems(wildcards.figure)]

    return files


def series_flags(flag):
    """Flags `--flag SYSTEM=PATH` for the files of a figure."""

    def flags(wildcards, input):
        systems = figure_systems(wildcards.figure)
        return labelled(
            flag,
            {system: [path] for system, path in zip(systems, input.series, strict=True)},
        )

    return flags


def length_flags(wildcards, input):
    """The series of BLEU by length, after replacement where the figure wants it and attention allows it."""
    figure, systems = EXPERIMENT["figures"][wildcards.figure], figure_systems(wildcards.figure)
    replaced = [figure["replace"] and experiment.has_attention(system, EXPERIMENT) for system in systems]
    series = zip(replaced, systems, input.series, strict=True)
    return [part for after, *pair in series for part in ("--replaced" if after else "--raw", "=".join(pair))]


def alignment_inputs(wildcards):
    """The attention of a figure of alignments: that of the reference and gold links, or that of the translations."""
    test = figure_test(wildcards.figure)
    source, target = LANGUAGES
    inputs = {"source": f"{results()}/text/{test}.{source}"}
    if test in GOLD:
        return inputs | {
            "series": figure_files("forced/{system}/{test}.attention.npz")(wildcards),
            "target": f"{results()}/text/{test}.{target}",
            "gold": gold_links(test, results()),
        }
    return inputs | {
        "series": figure_files("translations/{system}/{test}.attention.npz")(wildcards),
        "target": figure_files("translations/{system}/{test}.txt")(wildcards),
        "vocabulary": [] if is_published() else f"{OUT}/vocabulary/{source}.txt",
    }


def alignment_flags(wildcards, input):
    """What a figure of alignments is aligned to, and which sentences it shows."""
    if "gold" in input.keys():
        return ["--target", input.target, "--gold", input.gold]
    figure = EXPERIMENT["figures"][wildcards.figure]
    targets = [part for path in input.target for part in ("--target", path)]
    examples = [part for example in figure["examples"] for part in ("--example", example)]
    vocabulary = ["--vocabulary", input.vocabulary] if input.vocabulary else []
    return [*targets, *vocabulary, "--sentences", figure["sentences"], *examples]


def is_shown(name):
    """Whether there is something to show: for a table of samples all its systems, for a figure at least one."""
    if name in EXPERIMENT["figures"]:
        return bool(figure_systems(name))
    table = EXPERIMENT["tables"][name]
    systems = experiment.table_systems(table) if table["kind"] == "samples" else []
    return measured(systems, table_test(name)) == systems


def exhibits(forms):
    """The files of all tables and figures, in the order of `show`; forms: their endings, by kind."""
    kinds = {name: kind for kind in forms for name in EXPERIMENT[kind]}
    shown = [name for name in EXPERIMENT["show"] if name in kinds and is_shown(name)]
    return [f"{OUT}/{kinds[name]}/{name}.{form}" for name in shown for form in forms[kinds[name]]]


def tables(wildcards):
    """All tables."""
    return exhibits({"tables": ["csv", "md", "tex"]})


def figures(wildcards):
    """All figures."""
    return exhibits({"figures": ["svg", "png"]})


def companions(wildcards):
    """What lies beside the weights of each system that is trained here, for those who use it."""
    trained = EXPERIMENT["systems"] if EXPERIMENT["train"] and not is_published() else []
    return [f"{OUT}/models/{system}/{name}" for system in trained for name in ("dictionary.tsv", "decoding.json")]


def explorer_systems(text):
    """The systems whose attention over a text the report's explorer shows: those that tables and figures are about."""
    shown = [(table["test"], experiment.table_systems(table)) for table in EXPERIMENT["tables"].values()]
    shown += [(f["test"], f["systems"]) for f in EXPERIMENT["figures"].values() if f["kind"] == "alignments"]
    systems = [name for role, names in shown if experiment.role_corpus(role, EXPERIMENT) == text for name in names]
    return [
        system
        for system in measured(dict.fromkeys(systems), text)
        if experiment.has_attention(system, EXPERIMENT)
        and "-".join(languages_of(system)) == PAIR
        and is_explored(system, text)
    ]


def explorer_attention(system, text):
    """The attention that the explorer shows: over the gold sentences by force, else that of the translations."""
    return f"{results()}/{'forced' if text in GOLD else 'translations'}/{system}/{text}.attention.npz"


def is_explored(system, text):
    """Whether the attention is there or is to come; where another machine kept it back, nothing runs again for it."""
    attention = explorer_attention(system, text)
    words = attention.replace(".attention.npz", ".json" if text in GOLD else ".jsonl")
    return Path(attention).exists() or not (is_published() or Path(words).exists())


def explorer_inputs(wildcards):
    """Attention over a text, and the words that it lies between; what was replaced, too, where that is known."""
    text, (source, target) = wildcards.text, LANGUAGES
    systems = explorer_systems(text)
    inputs = {
        "attention": [explorer_attention(system, text) for system in systems],
        "source": f"{results()}/text/{text}.{source}",
    }
    if text in GOLD:
        return inputs | {"target": f"{results()}/text/{text}.{target}", "gold": gold_links(text, results())}
    words = [f"{results()}/translations/{system}/{text}" for system in systems]
    replaced = [f"{path}.replaced.txt" for path in words]
    return inputs | {
        "words": [f"{path}.txt" for path in words],
        "replaced": [path for path in replaced if not is_published() or Path(path).exists()],
    }


def explorer_flags(wildcards, input):
    """The same as flags; a system's files lie in a folder of its name."""
    lists = [
        part
        for flag in ("attention", "words", "replaced")
        for path in input.get(flag, [])
        for part in (f"--{flag}", f"{Path(path).parent.name}={path}")
    ]
    return [
        *lists,
        *(part for flag in ("target", "gold") if flag in input.keys() for part in (f"--{flag}", input[flag])),
    ]


def report_inputs(wildcards):
    """Everything that the report shows."""
    tables = EXPERIMENT["tables"].items()
    scored = [(name, table) for name, table in tables if table["kind"] == "scores" and experiment.needs_scores(table)]
    pairs = [(system, table_test(name)) for name, table in scored for system in experiment.table_systems(table)]
    trained = [system for system in EXPERIMENT["systems"] if is_trained(system)]
    explored = dict.fromkeys([*GOLD, experiment.role_corpus("main", EXPERIMENT)])
    papers = dict.fromkeys(table["paper"]["paper"] for _, table in tables if "paper" in table)
    configurations = [ROOT / "config" / f"{paper}.yaml" for paper in papers]
    return {
        "explorer": [f"{OUT}/explorer/{text}.json" for text in explored if explorer_systems(text)],
        "papers": [os.path.relpath(path) for path in configurations if path.exists()],
        "exhibits": exhibits({"tables": ["json"], "figures": ["json"]}),
        "scores": [
            f"{results()}/scores/{system}/{test}.json"
            for system, test in dict.fromkeys(pairs)
            if is_measured(system, test)
        ],
        "curves": [f"{results()}/models/{system}/curve.jsonl" for system in trained],
        "provenance": [f"{results()}/models/{system}/provenance.json" for system in trained],
        "data": [f"{results()}/text/{text}.json" for text in (experiment.TRAIN, experiment.DEV, *TESTS, *GOLD)],
        "coverage": f"{results()}/coverage/coverage.json",
        "config": f"{results()}/config.yaml",
    }


def in_report(kind, **labels):
    """How snakemake's own report (--report) names a table or figure; its caption is filled in from the job's params."""

    def named(wildcards):
        name = wildcards[kind]
        shown = EXPERIMENT["figures"][name] if kind == "figure" else experiment.table_spec(name, EXPERIMENT)
        return {kind: shown["title"]} | labels

    return {"caption": f"../report/{kind}.rst", "category": f"{kind.title()}s", "labels": named}


def report_templates():
    """What the report is filled into."""
    return sorted(os.path.relpath(path) for path in (ROOT / "workflow" / "report").iterdir() if path.suffix != ".rst")


def report_flags(wildcards, input):
    """The same as flags."""
    return [
        *(part for path in input.exhibits for part in ("--exhibit", path)),
        *(part for path in input.scores for part in ("--score", path)),
        *labelled("--curve", {Path(path).parent.name: [path] for path in input.curves}),
        *labelled(
            "--provenance",
            {Path(path).parent.name: [path] for path in input.provenance},
        ),
        *labelled("--text", {Path(path).stem: [path] for path in input.data}),
        *(part for path in input.explorer for part in ("--explorer", path)),
        *(part for path in input.papers for part in ("--paper", path)),
    ]
