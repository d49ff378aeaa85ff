"""Tokenizers: trained here, or taken from a model of the suite that the suites' files name as their source.

Reads <results>/text/pretraining.jsonl, <results>/models/{suite}/{size}/{checkpoint}, files of the user's own, or the hub.
Writes <results>/tokenizers/{tokenizer}, a folder that transformers reads.
"""

from lmshape.inputs import local_models


def tokenizer_pattern(*sources):
    """A wildcard pattern of the tokenizers that are read from suites of some sources."""
    names = [name for name, model in GRID.tokenizers.items() if SUITES[model.suite].source in sources]
    return "|".join(map(re.escape, names)) or "(?!)"


def tokenizer_model(wildcards):
    """The model that a tokenizer is read from."""
    return GRID.tokenizers[wildcards.tokenizer]


def own_path(wildcards):
    """The user's own folder that a tokenizer is read from, if there is one.

    What lies beside a GGUF file is no part of it, so its tokenizer is read where the file is alone: among the models.
    """
    model = tokenizer_model(wildcards)
    suite = SUITES[model.suite]
    path = suite.path_of(model.size, model.step) if suite.source == "local" else None
    return path if path and local_models.tokenizer(Path(path)) else None


def tokenizer_inputs(wildcards):
    """What a tokenizer is read from; of a folder of the user's own no weights, which may change."""
    if path := own_path(wildcards):
        return local_models.tokenizer(Path(path))
    return f"<results>/models/{tokenizer_model(wildcards)}"


rule train_tokenizer:
    input:
        "<results>/text/pretraining.jsonl",
    output:
        directory("<results>/tokenizers/{tokenizer}"),
    log:
        "<logs>/train_tokenizer/{tokenizer}.log",
    benchmark:
        "<benchmarks>/train_tokenizer/{tokenizer}.tsv"
    wildcard_constraints:
        tokenizer=tokenizer_pattern("pretraining"),
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        runtime=more(30),
    params:
        model_type=lambda wildcards: SUITES[tokenizer_model(wildcards).suite].pretraining.model_type,
        vocabulary=lambda wildcards: min(
            size.vocabulary_rows for size in SUITES[tokenizer_model(wildcards).suite].sizes.values()
        ),
    script:
        "../../scripts/train_tokenizer.py"


rule copy_tokenizer:
    input:
        tokenizer_inputs,
    output:
        directory("<results>/tokenizers/{tokenizer}"),
    log:
        "<logs>/copy_tokenizer/{tokenizer}.log",
    benchmark:
        "<benchmarks>/copy_tokenizer/{tokenizer}.tsv"
    wildcard_constraints:
        tokenizer=tokenizer_pattern("package", "local"),
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(1000),
        runtime=more(10),
    params:
        path=own_path,
    script:
        "../../scripts/copy_tokenizer.py"


rule fetch_tokenizer:
    output:
        directory("<results>/tokenizers/{tokenizer}"),
    log:
        "<logs>/fetch_tokenizer/{tokenizer}.log",
    benchmark:
        "<benchmarks>/fetch_tokenizer/{tokenizer}.tsv"
    wildcard_constraints:
        tokenizer=tokenizer_pattern("hub"),
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(1000),
        runtime=more(30),
        downloads=1,
    params:
        source=lambda wildcards: hub_source(tokenizer_model(wildcards)),
        files="tokenizer",
    script:
        "../../scripts/fetch.py"
