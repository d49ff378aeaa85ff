"""Claims about shapes as numbers: bells over layers, rise and fall over training.

Reads <results>/tables/by_suite/{anisotropy,intrinsic_dimension}/{suite}.parquet.
Writes <results>/anisotropy_bells/{suite}.parquet and <results>/dimension_over_training/{suite}.parquet.
"""

# summary -> (table it reads, function that tells it)
SUMMARIES = {
    "anisotropy_bells": ("anisotropy", "summaries.bells"),
    "dimension_over_training": ("intrinsic_dimension", "summaries.training_shapes"),
}


rule summarize:
    input:
        lambda wildcards: f"<results>/tables/by_suite/{SUMMARIES[wildcards.summary][0]}/{wildcards.suite}.parquet",
    output:
        "<results>/{summary}/{suite}.parquet",
    log:
        "<logs>/summarize/{summary}/{suite}.log",
    benchmark:
        "<benchmarks>/summarize/{summary}/{suite}.tsv"
    wildcard_constraints:
        summary="|".join(SUMMARIES),
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(1500),
        runtime=more(5),
    params:
        function=lambda wildcards: SUMMARIES[wildcards.summary][1],
    script:
        "../../scripts/summarize.py"
