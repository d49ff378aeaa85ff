"""What is run: the study as it was resolved, and the combinations that were pruned.

Writes <results>/study.yaml and <results>/pruned.csv.
"""


rule study:
    output:
        study="<results>/study.yaml",
        pruned="<results>/pruned.csv",
    log:
        "<logs>/study.log",
    benchmark:
        "<benchmarks>/study.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=more(600),
        runtime=more(5),
    params:
        study=STUDY.model_dump(mode="json", exclude_defaults=False),
        suites={name: SUITES[name].model_dump(mode="json", exclude_none=True) for name in GRID.suite_names},
        pruned=[(str(cut.combination), cut.reason) for cut in GRID.pruned],
    script:
        "../../scripts/study.py"
