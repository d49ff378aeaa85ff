"""Compare the cosines of one embedding table's rows with human judgements of word similarity."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import word_similarity
from lmshape.inputs import checkpoints
from lmshape.report import tables

names, settings = snakemake.wildcards, snakemake.params
pairs, table = word_similarity.load(snakemake.input.counts), snakemake.input.table
columns = settings.columns | {"side": names.side, "dataset": names.dataset, "tokenizer": settings.tokenizer}
columns |= checkpoints.information(table).columns
tables.save_rows([word_similarity.score(pairs, checkpoints.load(table))], columns, snakemake.output[0])
