"""Score one embedding table, ablated, on one data set; a random one is taken from the baseline where it is there."""

from lmshape.jobs import job

job.start(snakemake)

import polars as pl

from lmshape import results, retrieval
from lmshape.inputs import checkpoints, datasets, tokens
from lmshape.numerics.ablation import AblationError, ablate
from lmshape.numerics.random_tables import from_file

names, settings, given = snakemake.wildcards, snakemake.params, snakemake.input
judgements, counts = datasets.read_judgements(given.dataset), tokens.load(given.counts)
facts = checkpoints.information(given.table)
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
    if given.baseline:
        rows, by_query = results.of_width(*given.baseline, columns["width"], retrieval.ROW)
    else:
        function, known = job.function(settings.function), (counts.vocabulary, settings.size, columns["seed"])
        panels = from_file(
            ablate(function, names.ablation, checkpoints.load(given.table), *known), given.drawn
        )
        scores = retrieval.score(counts, panels, judgements.qrels, settings.precision, judgements.drop_self)
        rows = retrieval.rows(scores, settings.bootstrap)
        by_query = {"query": scores.query_ids, "ndcg_at_10": scores.values["ndcg_at_10"]}
except (AblationError, retrieval.RetrievalError) as error:  # such a table is a null with its reason
    rows, by_query = retrieval.failed_rows(str(error)), {"query": [], "ndcg_at_10": []}

results.save_rows(rows, columns, snakemake.output.rows)
results.write(pl.DataFrame(by_query, {"query": str, "ndcg_at_10": float}), snakemake.output.queries)
