"""The papers' tables and figures, ours beside theirs, and a report that shows them in the papers' order."""


rule table:
    input:
        scores=table_scores,
        models=table_models,
        comparisons=lambda wildcards: comparisons_of(wildcards.table),
        reported=os.path.relpath(ROOT / "config" / "reported.csv"),
        script=script("table.py"),
    output:
        csv=report(f"{OUT}/tables/{{table}}.csv", **in_report("table", form="CSV")),
        md=report(f"{OUT}/tables/{{table}}.md", **in_report("table", form="Markdown")),
        tex=f"{OUT}/tables/{{table}}.tex",
        json=f"{OUT}/tables/{{table}}.json",
    log:
        f"{OUT}/logs/table/{{table}}.log",
    benchmark:
        f"{OUT}/benchmarks/table/{{table}}.tsv"
    wildcard_constraints:
        table=any_of(tables_of("scores")),
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        spec=lambda wildcards: spec(wildcards.table),
        caption=lambda wildcards: EXPERIMENT["tables"][wildcards.table]["caption"],  # in snakemake's report
        comparisons=lambda wildcards, input: (["--comparisons", *input.comparisons] if input.comparisons else []),
        like_paper=["--like-paper"] if EXPERIMENT["like_paper"] else [],
        note=lambda wildcards: f"--note={note(wildcards)}",  # with "=", since snakemake quotes no empty text
        folder=lambda wildcards: f"{results()}/scores",
        stem=subpath(output.csv, strip_suffix=".csv"),
    message:
        "Build {wildcards.table}"
    shell:
        "python {input.script:q} --spec {params.spec:q} --scores {params.folder:q} {params.comparisons:q}"
        " --reported {input.reported:q} {params.like_paper:q} {params.note:q} --output {params.stem:q}"
        " > {log:q} 2>&1"


rule samples:
    input:
        unpack(sample_inputs),
        script=script("samples.py"),
    output:
        csv=report(f"{OUT}/tables/{{table}}.csv", **in_report("table", form="CSV")),
        md=report(f"{OUT}/tables/{{table}}.md", **in_report("table", form="Markdown")),
        tex=f"{OUT}/tables/{{table}}.tex",
        json=f"{OUT}/tables/{{table}}.json",
    log:
        f"{OUT}/logs/samples/{{table}}.log",
    benchmark:
        f"{OUT}/benchmarks/samples/{{table}}.tsv"
    wildcard_constraints:
        table=any_of(tables_of("samples")),
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        flags=sample_flags,
        caption=lambda wildcards: EXPERIMENT["tables"][wildcards.table]["caption"],  # in snakemake's report
        stem=subpath(output.csv, strip_suffix=".csv"),
    message:
        "Build {wildcards.table}"
    shell:
        "python {input.script:q} {params.flags:q} --output {params.stem:q} > {log:q} 2>&1"


rule learning_curves:
    input:
        series=figure_files("models/{system}/curve.jsonl"),
        script=script("learning_curves.py"),
    output:
        svg=report(f"{OUT}/figures/{{figure}}.svg", **in_report("figure")),
        png=f"{OUT}/figures/{{figure}}.png",
        json=f"{OUT}/figures/{{figure}}.json",
    log:
        f"{OUT}/logs/figure/{{figure}}.log",
    benchmark:
        f"{OUT}/benchmarks/figure/{{figure}}.tsv"
    wildcard_constraints:
        figure=any_of(figures_of("learning_curves")),
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        series=series_flags("--curve"),
        heading=heading_flags,
        stem=subpath(output.svg, strip_suffix=".svg"),
    message:
        "Draw {wildcards.figure}"
    shell:
        "python {input.script:q} {params.series:q} {params.heading:q} --output {params.stem:q} > {log:q} 2>&1"


use rule learning_curves as bleu_by_length with:
    input:
        series=figure_files("scores/{system}/{test}.json"),
        script=script("bleu_by_length.py"),
    wildcard_constraints:
        figure=any_of(figures_of("length")),
    params:
        series=length_flags,
        heading=heading_flags,
        stem=subpath(output.svg, strip_suffix=".svg"),


rule alignment_matrices:
    input:
        unpack(alignment_inputs),
        script=script("alignment_matrices.py"),
    output:
        svg=report(f"{OUT}/figures/{{figure}}.svg", **in_report("figure")),
        png=f"{OUT}/figures/{{figure}}.png",
        json=f"{OUT}/figures/{{figure}}.json",
    log:
        f"{OUT}/logs/figure/{{figure}}.log",
    benchmark:
        f"{OUT}/benchmarks/figure/{{figure}}.tsv"
    wildcard_constraints:
        figure=any_of(figures_of("alignments")),
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        series=series_flags("--attention"),
        sentences=alignment_flags,
        heading=heading_flags,
        stem=subpath(output.svg, strip_suffix=".svg"),
    message:
        "Draw {wildcards.figure}"
    shell:
        "python {input.script:q} {params.series:q} --source {input.source:q} {params.sentences:q}"
        " {params.heading:q} --output {params.stem:q} > {log:q} 2>&1"


rule experiment:
    """The experiment in full: every include, default and `extends` resolved."""
    output:
        f"{OUT}/config.yaml",
    log:
        f"{OUT}/logs/experiment.log",
    benchmark:
        f"{OUT}/benchmarks/experiment.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=1,
    params:
        text=lambda wildcards: yaml.safe_dump(EXPERIMENT, sort_keys=False, allow_unicode=True),
    message:
        "Write the experiment in full"
    shell:
        "printf '%s' {params.text:q} > {output:q} 2> {log:q}"


