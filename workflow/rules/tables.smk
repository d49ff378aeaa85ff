"""One tidy table for every measure: first for each suite, then over suites.

Reads what the measures wrote.
Writes <results>/tables/by_suite/{table}/{suite}.parquet, and <results>/tables/{table}.parquet and .csv.
"""

TABLES = GRID.tables


rule suite_table:
    input:
        lambda wildcards: [f"<results>/{path}" for path in TABLES[wildcards.table][wildcards.suite]],
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
        runtime=more(30),
    params:
        code=code("table"),
    script:
        "../../scripts/table.py"


rule table:
    input:
        lambda wildcards: [f"<results>/tables/by_suite/{wildcards.table}/{s}.parquet" for s in TABLES[wildcards.table]],
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
        code=code("table"),
    script:
        "../../scripts/table.py"


def tables(*names):
    """The finished tables of these names that the study has."""
    return expand("<results>/tables/{table}.parquet", table=[name for name in names if name in TABLES])


rule retrieval:
    input:
        tables("retrieval", "random_baseline", "comparisons", "mteb_tasks", "published"),


rule word_similarity:
    input:
        tables("word_similarity"),


rule anisotropy:
    input:
        tables("anisotropy"),


rule intrinsic_dimension:
    input:
        tables("intrinsic_dimension"),
