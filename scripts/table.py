"""Put the rows of several Parquet files into one table."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import results
from lmshape.report import tables

frame = tables.collect(snakemake.input)
if labels := snakemake.params.labels:
    frame = tables.describe(frame, **labels)
frame = tables.flag_repeats(frame)
for output in snakemake.output:
    results.write(frame, output)
