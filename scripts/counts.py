"""Count the tokens of a data set once for every tokenizer."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.inputs import datasets, tokens

dataset = datasets.read(snakemake.input.dataset)
settings = snakemake.params
counts = tokens.count(dataset, snakemake.input.tokenizer, settings.tokenizer, settings.max_length)
tokens.save(counts, snakemake.output[0])
