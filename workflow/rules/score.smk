"""Numbers out of translations and alignments; from here on neither torch nor a model is needed."""


rule score:
    input:
        unpack(score_inputs),
        script=script("score.py"),
    output:
        f"{OUT}/scores/{{system}}/{{test}}.json",
    log:
        f"{OUT}/logs/score/{{system}}/{{test}}.log",
    benchmark:
        f"{OUT}/benchmarks/score/{{system}}/{{test}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        further=further_score_flags,
        direction=lambda wildcards: experiment.translator(wildcards.system, EXPERIMENT)["direction"],
        escaped=escaped_flag(),
        seed=BOOTSTRAP["seed"],
        samples=BOOTSTRAP["samples"],
    message:
        "Score {wildcards.system} on {wildcards.test}"
    shell:
        "python {input.script:q} --translations {input.translations:q} {params.further:q} --source {input.source:q}"
        " --reference-text {input.reference:q} --reference-raw {input.raw_reference:q}"
        " --system {wildcards.system:q} --test {wildcards.test:q} --direction {params.direction:q}"
        " {params.escaped:q} --seed {params.seed} --samples {params.samples} --output {output:q} > {log:q} 2>&1"


rule score_alignment:
    input:
        forced=f"{OUT}/forced/{{system}}/{{gold}}.json",
        attention=f"{OUT}/forced/{{system}}/{{gold}}.attention.npz",
        gold=lambda wildcards: gold_links(wildcards.gold),
        source=f"{OUT}/text/{{gold}}.{LANGUAGES[0]}",
        target=f"{OUT}/text/{{gold}}.{LANGUAGES[1]}",
        training=f"{OUT}/text/{experiment.TRAIN}.{LANGUAGES[0]}",
        script=script("align_score.py"),
    output:
        f"{OUT}/scores/{{system}}/{{gold}}.json",
    log:
        f"{OUT}/logs/score_alignment/{{system}}/{{gold}}.log",
    benchmark:
        f"{OUT}/benchmarks/score_alignment/{{system}}/{{gold}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        attention=lambda wildcards, input: ["--attention", input.attention],
        system=lambda wildcards: wildcards.system,
        seed=BOOTSTRAP["seed"],
        samples=BOOTSTRAP["samples"],
    message:
        "Score the alignment of {wildcards.system} on {wildcards.gold}"
    shell:
        "python {input.script:q} --forced {input.forced:q} {params.attention:q} --gold {input.gold:q}"
        " --source {input.source:q} --target {input.target:q} --training-source {input.training:q}"
        " --system {params.system:q} --test {wildcards.gold:q} --seed {params.seed} --samples {params.samples}"
        " --output {output:q} > {log:q} 2>&1"


rule aligner_links:
    """The statistical aligner's links in the form of a forced decoding."""
    input:
        links=f"{OUT}/dictionary/{{gold}}.links",
        script=script("links.py"),
    output:
        f"{OUT}/forced/{experiment.ALIGNER}/{{gold}}.json",
    log:
        f"{OUT}/logs/aligner_links/{{gold}}.log",
    benchmark:
        f"{OUT}/benchmarks/aligner_links/{{gold}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    message:
        "The statistical aligner's links of {wildcards.gold}"
    shell:
        "python {input.script:q} --links {input.links:q} --output {output:q} > {log:q} 2>&1"


use rule score_alignment as score_aligner with:
    input:
        forced=f"{OUT}/forced/{experiment.ALIGNER}/{{gold}}.json",
        gold=lambda wildcards: gold_links(wildcards.gold),
        source=f"{OUT}/text/{{gold}}.{LANGUAGES[0]}",
        target=f"{OUT}/text/{{gold}}.{LANGUAGES[1]}",
        training=f"{OUT}/text/{experiment.TRAIN}.{LANGUAGES[0]}",
        script=script("align_score.py"),
    output:
        f"{OUT}/scores/{experiment.ALIGNER}/{{gold}}.json",
    log:
        f"{OUT}/logs/score_alignment/{experiment.ALIGNER}/{{gold}}.log",
    benchmark:
        f"{OUT}/benchmarks/score_alignment/{experiment.ALIGNER}/{{gold}}.tsv"
    params:
        attention=[],
        system=experiment.ALIGNER,
        seed=BOOTSTRAP["seed"],
        samples=BOOTSTRAP["samples"],
    message:
        "Score the statistical aligner on {wildcards.gold}"


rule compare:
    """Paired bootstrap of each row of a table against the row above."""
    input:
        unpack(compared_texts),
        script=script("compare.py"),
    output:
        f"{OUT}/scores/comparisons/{{table}}.json",
    log:
        f"{OUT}/logs/compare/{{table}}.log",
    benchmark:
        f"{OUT}/benchmarks/compare/{{table}}.tsv"
    wildcard_constraints:
        table=any_of(tables_of("scores")),
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        spec=lambda wildcards: json.dumps(compared_spec(wildcards.table), sort_keys=True),
        folder=lambda wildcards, input: str(Path(input.translations[0]).parent.parent),
        escaped=escaped_flag(),
        seed=BOOTSTRAP["seed"],
        samples=BOOTSTRAP["samples"],
    message:
        "Compare the rows of {wildcards.table}"
    shell:
        "python {input.script:q} --spec {params.spec:q} --translations {params.folder:q}"
        " --reference-text {input.reference:q} --reference-raw {input.raw_reference:q} {params.escaped:q}"
        " --seed {params.seed} --samples {params.samples} --output {output:q} > {log:q} 2>&1"
