"""Embedding tables, read out of checkpoints without loading the model.

Reads <results>/models/{suite}/{size}/{checkpoint}; of a model on the hub, the bytes of its embeddings alone.
Writes <results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors.
"""


def table_folder(wildcards):
    """Where an embedding table is read from: of a model on the hub, only that tensor is fetched."""
    if suite_of(wildcards).source == "hub":
        return "<results>/tensors/{suite}/{size}/{checkpoint}".format(**wildcards)
    return model_folder(wildcards)


rule fetch_embeddings:
    output:
        temp(directory("<results>/tensors/{suite}/{size}/{checkpoint}")),
    log:
        "<logs>/fetch_embeddings/{suite}/{size}/{checkpoint}.log",
    benchmark:
        "<benchmarks>/fetch_embeddings/{suite}/{size}/{checkpoint}.tsv"
    wildcard_constraints:
        suite=from_source("hub"),
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=table_memory,
        runtime=more(240),
        downloads=1,
    params:
        source=lambda wildcards: hub_source(model_of(wildcards)),
        files="embedding",
    script:
        "../../scripts/fetch.py"


rule embedding_table:
    input:
        table_folder,
    output:
        "<results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors",
    log:
        "<logs>/embedding_table/{suite}/{size}/{checkpoint}/{side}.log",
    benchmark:
        "<benchmarks>/embedding_table/{suite}/{size}/{checkpoint}/{side}.tsv"
    cache: SHARED
    conda:
        "../../envs/measures.yaml"
    threads: 1
    resources:
        mem_mb=table_memory,
        runtime=more(10),
    params:
        within=within,
        model="suite {suite}, size {size}",
        side="{side}",
        shape=table_shape,
        untied=lambda wildcards: suite_of(wildcards).untied_at(wildcards.size),
    script:
        "../../scripts/embedding_table.py"
