"""Make a model of the user's own a folder among those of the study."""

from lmshape.jobs import job

job.start(snakemake)

from pathlib import Path

from lmshape.files import writing
from lmshape.inputs import checkpoints, local_models

checkpoints.verify(Path(snakemake.params.path))
with writing(snakemake.output[0]) as folder:
    local_models.link(snakemake.params.path, folder)
