"""Read one embedding table out of a model folder."""

from lmshape.jobs import job

job.start(snakemake)

from pathlib import Path

from lmshape.inputs import checkpoints, revisions

settings = snakemake.params
folder = Path(snakemake.input[0]) / settings.within
table = checkpoints.embedding(folder, settings.side)
checkpoints.require_described(table, settings.model, settings.side, settings.untied, *settings.shape)
checkpoints.save(table, snakemake.output[0], revisions.read(folder))
