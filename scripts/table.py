"""Put the rows of several Parquet files into one table."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import results
from lmshape.report import tables

frame = tables.flag_repeats(tables.collect(snakemake.input))
for output in snakemake.output:
    results.write(frame, output)
