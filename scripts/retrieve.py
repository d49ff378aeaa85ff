"""Score one embedding table, ablated, on one data set."""

from lmshape.jobs import job

job.start(snakemake)

import polars as pl

from lmshape import results, retrieval
from lmshape.inputs import checkpoints, datasets, tokens
from lmshape.numerics.ablation import AblationError, ablate

names, settings = snakemake.wildcards, snakemake.params
judgements, counts = datasets.read_judgements(snakemake.input.dataset), tokens.load(snakemake.input.counts)
table, facts = snakemake.input.table, checkpoints.information(snakemake.input.table)
columns = settings.columns | {
    "side": names.side,
    "width": settings.size or facts.width,
    **facts.columns,
    "ablation": names.ablation,
    "seed": None if names.seed == "none" else int(names.seed),
    "dataset": names.dataset,
    "tokenizer": counts.tokenizer,
    "precision": settings.precision,
    "dataset_revision": counts.dataset_revision,
}

try:
    function, given = job.function(settings.function), (counts.vocabulary, settings.size, columns["seed"])
    panels = ablate(function, names.ablation, checkpoints.load(table), *given)
    scores = retrieval.score(counts, panels, judgements.qrels, settings.precision, judgements.drop_self)
    rows = retrieval.rows(scores, settings.bootstrap)
    by_query = {"query": scores.query_ids, "ndcg_at_10": scores.values["ndcg_at_10"]}
except (AblationError, retrieval.RetrievalError) as error:  # such a table is a null with its reason
    rows, by_query = retrieval.failed_rows(str(error)), {"query": [], "ndcg_at_10": []}

results.save_rows(rows, columns, snakemake.output.rows)
results.write(pl.DataFrame(by_query, {"query": str, "ndcg_at_10": float}), snakemake.output.queries)
