"""Retrieval data sets, and the tokens of data sets and of text.

Reads installed packages, files or downloads, <results>/text/held_out.jsonl and <results>/tokenizers/{tokenizer}.
Writes <results>/datasets/{dataset} (BEIR layout), <results>/counts/{dataset}/{tokenizer}.npz and
<results>/token_ids/{tokenizer}.npz.
"""

from lmshape.inputs import mteb_sizes
from lmshape.jobs.memory import counting_mb, dataset_mb
from lmshape.jobs.runtime import counting_minutes, dataset_minutes


def own_dataset(wildcards):
    """The files of a retrieval data set where it is a folder of the user's."""
    settings = STUDY.retrieval.datasets[wildcards.dataset]
    return settings.files if settings.source == "folder" else []


def dataset_packages(wildcards):
    """Versions of the packages that a retrieval data set is made of; mteb pins the revisions of its data."""
    settings = STUDY.retrieval.datasets[wildcards.dataset]
    if settings.source == "mteb":
        return versions(["mteb"])
    return versions(settings.packages if settings.source == "package-documentation" else [])


def source_mb(wildcards):
    """MB of text that a retrieval data set is made of, where that is known before: two bytes to a character of mteb."""
    settings = STUDY.retrieval.datasets[wildcards.dataset]
    if settings.source == "mteb":
        return 2 * mteb_sizes.characters(settings.task, settings.split) / 1e6
    return sum(Path(file).stat().st_size for file in own_dataset(wildcards)) / 1e6


def folder_mb(folder):
    """MB of the texts of a BEIR folder."""
    return sum(file.stat().st_size for file in os.scandir(folder)) / 1e6


rule dataset:
    input:
        own_dataset,
    output:
        directory("<results>/datasets/{dataset}"),
    log:
        "<logs>/dataset/{dataset}.log",
    benchmark:
        "<benchmarks>/dataset/{dataset}.tsv"
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, attempt: int(dataset_mb(source_mb(wildcards)) * attempt),
        runtime=lambda wildcards, attempt: int(dataset_minutes(source_mb(wildcards)) * attempt),
        downloads=lambda wildcards: int(STUDY.retrieval.datasets[wildcards.dataset].source == "mteb"),
    params:
        function=lambda wildcards: STUDY.retrieval.datasets[wildcards.dataset].made_by,
        settings=lambda wildcards: STUDY.retrieval.datasets[wildcards.dataset].model_dump(exclude={"source"}),
        packages=dataset_packages,
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
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, input, attempt: int(counting_mb(folder_mb(input.dataset)) * attempt),
        runtime=lambda wildcards, input, attempt: int(counting_minutes(folder_mb(input.dataset)) * attempt),
    params:
        tokenizer="{tokenizer}",
        max_length=STUDY.retrieval and STUDY.retrieval.max_length,
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
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(4000),
        runtime=more(60),
    script:
        "../../scripts/token_ids.py"
