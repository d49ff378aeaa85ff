"""What a reader sees: figures and the report.

Reads <results>/tables. Writes <results>/figures/{figure}.svg and .png, and <results>/report.html.
"""


rule report:
    input:
        [f"<results>/tables/{table}.parquet" for table in TABLES],
    output:
        "<results>/report.html",
    log:
        "<logs>/report.log",
    params:
        code="x",
    script:
        "../../scripts/report.py"
