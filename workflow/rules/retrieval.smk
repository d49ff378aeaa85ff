"""Embedding tables, ablated and scored on retrieval; random tables by tokenizer.

Reads <results>/datasets/{dataset}, <results>/counts/{dataset}/{tokenizer}.npz,
<results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors and <results>/random_tables/{rows}/{length}/{seed}.bfloat16.
Writes <results>/retrieval/{dataset}/{suite}/{size}/{checkpoint}/{side}/{ablation}/{seed}.parquet (one row per metric,
and beside it .queries.parquet, nDCG@10 of every query) and <results>/random_baseline/{dataset}/{tokenizer}/{seed}.parquet
and .queries.parquet, of all widths. A random table that the baseline has at its width is not scored again.
"""

from lmshape.inputs import datasets
from lmshape.jobs.memory import texts_mb
from lmshape.jobs.runtime import retrieve_minutes, scoring_minutes


def counts_of(wildcards):
    return f"<results>/counts/{wildcards.dataset}/{suite_of(wildcards).tokenizer}.npz"


def retrieve_memory(wildcards, input, attempt):
    """MB for a table and the texts that it scores; known when they have been counted."""
    return table_memory(wildcards, attempt) + int(texts_mb(input.counts) * attempt)


def scored_texts(input):
    """(documents, judged queries, MB of counts) of a data set; known when its texts have been counted."""
    said = datasets.about(input.dataset)
    return said.get("documents", 0), said.get("judged", 0), Path(input.counts).stat().st_size / 1e6


def retrieve_time(wildcards, input, attempt):
    width = Ablation.parse(wildcards.ablation).width(table_shape(wildcards)[1])
    return int(retrieve_minutes(*scored_texts(input), width) * attempt)


def baseline_time(wildcards, input, attempt):
    widths = STUDY.retrieval.random_baseline.widths
    return int((120 + scoring_minutes(*scored_texts(input), max(widths))) * attempt)


rule retrieve:
    input:
        dataset="<results>/datasets/{dataset}",
        counts=counts_of,
        table="<results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors",
        compared=tokenizer_comparison,
        drawn=ancient(drawn_of),
        baseline=ancient(baseline_of),
    output:
        rows="<results>/retrieval/{dataset}/{suite}/{size}/{checkpoint}/{side}/{ablation}/{seed}.parquet",
        queries="<results>/retrieval/{dataset}/{suite}/{size}/{checkpoint}/{side}/{ablation}/{seed}.queries.parquet",
    log:
        "<logs>/retrieve/{dataset}/{suite}/{size}/{checkpoint}/{side}/{ablation}/{seed}.log",
    benchmark:
        "<benchmarks>/retrieve/{dataset}/{suite}/{size}/{checkpoint}/{side}/{ablation}/{seed}.tsv"
    conda:
        "../../envs/measures.yaml"
    threads: 1
    priority: 1 # before more random tables are drawn, which lie there until all their readers are done
    resources:
        mem_mb=retrieve_memory,
        runtime=retrieve_time,
    params:
        columns=model_columns,
        function=lambda wildcards: f"numerics.ablation.{Ablation.parse(wildcards.ablation).kind}",
        size=lambda wildcards: Ablation.parse(wildcards.ablation).size,
        scripts=scripts_behind,
        precision=STUDY.retrieval and STUDY.retrieval.precision,
        bootstrap=STUDY.retrieval and STUDY.retrieval.bootstrap,
    script:
        "../../scripts/retrieve.py"


rule random_baseline:
    input:
        dataset="<results>/datasets/{dataset}",
        counts="<results>/counts/{dataset}/{tokenizer}.npz",
        drawn=ancient(drawn_of_baseline),
    output:
        rows="<results>/random_baseline/{dataset}/{tokenizer}/{seed}.parquet",
        queries="<results>/random_baseline/{dataset}/{tokenizer}/{seed}.queries.parquet",
    log:
        "<logs>/random_baseline/{dataset}/{tokenizer}/{seed}.log",
    benchmark:
        "<benchmarks>/random_baseline/{dataset}/{tokenizer}/{seed}.tsv"
    conda:
        "../../envs/measures.yaml"
    threads: 1
    priority: 1
    resources:
        mem_mb=lambda wildcards, input, attempt: int((2000 + texts_mb(input.counts)) * attempt),
        runtime=baseline_time,
    params:
        rows=lambda wildcards: GRID.vocabulary_rows(wildcards.tokenizer),
        widths=lambda wildcards: STUDY.retrieval.random_baseline.widths,
        scripts=[DRAWING],
        precision=STUDY.retrieval and STUDY.retrieval.precision,
        bootstrap=STUDY.retrieval and STUDY.retrieval.bootstrap,
    script:
        "../../scripts/random_baseline.py"
