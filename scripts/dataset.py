"""Make a retrieval data set in BEIR layout: built here, exported from mteb, or copied from a folder."""

from lmshape.jobs import job

job.start(snakemake)

make = job.function(snakemake.params.function)
make(folder=snakemake.output[0], **snakemake.params.settings)
