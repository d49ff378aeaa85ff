"""Compare the sizes of one suite, pair by pair, over the same queries."""

from lmshape.jobs import job

job.start(snakemake)

import polars as pl

from lmshape import comparisons, results

frames = [pl.read_parquet(path) for path in snakemake.input]
scores = dict(zip(map(tuple, snakemake.params.scored), frames, strict=True))
rows = comparisons.compare_sizes(scores, snakemake.params.bootstrap)
results.save_rows(rows, {"suite": snakemake.wildcards.suite}, snakemake.output[0])
