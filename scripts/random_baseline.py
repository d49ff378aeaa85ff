"""Score random tables of every width for one tokenizer and seed."""

from lmshape.jobs import job

job.start(snakemake)

import polars as pl

from lmshape import results, retrieval
from lmshape.inputs import datasets, tokens

names, settings, given = snakemake.wildcards, snakemake.params, snakemake.input
judgements, counts = datasets.read_judgements(given.dataset), tokens.load(given.counts)
table = settings.rows, settings.widths, int(names.seed)
columns = {
    "tokenizer": counts.tokenizer,
    "vocabulary_rows": settings.rows,
    "seed": int(names.seed),
    "dataset": names.dataset,
    "dataset_revision": counts.dataset_revision,
    "precision": settings.precision,
}

rows, by_query = [], [pl.DataFrame(schema={"query": str, "width": int, "ndcg_at_10": float})]
try:
    scored = retrieval.random_baseline(
        counts, *table, judgements.qrels, settings.precision, judgements.drop_self, given.drawn
    )
    for width, scores in scored.items():
        rows += [{"width": width, **row} for row in retrieval.rows(scores, settings.bootstrap)]
        by_width = pl.DataFrame(scores.by_query).select("query", pl.lit(width).alias("width"), "ndcg_at_10")
        by_query.append(by_width)
except retrieval.RetrievalError as error:  # such tables are nulls with their reason
    failed = retrieval.failed_rows(str(error))
    rows = [{"width": width, **row} for width in settings.widths for row in failed]

results.save_rows(rows, columns, snakemake.output.rows)
results.write(pl.concat(by_query, how="vertical_relaxed"), snakemake.output.queries)
