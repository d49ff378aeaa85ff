"""Draw one figure from the table it reads."""

from lmshape.jobs import job

job.start(snakemake)

from pathlib import Path

import polars as pl

from lmshape.report import figures

rows = pl.read_parquet(snakemake.input[0])
figure = job.function(snakemake.params.function)(rows, **snakemake.params.choices)
figures.save(figure, Path(snakemake.output.svg).with_suffix(""))
