"""Set what was measured on one data set beside what a published study printed."""

from lmshape.jobs import job

job.start(snakemake)

import polars as pl

from lmshape.report import published, tables

measured = [pl.read_parquet(path).filter(dataset=snakemake.wildcards.dataset) for path in snakemake.input]
tables.write(published.compare(*measured), snakemake.output[0])
