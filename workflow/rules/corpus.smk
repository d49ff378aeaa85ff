"""The text that models read: where it comes from, cleaned, and parted in two.

Reads an installed package, a download or a file of the user's.
Writes <results>/downloads/enwik8.zip and <results>/text/{pretraining,held_out}.jsonl.
"""


def corpus_file(wildcards):
    """The file that the study's corpus is read from, where it is not in a package."""
    corpus = STUDY.text.corpus
    files = {"enwik8": "<results>/downloads/enwik8.zip", "file": getattr(corpus, "path", None)}
    return files.get(corpus.source, [])


def corpus_packages():
    """The package that the study's corpus is part of, if it is."""
    return ["gensim"] if STUDY.text and STUDY.text.corpus.source == "wikipedia-extract" else []


rule fetch_text:
    output:
        "<results>/downloads/enwik8.zip",
    log:
        "<logs>/fetch_text.log",
    benchmark:
        "<benchmarks>/fetch_text.tsv"
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(1000),
        runtime=more(60),
        downloads=1,
    script:
        "../../scripts/fetch_text.py"


rule text:
    input:
        corpus_file,
    output:
        pretraining="<results>/text/pretraining.jsonl",
        held_out="<results>/text/held_out.jsonl",
    log:
        "<logs>/text.log",
    benchmark:
        "<benchmarks>/text.tsv"
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(1500),
        runtime=more(30),
    params:
        function=STUDY.text and STUDY.text.corpus.read_by,
        held_out=STUDY.text and STUDY.text.held_out,
        packages=versions(corpus_packages()),
    script:
        "../../scripts/text.py"
