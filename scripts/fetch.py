"""Fetch a tokenizer, a model, or the embedding tensors of a model from the Hugging Face hub."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.inputs import hub

repository, revision = snakemake.params.source
hub.fetch(repository, revision, snakemake.output[0], snakemake.params.files)
