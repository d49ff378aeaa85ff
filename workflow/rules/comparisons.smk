"""What was scored, compared: the sizes of a suite with each other.

Reads <results>/retrieval/{dataset}/{suite}/{size}/{checkpoint}/{side}/original/none.queries.parquet.
Writes <results>/comparisons/{suite}.parquet.
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
    threads: 1
    resources:
        mem_mb=more(1500),
        runtime=more(15),
    params:
        scored=lambda wildcards: [(c.dataset, c.side, c.model.size) for c in GRID.originals(wildcards.suite)],
        bootstrap=STUDY.retrieval and STUDY.retrieval.bootstrap,
        code=code("compare_sizes"),
    script:
        "../../scripts/compare_sizes.py"
