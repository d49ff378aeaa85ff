"""Copy a model out of an installed package."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.files import writing
from lmshape.inputs import checkpoints, local_models, packages

checkpoints.verify(packages.file(snakemake.params.package, snakemake.params.path))
with writing(snakemake.output[0]) as folder:
    local_models.copy(snakemake.params.package, snakemake.params.path, folder)
