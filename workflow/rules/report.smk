"""What a reader sees: figures, and one page with everything.

Reads <results>/tables/{table}.parquet, <results>/study.yaml and <results>/pruned.csv.
Writes <results>/figures/{figure}.svg and .png, and <results>/report.html.
"""

from lmshape.report.figure_list import FIGURES

DRAWN = [name for name, figure in FIGURES.items() if figure.table in TABLES]


rule figure:
    input:
        lambda wildcards: tables(FIGURES[wildcards.figure].table),
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
        code=code("figure"),
    script:
        "../../scripts/figure.py"


rule figures:
    input:
        expand("<results>/figures/{figure}.{format}", figure=DRAWN, format=["svg", "png"]),


rule report:
    input:
        tables=tables(*TABLES),
        figures=expand("<results>/figures/{figure}.svg", figure=DRAWN),
        study="<results>/study.yaml",
        pruned="<results>/pruned.csv",
    output:
        "<results>/report.html",
    log:
        "<logs>/report.log",
    benchmark:
        "<benchmarks>/report.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(2000),
        runtime=more(15),
    params:
        title=STUDY.title,
        code=code("report"),
    script:
        "../../scripts/report.py"
