"""Text comes in: fetched and extracted, one's own, or generated; then words, vocabularies, word indices, a dictionary."""


rule fetch:
    input:
        script=ancient(script("fetch.py")),
        datasets=ancient(DATASETS),
    output:
        "results/downloads/{file}",
    log:
        "results/downloads/logs/{file}.log",
    benchmark:
        "results/downloads/benchmarks/{file}.tsv"
    wildcard_constraints:
        file=any_of(map(re.escape, PINS)),
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        pin=lambda wildcards: str(PINS[wildcards.file]),
        # by its argument `output` no reason to fetch again: another mirror holds the same bytes
        mirror=lambda wildcards, output: [part for folder in EXPERIMENT["mirror"] for part in ("--mirror", folder)],
    message:
        "Download {wildcards.file}"
    shell:
        "python {input.script:q} --file {wildcards.file:q} --datasets {input.datasets:q} {params.mirror:q}"
        " --output {output:q} 2> >(tee {log:q} >&2)"


rule extract:
    input:
        files=extract_inputs,
        script=ancient(script("extract.py")),
        datasets=ancient(DATASETS),
    output:
        [f"{OUT}/raw/{{corpus}}.{language}" for language in LANGUAGES],
    log:
        f"{OUT}/logs/extract/{{corpus}}.log",
    benchmark:
        f"{OUT}/benchmarks/extract/{{corpus}}.tsv"
    wildcard_constraints:
        corpus=any_of(name for name in (*PINNED, *OWN) if name not in GOLD),
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        source=extract_flags,
        languages=[part for language in LANGUAGES for part in ("--language", language)],
        folder=subpath(output[0], parent=True),
    message:
        "Extract {wildcards.corpus}"
    shell:
        "python {input.script:q} --name {wildcards.corpus:q} --folder {params.folder:q} {params.languages:q}"
        " --datasets {input.datasets:q} {params.source:q} > {log:q} 2>&1"


use rule extract as extract_gold with:
    output:
        [f"{OUT}/raw/{{corpus}}.{language}" for language in LANGUAGES],
        f"{OUT}/raw/{{corpus}}.{PAIR}.talp",
    wildcard_constraints:
        corpus=any_of(name for name in GOLD if name in PINNED or name in OWN),
    message:
        "Extract {wildcards.corpus}, and its gold alignment"


rule generate:
    input:
        script=ancient(script("miniature.py")),
    output:
        [f"{OUT}/raw/{name}.{language}" for name in experiment.GENERATED_NAMES for language in LANGUAGES],
        f"{OUT}/raw/miniature-gold.talp",
    log:
        f"{OUT}/logs/generate.log",
    benchmark:
        f"{OUT}/benchmarks/generate.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        sizes=[part for key, value in (EXPERIMENT["generate"] or {}).items() for part in (f"--{key}", value)],
        languages=["--source", LANGUAGES[0], "--target", LANGUAGES[1]],
        folder=subpath(output[0], parent=True),
    message:
        "Generate the miniature's texts"
    shell:
        "python {input.script:q} {params.sizes:q} {params.languages:q} --output {params.folder:q} > {log:q} 2>&1"


rule join_dev:
    """The raw dev text, where it is scored as a test."""
    input:
        lambda wildcards: raw(experiment.dev_names(EXPERIMENT), wildcards.language),
    output:
        f"{OUT}/raw/{experiment.DEV}.{{language}}",
    log:
        f"{OUT}/logs/join_dev.{{language}}.log",
    benchmark:
        f"{OUT}/benchmarks/join_dev.{{language}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    message:
        "Join the texts of dev, {wildcards.language}"
    shell:
        "cat {input:q} > {output:q} 2> {log:q}"


rule prepare:
    """Tokenised; line i stays line i."""
    input:
        unpack(lambda wildcards: raw_inputs(raw_members(wildcards.text))),
        script=ancient(script("prepare.py")),
    output:
        **{language: f"{OUT}/text/{{text}}.{language}" for language in LANGUAGES},
        report=f"{OUT}/text/{{text}}.json",
    log:
        f"{OUT}/logs/prepare/{{text}}.log",
    benchmark:
        f"{OUT}/benchmarks/prepare/{{text}}.tsv"
    wildcard_constraints:
        text=any_of([experiment.DEV, *TESTS, *DOMAIN]),
    conda:
        "../envs/nmt.yaml"
    threads: threads_of("data")
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        text=text_flags,
        output=output_flags,
        tokeniser=tokeniser_flags(PREPARE["tokeniser"]),
        filter=[],
    message:
        "Tokenise {wildcards.text}"
    shell:
        "python {input.script:q} {params.text:q} {params.output:q} --report {output.report:q}"
        " {params.tokeniser:q} {params.filter:q} --threads {threads} > {log:q} 2>&1"


use rule prepare as prepare_training with:
    input:
        unpack(lambda wildcards: raw_inputs(raw_members(wildcards.text)) | seen_elsewhere()),
        script=ancient(script("prepare.py")),
    wildcard_constraints:
        text=experiment.POOL if DOMAIN else experiment.TRAIN,
    params:
        text=text_flags,
        output=output_flags,
        tokeniser=tokeniser_flags(PREPARE["tokeniser"]),
        filter=filter_flags,
    message:
        "Tokenise and filter {wildcards.text}"


use rule prepare as prepare_gold with:
    wildcard_constraints:
        text=any_of(name for name in GOLD if name not in TESTS),
    params:
        text=text_flags,
        output=output_flags,
        tokeniser=tokeniser_flags(PREPARE["gold_tokeniser"]),
        filter=[],


