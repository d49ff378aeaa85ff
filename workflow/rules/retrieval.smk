"""Embedding tables, ablated and scored on retrieval; random tables by tokenizer.

Reads <results>/datasets/{dataset}, <results>/counts/{dataset}/{tokenizer}.npz and
<results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors.
Writes <results>/retrieval/{dataset}/{suite}/{size}/{checkpoint}/{side}/{ablation}/{seed}.parquet (one row per metric,
and beside it .queries.parquet, nDCG@10 of every query) and <results>/random_baseline/{dataset}/{tokenizer}/{seed}.parquet.
"""

from lmshape.inputs import datasets
from lmshape.jobs.memory import drawn_mb, texts_mb
from lmshape.jobs.runtime import retrieve_minutes, scoring_minutes
from lmshape.study.ablation_names import Ablation


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


def drawn_disk(wildcards):
    """MB of temporary files, where an ablation draws columns."""
    (rows, width), ablation = table_shape(wildcards), Ablation.parse(wildcards.ablation)
    return drawn_mb(rows, ablation.width(width) if ablation.kind in ("random", "pad") else 0)


rule retrieve:
    input:
        dataset="<results>/datasets/{dataset}",
        counts=counts_of,
        table="<results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors",
        compared=tokenizer_comparison,
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
    resources:
        mem_mb=retrieve_memory,
        disk_mb=drawn_disk,
        runtime=retrieve_time,
    params:
        columns=model_columns,
        function=lambda wildcards: f"numerics.ablation.{Ablation.parse(wildcards.ablation).kind}",
        size=lambda wildcards: Ablation.parse(wildcards.ablation).size,
        precision=STUDY.retrieval and STUDY.retrieval.precision,
        bootstrap=STUDY.retrieval and STUDY.retrieval.bootstrap,
    script:
        "../../scripts/retrieve.py"


rule random_baseline:
    input:
        dataset="<results>/datasets/{dataset}",
        counts="<results>/counts/{dataset}/{tokenizer}.npz",
    output:
        "<results>/random_baseline/{dataset}/{tokenizer}/{seed}.parquet",
    log:
        "<logs>/random_baseline/{dataset}/{tokenizer}/{seed}.log",
    benchmark:
        "<benchmarks>/random_baseline/{dataset}/{tokenizer}/{seed}.tsv"
    conda:
        "../../envs/measures.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, input, attempt: int((3000 + texts_mb(input.counts)) * attempt),
        disk_mb=lambda wildcards: drawn_mb(
            GRID.vocabulary_rows(wildcards.tokenizer), max(STUDY.retrieval.random_baseline.widths)
        ),
        runtime=baseline_time,
    params:
        rows=lambda wildcards: GRID.vocabulary_rows(wildcards.tokenizer),
        widths=lambda wildcards: STUDY.retrieval.random_baseline.widths,
        precision=STUDY.retrieval and STUDY.retrieval.precision,
        bootstrap=STUDY.retrieval and STUDY.retrieval.bootstrap,
    script:
        "../../scripts/random_baseline.py"