rule coverage:
    """How much of each text the vocabularies cover."""
    input:
        texts=[
            f"{OUT}/text/{text}.{language}"
            for text in (experiment.TRAIN, experiment.DEV, *TESTS)
            for language in LANGUAGES
        ],
        script=script("vocabulary.py"),
    output:
        coverage=f"{OUT}/coverage/coverage.json",
        words=temp([f"{OUT}/coverage/{language}.txt" for language in LANGUAGES]),
    log:
        f"{OUT}/logs/coverage.log",
    benchmark:
        f"{OUT}/benchmarks/coverage.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        texts=lambda wildcards, input: str(Path(input.texts[0]).parent),
        sizes=[
            part for language in LANGUAGES for part in ("--size", f"{language}={EXPERIMENT['vocabulary'][language]}")
        ],
        cover=[part for text in (experiment.DEV, *TESTS) for part in ("--cover", text)],
        folder=subpath(output.coverage, parent=True),
    message:
        "Count what the vocabularies cover"
    shell:
        "python {input.script:q} --texts {params.texts:q} {params.sizes:q} {params.cover:q} --output {params.folder:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule explorer:
    """Attention over some sentences, for the report's explorer."""
    input:
        unpack(explorer_inputs),
        script=script("explorer.py"),
    output:
        f"{OUT}/explorer/{{text}}.json",
    log:
        f"{OUT}/logs/explorer/{{text}}.log",
    benchmark:
        f"{OUT}/benchmarks/explorer/{{text}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        parts=explorer_flags,
    message:
        "Prepare {wildcards.text} for the alignment explorer"
    shell:
        "python {input.script:q} {params.parts:q} --source {input.source:q} --output {output:q} > {log:q} 2>&1"


rule report:
    input:
        unpack(report_inputs),
        datasets=DATASETS,
        templates=report_templates(),
        script=script("report.py"),
    output:
        report(f"{OUT}/report.html", caption="../report/report.rst", category="The experiment"),
    log:
        f"{OUT}/logs/report.log",
    benchmark:
        f"{OUT}/benchmarks/report.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        title=EXPERIMENT["title"] or EXPERIMENT["name"],
        note=lambda wildcards: f"--summary={note(wildcards)}",
        parts=report_flags,
        benchmarks=f"{OUT}/benchmarks",
    message:
        "Build the report"
    shell:
        "python {input.script:q} --title {params.title:q} {params.note:q} {params.parts:q}"
        " --coverage {input.coverage:q} --config {input.config:q} --datasets {input.datasets:q}"
        " --benchmark {params.benchmarks:q}"
        ' --commit "$(git rev-parse HEAD 2>> {log:q} || echo unknown)" --output {output:q} > {log:q} 2>&1'


rule publish:
    """What tables, figures and report are made from, small enough to be committed."""
    input:
        unpack(report_inputs),
        comparisons=lambda wildcards: [path for name in tables_of("scores") for path in comparisons_of(name)],
        script=script("publish.py"),
    output:
        f"{REFERENCE}/provenance.json",
    log:
        f"{OUT}/logs/publish.log",
    benchmark:
        f"{OUT}/benchmarks/publish.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        results=lambda wildcards: OUT,
        output=subpath(output[0], parent=True),
    message:
        "Collect what can be published"
    shell:
        "python {input.script:q} --results {params.results:q} --output {params.output:q} > {log:q} 2>&1"


rule bundle:
    """What a machine with a GPU and no snakemake needs to train and translate; see docs/reduced.md."""
    input:
        systems=[f"{OUT}/systems/{system}.json" for system in EXPERIMENT["systems"]],
        vocabularies=[f"{OUT}/vocabulary/{language}.txt" for language in LANGUAGES],
        binary=[
            path
            for text in {experiment.TRAIN, experiment.DEV, experiment.role_corpus("main", EXPERIMENT)}
            for path in binary(text, LANGUAGES)
        ],
        texts=[f"{OUT}/text/{text}.{language}" for text in (*TESTS, *GOLD) for language in LANGUAGES],
        config=f"{OUT}/config.yaml",
        script=script("bundle.py"),
    output:
        f"{OUT}/bundle.zip",
    log:
        f"{OUT}/logs/bundle.log",
    benchmark:
        f"{OUT}/benchmarks/bundle.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        results=subpath(output[0], parent=True),
    message:
        "Bundle what a machine with a GPU needs"
    shell:
        "python {input.script:q} --results {params.results:q} --output {output:q} > {log:q} 2>&1"


rule benchmark:
    """What a target word costs by source length, on this machine; nothing of the experiment is needed."""
    input:
        script=os.path.relpath(ROOT / "benchmarks" / "length.py"),
    output:
        multiext("results/benchmark/length", ".csv", ".md", ".svg", ".png", ".json"),
    log:
        "results/benchmark/length.log",
    benchmark:
        "results/benchmark/length.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 2
    resources:
        mem_mb=memory_of("train"),
        runtime=minutes_of("train"),
    params:
        stem=subpath(output[0], strip_suffix=".csv"),
    message:
        "Measure global against local attention by source length"
    shell:
        "python {input.script:q} --threads {threads} --output {params.stem:q} > {log:q} 2>&1"
