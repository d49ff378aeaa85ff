"""Models: trained here with all their checkpoints, copied out of a package, linked to, or fetched from the hub.

Reads <results>/text/pretraining.jsonl and <results>/tokenizers/{tokenizer} for the suites that are trained here, and
the files of the user's own models.
Writes <results>/models/{suite}/{size}/{checkpoint}, folders that transformers reads, and
<results>/pretraining/{suite}/{size}.parquet, the losses.
"""

from lmshape.inputs import local_models


def local_path(wildcards):
    """Where a model of the user's own lies."""
    return suite_of(wildcards).path_of(wildcards.size, model_of(wildcards).step)


def passed_over():
    """What of the folders of the user's own models is not read."""
    for _, path in grid.own_models(GRID.models, SUITES):
        yield from local_models.passed_over(path)


FIRST_WORDS.append(passed_over)


rule pretrain:
    input:
        text="<results>/text/pretraining.jsonl",
        tokenizer=lambda wildcards: f"<results>/tokenizers/{suite_of(wildcards).tokenizer}",
    output:
        models=directory("<results>/models/{suite}/{size}"),
        losses="<results>/pretraining/{suite}/{size}.parquet",
    log:
        "<logs>/pretrain/{suite}/{size}.log",
    benchmark:
        "<benchmarks>/pretrain/{suite}/{size}.tsv"
    wildcard_constraints:
        suite=from_source("pretraining"),
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(3000),
        runtime=more(120),
        gpu=1,
    params:
        names=lambda wildcards: dict(wildcards.items()),
        pretraining=lambda wildcards: suite_of(wildcards).pretraining.model_dump(),
        steps=lambda wildcards: suite_of(wildcards).checkpoints.steps,
        size=lambda wildcards: size_of(wildcards).model_dump(include={"width", "vocabulary_rows", "layers", "heads"}),
    script:
        "../../scripts/pretrain.py"


rule copy_model:
    output:
        directory("<results>/models/{suite}/{size}/{checkpoint}"),
    log:
        "<logs>/copy_model/{suite}/{size}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/copy_model/{suite}/{size}/{checkpoint}.tsv"
    wildcard_constraints:
        suite=from_source("package"),
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(4000),
        runtime=more(30),
    params:
        package=lambda wildcards: suite_of(wildcards).package,
        path=lambda wildcards: size_of(wildcards).path,
        packages=lambda wildcards: versions([suite_of(wildcards).package]),
    script:
        "../../scripts/copy_model.py"


rule link_model:
    input:
        lambda wildcards: local_models.files(Path(local_path(wildcards))),
    output:
        directory("<results>/models/{suite}/{size}/{checkpoint}"),
    log:
        "<logs>/link_model/{suite}/{size}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/link_model/{suite}/{size}/{checkpoint}.tsv"
    wildcard_constraints:
        suite=from_source("local"),
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(1000),
        runtime=more(60),
    params:
        path=local_path,
    script:
        "../../scripts/link_model.py"


rule fetch_model:
    output:
        temp(directory("<results>/models/{suite}/{size}/{checkpoint}")),
    log:
        "<logs>/fetch_model/{suite}/{size}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/fetch_model/{suite}/{size}/{checkpoint}.tsv"
    wildcard_constraints:
        suite=from_source("hub"),
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        runtime=more(480),
        downloads=1,
    params:
        source=lambda wildcards: hub_source(model_of(wildcards)),
        files="model",
    script:
        "../../scripts/fetch.py"
