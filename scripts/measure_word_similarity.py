"""Compare the cosines of one embedding table's rows with human judgements of word similarity."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import results, word_similarity
from lmshape.inputs import checkpoints

names, settings = snakemake.wildcards, snakemake.params
pairs, table = word_similarity.load(snakemake.input.counts), snakemake.input.table
columns = settings.columns | {"side": names.side, "dataset": names.dataset, "tokenizer": settings.tokenizer}
columns |= checkpoints.information(table).columns
results.save_rows([word_similarity.score(pairs, checkpoints.load(table))], columns, snakemake.output[0])
