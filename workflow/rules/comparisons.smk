"""What was scored, compared: the sizes of a suite with each other, and all with what a published study printed.

Reads <results>/retrieval/{dataset}/{suite}/{size}/{checkpoint}/{side}/original/none.queries.parquet and
<results>/tables/{retrieval,random_baseline}.parquet.
Writes <results>/comparisons/{suite}.parquet and <results>/published/{dataset}.parquet.
"""


rule compare_sizes:
    input:
        lambda wildcards: [f"<results>/{scored}.queries.parquet" for scored in GRID.originals(wildcards.suite)],
    output:
        "<results>/comparisons/{suite}.parquet",
    log:
        "<logs>/compare_sizes/{suite}.log",
    benchmark:
        "<benchmarks>/compare_sizes/{suite}.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(1500),
        runtime=more(15),
    params:
        scored=lambda wildcards: [(c.dataset, c.side, c.model.size) for c in GRID.originals(wildcards.suite)],
        bootstrap=STUDY.retrieval and STUDY.retrieval.bootstrap,
    script:
        "../../scripts/compare_sizes.py"


rule compare_with_published:
    input:
        lambda wildcards: tables("retrieval", "random_baseline"),
    output:
        "<results>/published/{dataset}.parquet",
    log:
        "<logs>/compare_with_published/{dataset}.log",
    benchmark:
        "<benchmarks>/compare_with_published/{dataset}.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        runtime=more(15),
    script:
        "../../scripts/compare_with_published.py"
