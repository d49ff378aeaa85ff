"""Put tables, figures and provenance into one page."""

from lmshape.jobs import job

job.start(snakemake)

from pathlib import Path

import polars as pl

from lmshape.files import writing
from lmshape.report import page, provenance

tables = {Path(path).stem: pl.read_parquet(path) for path in snakemake.input.tables}
figures = {Path(path).stem: path for path in snakemake.input.figures}
params = snakemake.params
origin = provenance.gather(params.title, snakemake.input.study, snakemake.input.pruned, params.read)
with writing(snakemake.output[0]) as path:
    html = page.render(tables, figures, origin, params.choices, params.lost)
    path.write_text(html, encoding="utf-8")
