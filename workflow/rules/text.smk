"""Text that models read, retrieval data sets, and their tokens.

Reads installed packages, files or downloads, and <results>/tokenizers/{tokenizer}.
Writes <results>/text/{pretraining,held_out}.jsonl, <results>/datasets/{dataset} (BEIR layout),
<results>/counts/{dataset}/{tokenizer}.npz and <results>/token_ids/{tokenizer}.npz.
"""


def own_text(wildcards):
    """The study's corpus where it is a file of the user's."""
    return [STUDY.text.corpus.path] if STUDY.text and STUDY.text.corpus.source == "file" else []


def own_dataset(wildcards):
    """The files of a retrieval data set where it is a folder of the user's."""
    settings = STUDY.retrieval.datasets[wildcards.dataset]
    files = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv") if settings.source == "folder" else ()
    return [f"{settings.path}/{name}" for name in files]


rule text:
    input:
        own_text,
    output:
        pretraining="<results>/text/pretraining.jsonl",
        held_out="<results>/text/held_out.jsonl",
    log:
        "<logs>/text.log",
    benchmark:
        "<benchmarks>/text.tsv"
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(1500),
        runtime=more(30),
        downloads=int(bool(STUDY.text) and STUDY.text.corpus.source == "enwik8"),
    params:
        text=STUDY.text and STUDY.text.model_dump(),
        code=code("text"),
    script:
        "../../scripts/text.py"


rule dataset:
    input:
        own_dataset,
    output:
        directory("<results>/datasets/{dataset}"),
    log:
        "<logs>/dataset/{dataset}.log",
    benchmark:
        "<benchmarks>/dataset/{dataset}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(4000),
        runtime=more(60),
        downloads=lambda wildcards: int(STUDY.retrieval.datasets[wildcards.dataset].source == "mteb"),
    params:
        dataset=lambda wildcards: STUDY.retrieval.datasets[wildcards.dataset].model_dump(),
        code=code("dataset"),
    script:
        "../../scripts/dataset.py"


rule counts:
    input:
        dataset="<results>/datasets/{dataset}",
        tokenizer="<results>/tokenizers/{tokenizer}",
    output:
        "<results>/counts/{dataset}/{tokenizer}.npz",
    log:
        "<logs>/counts/{dataset}/{tokenizer}.log",
    benchmark:
        "<benchmarks>/counts/{dataset}/{tokenizer}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(4000),
        runtime=more(60),
    params:
        max_length=STUDY.retrieval and STUDY.retrieval.max_length,
        code=code("counts"),
    script:
        "../../scripts/counts.py"


rule token_ids:
    input:
        text="<results>/text/held_out.jsonl",
        tokenizer="<results>/tokenizers/{tokenizer}",
    output:
        "<results>/token_ids/{tokenizer}.npz",
    log:
        "<logs>/token_ids/{tokenizer}.log",
    benchmark:
        "<benchmarks>/token_ids/{tokenizer}.tsv"
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(4000),
        runtime=more(60),
    params:
        code=code("token_ids"),
    script:
        "../../scripts/token_ids.py"
