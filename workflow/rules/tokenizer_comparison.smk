"""A model whose texts are read with the tokenizer of another must number tokens as that one does.

Reads <results>/tokenizers/{tokenizer}, and the tokenizer that came with the model: in <results>/models/{suite}/{size},
or from the hub.
Writes <results>/compared_tokenizers/{suite}/{size}.json, without which nothing is measured on such a model.
"""


def tokenizer_comparison(wildcards):
    """What shows that a model and its texts have the same tokens, where the tokenizer is not the model's own.

    That is so where it is another suite's. Of a suite of the user's own, nothing else says that its sizes share one.
    """
    suite = suite_of(wildcards)
    lent = suite.tokenizer_suite != suite.name and suite.source != "pretraining"
    later = suite.source == "local" and wildcards.size != next(iter(suite.sizes))
    return "<results>/compared_tokenizers/{suite}/{size}.json".format(**wildcards) if lent or later else []


def finished(wildcards):
    return Model(wildcards.suite, wildcards.size, suite_of(wildcards).final)


def own_tokenizer(wildcards):
    """The folder with the tokenizer that came with a model, if one did."""
    if suite_of(wildcards).source == "hub":
        return "<results>/own_tokenizers/{suite}/{size}"
    return f"<results>/models/{finished(wildcards)}"


rule fetch_own_tokenizer:
    output:
        temp(directory("<results>/own_tokenizers/{suite}/{size}")),
    log:
        "<logs>/fetch_own_tokenizer/{suite}/{size}.log",
    benchmark:
        "<benchmarks>/fetch_own_tokenizer/{suite}/{size}.tsv"
    wildcard_constraints:
        suite=from_source("hub"),
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(1000),
        runtime=more(30),
        downloads=1,
    params:
        source=lambda wildcards: hub_source(finished(wildcards)),
        files="tokenizer-if-any",
    script:
        "../../scripts/fetch.py"


rule compare_tokenizers:
    input:
        own=own_tokenizer,
        used=lambda wildcards: f"<results>/tokenizers/{suite_of(wildcards).tokenizer}",
    output:
        "<results>/compared_tokenizers/{suite}/{size}.json",
    log:
        "<logs>/compare_tokenizers/{suite}/{size}.log",
    benchmark:
        "<benchmarks>/compare_tokenizers/{suite}/{size}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        runtime=more(10),
    params:
        tokenizer=lambda wildcards: suite_of(wildcards).tokenizer,
    script:
        "../../scripts/compare_tokenizers.py"
