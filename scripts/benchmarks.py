"""Gather what every job of the study took."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import results
from lmshape.report import benchmarks

parameters = {(suite, size): number for suite, size, number in snakemake.params.models}
frame = benchmarks.collect(snakemake.params.folder, snakemake.params.rules, parameters)
for output in snakemake.output:
    results.write(frame, output)
