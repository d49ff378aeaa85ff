"""Fetch the data of a task of mteb."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import mteb_tasks

mteb_tasks.fetch(snakemake.params.task, snakemake.output[0])
