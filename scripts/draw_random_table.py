"""Draw the first columns of one random table for all that is scored with them."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.numerics import random_tables

names = snakemake.wildcards
rows, length, seed = int(names.rows), int(names.length), int(names.seed)
table = random_tables.RandomColumns(rows, length, seed, 0, snakemake.params.columns)
random_tables.save(table, snakemake.output[0])
