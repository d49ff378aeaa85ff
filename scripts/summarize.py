"""Tell the shapes of one suite as numbers with their uncertainties."""

from lmshape.jobs import job

job.start(snakemake)

import polars as pl

from lmshape import results, summaries
from lmshape.report import tables

summarize = getattr(summaries, snakemake.params.function)
table = pl.read_parquet(snakemake.input[0])
results.write(tables.summarized(table, summarize), snakemake.output[0])
