"""One tidy table for every measure: first for each suite, then over suites; of summaries, over suites at once.

Reads what the measures and summaries wrote.
Writes <results>/tables/by_suite/{table}/{suite}.parquet, and <results>/tables/{table}.parquet and .csv.
"""

TABLES = GRID.tables


def of_suite(wildcards):
    """What a table is gathered from, of one suite."""
    return [f"<results>/{path}" for path in TABLES[wildcards.table][wildcards.suite]]


def parts(wildcards):
    """What a table is gathered from: its parts by suite, or a summary's files.

    So no job of `suite_table` waits for another, and a cluster may run any of them in one submission.
    """
    name = wildcards.table
    if name in grid.SUMMARIES:
        return [f"<results>/{path}" for paths in TABLES[name].values() for path in paths]
    return [f"<results>/tables/by_suite/{name}/{suite}.parquet" for suite in TABLES[name]]


rule suite_table:
    input:
        lambda wildcards: there(of_suite(wildcards)),
    output:
        "<results>/tables/by_suite/{table}/{suite}.parquet",
    log:
        "<logs>/suite_table/{table}/{suite}.log",
    benchmark:
        "<benchmarks>/suite_table/{table}/{suite}.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        runtime=more(5),
    params:
        labels=lambda wildcards: GRID.labels(wildcards.table, wildcards.suite),
        lost=lambda wildcards: losses(of_suite(wildcards)),
    script:
        "../../scripts/table.py"


rule table:
    input:
        lambda wildcards: there(parts(wildcards)),
    output:
        "<results>/tables/{table}.parquet",
        "<results>/tables/{table}.csv",
    log:
        "<logs>/table/{table}.log",
    benchmark:
        "<benchmarks>/table/{table}.tsv"
    wildcard_constraints:
        table="|".join(TABLES),
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(4000),
        runtime=more(30),
    params:
        labels=None,  # they are there
        lost=lambda wildcards: losses(parts(wildcards)),
    script:
        "../../scripts/table.py"


def tables(*names):
    """The finished tables of these names that the study has."""
    return expand("<results>/tables/{table}.parquet", table=[name for name in names if name in TABLES])


def results(*names):
    """The files that these tables are gathered from, so that one that was deleted is made again.

    Snakemake makes what is missing only for a target that asks for it, not for a table that is there already.
    """
    return lambda wildcards: [
        f"<results>/{path}" for name in names for paths in TABLES.get(name, {}).values() for path in paths
    ]


OF_RETRIEVAL = ("retrieval", "random_baseline", "comparisons", "mteb_tasks", "published")


rule retrieval:
    input:
        tables(*OF_RETRIEVAL),
        results(*OF_RETRIEVAL),


rule word_similarity:
    input:
        tables("word_similarity"),
        results("word_similarity"),


rule anisotropy:
    input:
        tables("anisotropy"),
        results("anisotropy"),


rule intrinsic_dimension:
    input:
        tables("intrinsic_dimension"),
        results("intrinsic_dimension"),
