"""Each system is trained once, from a description that holds all that determines it and nothing else."""


rule system:
    """A system's description: rewritten, and the system trained again, only when the description changes."""
    output:
        f"{OUT}/systems/{{system}}.json",
    log:
        f"{OUT}/logs/system/{{system}}.log",
    benchmark:
        f"{OUT}/benchmarks/system/{{system}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=1,
    params:
        description=lambda wildcards: experiment.system_json(wildcards.system, EXPERIMENT),
    message:
        "Describe {wildcards.system}"
    shell:
        "printf '%s\\n' {params.description:q} > {output:q} 2> {log:q}"


rule train:
    """The state lies outside the outputs: a job that was killed continues from it."""
    input:
        unpack(train_inputs),
    output:
        model=f"{OUT}/models/{{system}}/model.safetensors",
        config=f"{OUT}/models/{{system}}/config.json",
        source_vocabulary=f"{OUT}/models/{{system}}/source.vocab",
        target_vocabulary=f"{OUT}/models/{{system}}/target.vocab",
        curve=f"{OUT}/models/{{system}}/curve.jsonl",
        provenance=f"{OUT}/models/{{system}}/provenance.json",
    log:
        f"{OUT}/logs/train/{{system}}.log",
    benchmark:
        f"{OUT}/benchmarks/train/{{system}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: threads_of("train")
    resources:
        mem_mb=memory_of("train"),
        runtime=minutes_of("train"),
        gpu=gpus_of("train"),
    params:
        train=lambda wildcards, input: prefixes(input.train),
        dev=lambda wildcards, input: prefixes(input.dev),
        curve=lambda wildcards, input: prefixes(input.curve),
        state=lambda wildcards, output: f"{OUT}/state/{wildcards.system}",
        folder=subpath(output.model, parent=True),
        device=on_device,
        # a function of the output, so that switching it on or off is no change that trains again
        tensorboard=lambda wildcards, output: (
            ["--tensorboard", f"{OUT}/tensorboard/{wildcards.system}"] if EXPERIMENT["tensorboard"] else []
        ),
    message:
        "Train {wildcards.system}"
    shell:  # exec: a signal reaches training itself, which then saves its state
        "exec {params.device:q} python -m nmt train --system {input.system:q}"
        " --source-vocabulary {input.source_vocabulary:q}"
        " --target-vocabulary {input.target_vocabulary:q} --train {params.train:q} --dev {params.dev:q}"
        " --curve {params.curve:q} --state {params.state:q} --output {params.folder:q}"
        " {params.tensorboard:q} > {log:q} 2>&1"


rule companions:
    """What those who use a model want beside its weights: the dictionary for unknown words, and how to search."""
    input:
        model=f"{OUT}/models/{{system}}/model.safetensors",
        dictionary=lambda wildcards: f"{OUT}/dictionary/{'-'.join(languages_of(wildcards.system))}.tsv",
    output:
        dictionary=f"{OUT}/models/{{system}}/dictionary.tsv",
        decoding=f"{OUT}/models/{{system}}/decoding.json",
    log:
        f"{OUT}/logs/companions/{{system}}.log",
    benchmark:
        f"{OUT}/benchmarks/companions/{{system}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=100,
        runtime=1,
    params:
        decoding=lambda wildcards: json.dumps(
            experiment.translator(wildcards.system, EXPERIMENT)["decoding"], sort_keys=True
        ),
    message:
        "Give {wildcards.system} its dictionary"
    shell:
        "cp {input.dictionary:q} {output.dictionary:q} 2> {log:q}"
        " && printf '%s\\n' {params.decoding:q} > {output.decoding:q} 2>> {log:q}"
