"""Embedding tables on any other task of mteb: similarity, classification, clustering.

Reads <results>/tokenizers/{tokenizer}, <results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors, and the hub.
Writes <results>/tasks/{task} and <results>/mteb_tasks/{task}/{suite}/{size}/{checkpoint}/{side}.parquet.
"""


rule fetch_task:
    output:
        directory("<results>/tasks/{task}"),
    log:
        "<logs>/fetch_task/{task}.log",
    benchmark:
        "<benchmarks>/fetch_task/{task}.tsv"
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(4000),
        runtime=more(60),
        downloads=1,
    params:
        task="{task}",
        packages=versions(["mteb"]),  # which pins the revision of its data
    script:
        "../../scripts/fetch_task.py"


rule mteb_task:
    input:
        data="<results>/tasks/{task}",
        tokenizer=lambda wildcards: f"<results>/tokenizers/{suite_of(wildcards).tokenizer}",
        table="<results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors",
        compared=tokenizer_comparison,
    output:
        "<results>/mteb_tasks/{task}/{suite}/{size}/{checkpoint}/{side}.parquet",
    log:
        "<logs>/mteb_task/{task}/{suite}/{size}/{checkpoint}/{side}.log",
    benchmark:
        "<benchmarks>/mteb_task/{task}/{suite}/{size}/{checkpoint}/{side}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: table_memory(wildcards, attempt) + 3000 * attempt,
        runtime=more(240),
    params:
        columns=model_columns,
        tokenizer=lambda wildcards: suite_of(wildcards).tokenizer,
        precision=STUDY.retrieval and STUDY.retrieval.precision,
        max_length=STUDY.retrieval and STUDY.retrieval.max_length,
    script:
        "../../scripts/mteb_task.py"
