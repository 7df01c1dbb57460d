"""From parallel text to the papers' tables and figures; one configuration file is one experiment (config/NAME.yaml)."""

from snakemake.utils import min_version

min_version("9.0")

if "name" not in config:  # none was given by --configfile, which snakemake would only lay over this one

    configfile: f"{workflow.basedir}/config/miniature.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/translate.smk"
include: "workflow/rules/score.smk"
include: "workflow/rules/report.smk"


localrules:
    all,
    tables,
    figures,
    # seconds each, or in need of a network: on a cluster they run where snakemake runs
    experiment,
    system,
    companions,
    fetch,
    join_dev,
    table,
    samples,
    learning_curves,
    bleu_by_length,
    alignment_matrices,
    coverage,
    explorer,
    report,
    publish,


rule all:
    default_target: True
    input:
        tables,
        figures,
        companions,
        f"{OUT}/report.html",
    message:
        "Everything is there"


rule tables:
    input:
        tables,
    message:
        "The tables are there"


rule figures:
    input:
        figures,
    message:
        "The figures are there"


onstart:
    live.start()


onsuccess:
    live.stop()
    print(ending(Path(OUT)))


onerror:
    live.stop()
