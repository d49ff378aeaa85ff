"""Random tables, each drawn once for all that is scored with its columns. Temporary.

Writes <results>/random_tables/{rows}/{length}/{seed}.bfloat16: of a matrix of (rows, length), as many of its first
columns as the study needs. How many lie there is no part of what a reader's result is made of, nor is who else reads
them: readers take the file as `ancient`, and count the script that draws as code of their own (`scripts`, lineage.smk).
"""

from lmshape.jobs.memory import drawn_mb
from lmshape.study import random_streams
from lmshape.study.ablation_names import Ablation
from lmshape.study.grid import Combination
from lmshape.study.random_streams import Stream

RANDOM_TABLE = "<results>/random_tables/{}.bfloat16"
DRAWING = "draw_random_table.py"


@cache
def drawn_columns():
    return random_streams.columns(GRID)


def columns_to_draw(wildcards):
    """How many columns of a stream the study needs; all of one that a file beyond the study is asked for with."""
    stream = Stream(int(wildcards.rows), int(wildcards.length), wildcards.seed)
    return drawn_columns().get(stream, stream.length)


def combination_of(wildcards):
    ablated = wildcards.side, wildcards.ablation, wildcards.seed
    return Combination("retrieval", wildcards.dataset, model_of(wildcards), *ablated)


def baseline_of(wildcards):
    """The rows of the random baseline, and its scores by query, where it has scored the same random table."""
    path = random_streams.baseline(GRID, combination_of(wildcards))
    return [f"<results>/random_baseline/{path}{ending}.parquet" for ending in ("", ".queries")] if path else []


def drawn_of_baseline(wildcards):
    return RANDOM_TABLE.format(random_streams.of_baseline(GRID, wildcards.tokenizer, wildcards.seed))


def drawn_of(wildcards):
    """The random table that a combination takes columns of, where it has to be scored."""
    stream = random_streams.drawn(GRID, combination_of(wildcards))
    return RANDOM_TABLE.format(stream) if stream and not baseline_of(wildcards) else []


def scripts_behind(wildcards):
    """The scripts of other rules that make what a combination is scored with, or could have made its scores.

    Not whether the baseline has it: then the widths of the baseline would make random rows stale.
    """
    ablation = Ablation.parse(wildcards.ablation)
    drawing = [DRAWING] if ablation.length else []
    return drawing + (["random_baseline.py"] if ablation.kind == "random" else [])


rule draw_random_table:
    output:
        temp("<results>/random_tables/{rows}/{length}/{seed}.bfloat16"),
    log:
        "<logs>/draw_random_table/{rows}/{length}/{seed}.log",
    benchmark:
        "<benchmarks>/draw_random_table/{rows}/{length}/{seed}.tsv"
    wildcard_constraints:
        rows="[0-9]+",
        length="[0-9]+",
    conda:
        "../../envs/measures.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        disk_mb=lambda wildcards: drawn_mb(int(wildcards.rows), columns_to_draw(wildcards)),
        runtime=more(30),
    params:
        columns=columns_to_draw,
    script:
        "../../scripts/draw_random_table.py"
