"""What a reader sees: figures, where time and memory went, and one page with everything.

Reads <results>/tables/{table}.parquet, <results>/study.yaml, <results>/pruned.csv and <results>/benchmarks/.
Writes <results>/figures/{figure}.svg and .png, <results>/tables/benchmarks.parquet and .csv, and <results>/report.html.
"""

import os
from itertools import chain

from snakemake.io import strip_wildcard_constraints

from lmshape.report import figure_list
from lmshape.report.figure_list import FIGURES
from lmshape.study.config import own_files

DRAWN = figure_list.drawn(GRID)
OF_RESULTS = [name for name in DRAWN if FIGURES[name].table != "benchmarks"]


def drawn(names, *formats):
    """The files of these figures."""
    return expand("<results>/figures/{figure}.{format}", figure=names, format=formats)


rule figure:
    input:
        lambda wildcards: f"<results>/tables/{FIGURES[wildcards.figure].table}.parquet",
    output:
        svg="<results>/figures/{figure}.svg",
        png="<results>/figures/{figure}.png",
    log:
        "<logs>/figure/{figure}.log",
    benchmark:
        "<benchmarks>/figure/{figure}.tsv"
    wildcard_constraints:
        figure="|".join(FIGURES),
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        runtime=more(15),
    params:
        function="report.figures.{figure}",
        choices=lambda wildcards: FIGURES[wildcards.figure].choices(STUDY),
    script:
        "../../scripts/figure.py"


# Snakemake takes no benchmark file as an input. What they say changes with a run of some job, so with a result.
rule benchmarks:
    input:
        there(tables(*TABLES)),
        there(drawn(OF_RESULTS, "svg")),
        ancient("<results>/study.yaml"),
    output:
        "<results>/tables/benchmarks.parquet",
        "<results>/tables/benchmarks.csv",
    log:
        "<logs>/benchmarks.log",
    benchmark:
        "<benchmarks>/benchmarks.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(1500),
        runtime=more(15),
    params:
        folder=f"results/{STUDY.study}/benchmarks",
        rules={each.name: strip_wildcard_constraints(each.benchmark) for each in workflow.rules if each.benchmark},
        models=sorted({(m.suite, m.size, SUITES[m.suite].sizes[m.size].parameters) for m in GRID.models}),
    script:
        "../../scripts/benchmarks.py"


rule figures:
    input:
        drawn(DRAWN, "svg", "png"),
        results(*TABLES),


def read_files():
    """The files that say what this study is and what it measures on; models are known by their hashes."""
    suites = {*GRID.suite_names, *(model.suite for model in GRID.tokenizers.values())}
    told = workflow.overwrite_configfiles or [ROOT / "config.yaml"]
    files = [*told, *(ROOT / "suites" / f"{name}.yaml" for name in suites), *chain(*own_files(STUDY).values())]
    return sorted(map(os.path.relpath, files))


REPORTED = [*tables(*TABLES), "<results>/tables/benchmarks.parquet"]


rule write_report:
    input:
        tables=there(REPORTED),
        figures=there(drawn(DRAWN, "svg")),
        study="<results>/study.yaml",
        pruned="<results>/pruned.csv",
    output:
        "<results>/report.html",
    log:
        "<logs>/write_report.log",
    benchmark:
        "<benchmarks>/write_report.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        runtime=more(15),
    params:
        title=STUDY.title,
        read=read_files(),
        choices={name: FIGURES[name].choices(STUDY) for name in DRAWN},
        lost=losses([*REPORTED, *drawn(DRAWN, "svg")]),
    script:
        "../../scripts/report.py"


rule report:
    input:
        "<results>/report.html",
        results(*TABLES),
