"""Put the rows of several Parquet files into one table."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import results
from lmshape.report import tables
from lmshape.report.missing import VALUES

frame = tables.collect(snakemake.input, snakemake.params.lost, VALUES.get(snakemake.wildcards.table))
if labels := snakemake.params.labels:
    frame = tables.describe(frame, **labels)
frame = tables.flag_repeats(frame)
for output in snakemake.output:
    results.write(frame, output)
