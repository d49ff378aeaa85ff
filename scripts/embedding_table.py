"""Read one embedding table out of a model folder."""

from lmshape.jobs import job

job.start(snakemake)

from pathlib import Path

from lmshape.inputs import checkpoints, revisions

folder = Path(snakemake.input[0]) / snakemake.params.within
table = checkpoints.embedding(folder, snakemake.params.side)
checkpoints.save(table, snakemake.output[0], revisions.read(folder))
