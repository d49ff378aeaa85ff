"""Score random tables of every width for one tokenizer and seed."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import results, retrieval
from lmshape.inputs import datasets, tokens

names, settings = snakemake.wildcards, snakemake.params
judgements, counts = datasets.read_judgements(snakemake.input.dataset), tokens.load(snakemake.input.counts)
scores = retrieval.random_baseline(
    counts,
    settings.rows,
    settings.widths,
    int(names.seed),
    judgements.qrels,
    settings.precision,
    judgements.drop_self,
)
columns = {
    "tokenizer": counts.tokenizer,
    "vocabulary_rows": settings.rows,
    "seed": int(names.seed),
    "dataset": names.dataset,
    "dataset_revision": counts.dataset_revision,
    "precision": settings.precision,
}
rows = [
    {"width": width, **row}
    for width, scored in scores.items()
    for row in retrieval.rows(scored, settings.bootstrap)
]
results.save_rows(rows, columns, snakemake.output[0])
