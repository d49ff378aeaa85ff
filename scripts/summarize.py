"""Tell the shapes of one suite as numbers with their uncertainties."""

from lmshape.jobs import job

job.start(snakemake)

import polars as pl

from lmshape import results
from lmshape.report import tables

table, summarize = pl.read_parquet(snakemake.input[0]), job.function(snakemake.params.function)
results.write(tables.summarized(table, summarize), snakemake.output[0])