rule select_data:
    """Of the prepared training text, the part that is most like a domain."""
    input:
        unpack(select_inputs),
        script=ancient(script("select_data.py")),
    output:
        **{language: f"{OUT}/text/{{text}}.{language}" for language in LANGUAGES},
        report=f"{OUT}/text/{{text}}.json",
    log:
        f"{OUT}/logs/select_data/{{text}}.log",
    benchmark:
        f"{OUT}/benchmarks/select_data/{{text}}.tsv"
    wildcard_constraints:
        text=any_of([experiment.TRAIN] if DOMAIN else []),
    conda:
        "../envs/nmt.yaml"
    threads: threads_of("data")
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        flags=select_flags,
    message:
        "Select training pairs like the domain"
    shell:
        "python {input.script:q} {params.flags:q} --report {output.report:q} --threads {threads} > {log:q} 2>&1"


rule known:
    """The sentences of a test of which the vocabularies hold every word, source and reference."""
    input:
        text=[f"{OUT}/text/{{test}}.{language}" for language in LANGUAGES],
        raw=[f"{OUT}/raw/{{test}}.{language}" for language in LANGUAGES],
        vocabulary=[f"{OUT}/vocabulary/{language}.txt" for language in LANGUAGES],
        script=script("known.py"),
    output:
        text=[f"{OUT}/text/{{test}}{experiment.NO_UNKNOWN}.{language}" for language in LANGUAGES],
        raw=[f"{OUT}/raw/{{test}}{experiment.NO_UNKNOWN}.{language}" for language in LANGUAGES],
    log:
        f"{OUT}/logs/known/{{test}}.log",
    benchmark:
        f"{OUT}/benchmarks/known/{{test}}.tsv"
    wildcard_constraints:
        test=any_of(experiment.no_unknown_tests(EXPERIMENT)),
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        paths=known_flags,
    message:
        "Keep the sentences of {wildcards.test} whose words are all known"
    shell:
        "python {input.script:q} {params.paths:q} > {log:q} 2>&1"


rule vocabulary:
    input:
        texts=[f"{OUT}/text/{experiment.TRAIN}.{language}" for language in LANGUAGES],
        script=ancient(script("vocabulary.py")),
    output:
        words=[f"{OUT}/vocabulary/{language}.txt" for language in LANGUAGES],
        coverage=f"{OUT}/vocabulary/coverage.json",
    log:
        f"{OUT}/logs/vocabulary.log",
    benchmark:
        f"{OUT}/benchmarks/vocabulary.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: threads_of("data")
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        texts=lambda wildcards, input: str(Path(input.texts[0]).parent),
        sizes=[
            part for language in LANGUAGES for part in ("--size", f"{language}={EXPERIMENT['vocabulary'][language]}")
        ],
        folder=subpath(output.coverage, parent=True),
    message:
        "Count words, choose the vocabularies"
    shell:
        "python {input.script:q} --texts {params.texts:q} {params.sizes:q} --output {params.folder:q}"
        " --threads {threads} > {log:q} 2>&1"


rule binarise:
    input:
        text=f"{OUT}/text/{{text}}.{{language}}",
        vocabulary=f"{OUT}/vocabulary/{{language}}.txt",
        script=ancient(script("binarise.py")),
    output:
        ids=f"{OUT}/binary/{{text}}.{{language}}.ids.npy",
        offsets=f"{OUT}/binary/{{text}}.{{language}}.offsets.npy",
    log:
        f"{OUT}/logs/binarise/{{text}}.{{language}}.log",
    benchmark:
        f"{OUT}/benchmarks/binarise/{{text}}.{{language}}.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        prefix=subpath(output.ids, strip_suffix=".ids.npy"),
    message:
        "Turn {wildcards.text}.{wildcards.language} into word indices"
    shell:
        "python {input.script:q} --text {input.text:q} --vocabulary {input.vocabulary:q} --output {params.prefix:q}"
        " > {log:q} 2>&1"


rule dictionary:
    """Both directions at once; the gold sentences are aligned along the way."""
    input:
        source=f"{OUT}/text/{experiment.TRAIN}.{LANGUAGES[0]}",
        target=f"{OUT}/text/{experiment.TRAIN}.{LANGUAGES[1]}",
        further=[f"{OUT}/text/{gold}.{language}" for gold in GOLD for language in LANGUAGES],
        script=ancient(script("dictionary.py")),
    output:
        forward=f"{OUT}/dictionary/{PAIR}.tsv",
        inverse=f"{OUT}/dictionary/{INVERSE}.tsv",
        links=[f"{OUT}/dictionary/{gold}.links" for gold in GOLD],
    log:
        f"{OUT}/logs/dictionary.log",
    benchmark:
        f"{OUT}/benchmarks/dictionary.tsv"
    conda:
        "../envs/nmt.yaml"
    threads: 1
    resources:
        mem_mb=memory_of("data"),
        runtime=minutes_of("data"),
    params:
        aligner=EXPERIMENT["dictionary"]["aligner"],
        minimum_count=EXPERIMENT["dictionary"]["minimum_count"],
        further=further_flags,
    message:
        "Align the training text, make the dictionary"
    shell:
        "python {input.script:q} --source {input.source:q} --target {input.target:q} --output {output.forward:q}"
        " --inverse {output.inverse:q} --aligner {params.aligner:q} --minimum-count {params.minimum_count}"
        " {params.further:q} > {log:q} 2>&1"
