"""Tell the shapes of one suite as numbers with their uncertainties."""

from lmshape.jobs import job

job.start(snakemake)

import polars as pl

from lmshape import results, summaries

summarize = getattr(summaries, snakemake.params.function)
results.write(summarize(pl.read_parquet(snakemake.input[0])), snakemake.output[0])
