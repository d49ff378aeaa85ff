"""Score one embedding table, ablated, on one data set; a random one is taken from the baseline where it is there."""

from lmshape.jobs import job

job.start(snakemake)

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
        known = counts.vocabulary, settings.size, columns["seed"]
        table = ablate(job.function(settings.function), names.ablation, checkpoints.load(given.table), *known)
        panels = from_file(table, given.drawn)
        scores = retrieval.score(counts, panels, judgements.qrels, settings.precision, judgements.drop_self)
        rows, by_query = retrieval.rows(scores, settings.bootstrap), scores.by_query
except (AblationError, retrieval.RetrievalError) as error:  # such a table is a null with its reason
    rows, by_query = retrieval.failed_rows(str(error)), None

results.save_rows(rows, columns, snakemake.output.rows)
results.save_by_query(by_query, snakemake.output.queries)
