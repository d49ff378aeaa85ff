"""Set what was measured on one data set beside what a published study printed."""

from lmshape.jobs import job

job.start(snakemake)

import polars as pl

from lmshape import results
from lmshape.report import published

measured = [pl.read_parquet(path).filter(dataset=snakemake.wildcards.dataset) for path in snakemake.input]
results.write(published.compare(*measured), snakemake.output[0])
