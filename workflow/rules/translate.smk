"""Each test is translated by beam search and read by force; unknown words are replaced through the attention."""


rule translate:
    """In one job with the reading of the reference: to load torch and a model takes longer than a small test."""
    input:
        models=models_of,
        source=source_text,
        target=target_text,
    output:
        translations=f"{OUT}/translations/{{system}}/{{text}}.jsonl",
        attention=f"{OUT}/translations/{{system}}/{{text}}.attention.npz",
        forced=f"{OUT}/forced/{{system}}/{{text}}.json",
    log:
        f"{OUT}/logs/translate/{{system}}/{{text}}.log",
    benchmark:
        f"{OUT}/benchmarks/translate/{{system}}/{{text}}.tsv"
    wildcard_constraints:
        text=any_of([*TESTS, *map(re.escape, NO_UNKNOWN)]),
    conda:
        "../envs/nmt.yaml"
    threads: threads_of("translate")
    resources:
        mem_mb=memory_of("translate"),
        runtime=minutes_of("translate"),
        gpu=gpus_of("translate"),
    params:
        models=model_flags,
        decoding=decoding_json,
        device=on_device,
    message:
        "Translate {wildcards.text} with {wildcards.system}"
    shell:
        "{params.device:q} python -m nmt evaluate {params.models:q} --source {input.source:q}"
        " --target {input.target:q} --decoding {params.decoding:q} --translations {output.translations:q}"
        " --attention {output.attention:q} --forced {output.forced:q} > {log:q} 2>&1"


rule force:
    """The gold alignment's sentences are decoded by force: the alignment that attention makes."""
    input:
        models=models_of,
        source=source_text,
        target=target_text,
    output:
        forced=f"{OUT}/forced/{{system}}/{{text}}.json",
        attention=f"{OUT}/forced/{{system}}/{{text}}.attention.npz",
    log:
        f"{OUT}/logs/force/{{system}}/{{text}}.log",
    benchmark:
        f"{OUT}/benchmarks/force/{{system}}/{{text}}.tsv"
    wildcard_constraints:
        text=any_of(GOLD),
    conda:
        "../envs/nmt.yaml"
    threads: threads_of("translate")
    resources:
        mem_mb=memory_of("translate"),
        runtime=minutes_of("translate"),
        gpu=gpus_of("translate"),
    params:
        models=model_flags,
        device=on_device,
    message:
        "Read {wildcards.text} by force with {wildcards.system}"
    shell:
        "{params.device:q} python -m nmt force {params.models:q} --source {input.source:q}"
        " --target {input.target:q}"
        " --output {output.forced:q} --attention {output.attention:q} > {log:q} 2>&1"


rule replace:
    input:
        translations=f"{OUT}/translations/{{system}}/{{text}}.jsonl",
        source=source_text,
        dictionary=lambda wildcards: f"{OUT}/dictionary/{'-'.join(languages_of(wildcards.system))}.tsv",
    output:
        plain=f"{OUT}/translations/{{system}}/{{text}}.txt",
        replaced=f"{OUT}/translations/{{system}}/{{text}}.replaced.txt",
        counts=f"{OUT}/translations/{{system}}/{{text}}.replacements.json",
    log:
        f"{OUT}/logs/replace/{{system}}/{{text}}.log",
    benchmark:
        f"{OUT}/benchmarks/replace/{{system}}/{{text}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("translate"),
    params:
        step=lambda wildcards: experiment.translator(wildcards.system, EXPERIMENT)["decoding"]["alignment_step"],
    message:
        "Replace unknown words of {wildcards.system}, {wildcards.text}"
    shell:
        "python -m nmt replace --translations {input.translations:q} --source {input.source:q}"
        " --dictionary {input.dictionary:q} --alignment-step {params.step:q} --output {output.replaced:q}"
        " --counts {output.counts:q} --plain {output.plain:q} > {log:q} 2>&1"
