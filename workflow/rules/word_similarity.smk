"""Embedding tables against what people say of the similarity of words.

Reads files of word pairs, <results>/tokenizers/{tokenizer} and
<results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors.
Writes <results>/word_counts/{dataset}/{tokenizer}.npz and
<results>/word_similarity/{dataset}/{suite}/{size}/{checkpoint}/{side}.parquet.
"""


def word_pairs(wildcards):
    """The file of a data set of word pairs, by the name that the study gives."""
    return STUDY.word_similarity.datasets[wildcards.dataset]


def own_word_pairs(wildcards):
    """The same where it is a file of the user's; what is in a package's is known by the package's version."""
    name = word_pairs(wildcards)
    return [name] if os.path.isfile(name) else []


rule count_words:
    input:
        pairs=own_word_pairs,
        tokenizer="<results>/tokenizers/{tokenizer}",
    output:
        "<results>/word_counts/{dataset}/{tokenizer}.npz",
    log:
        "<logs>/count_words/{dataset}/{tokenizer}.log",
    benchmark:
        "<benchmarks>/count_words/{dataset}/{tokenizer}.tsv"
    cache: SHARED
    conda:
        "../../envs/models.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        runtime=more(10),
    params:
        pairs=word_pairs,
        packages=lambda wildcards: versions([] if own_word_pairs(wildcards) else ["gensim"]),
    script:
        "../../scripts/count_words.py"


rule measure_word_similarity:
    input:
        counts=lambda wildcards: f"<results>/word_counts/{wildcards.dataset}/{suite_of(wildcards).tokenizer}.npz",
        table="<results>/embeddings/{suite}/{size}/{checkpoint}/{side}.safetensors",
        compared=tokenizer_comparison,
    output:
        "<results>/word_similarity/{dataset}/{suite}/{size}/{checkpoint}/{side}.parquet",
    log:
        "<logs>/measure_word_similarity/{dataset}/{suite}/{size}/{checkpoint}/{side}.log",
    benchmark:
        "<benchmarks>/measure_word_similarity/{dataset}/{suite}/{size}/{checkpoint}/{side}.tsv"
    conda:
        "../../envs/measures.yaml"
    threads: 1
    resources:
        mem_mb=table_memory,
        runtime=more(5),
    params:
        columns=model_columns,
        tokenizer=lambda wildcards: suite_of(wildcards).tokenizer,
    script:
        "../../scripts/measure_word_similarity.py"
