"""Fetch the published study's text."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.inputs import text

text.download(text.ENWIK8_ADDRESS, text.ENWIK8_SHA256, snakemake.output[0])
