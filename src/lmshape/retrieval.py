"""Embedding tables scored on retrieval.

A text is the mean of its tokens' rows, a score is a cosine, and the measures are trec_eval's, those that beir
takes. Documents are ranked in float32, equal scores by document id in trec_eval's own order (descending, by
bytes), so that cutting a ranking and evaluating it agree. A text of zeros, such as an empty one, scores 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytrec_eval

from lmshape.inputs.tokens import Counts
from lmshape.numerics import bootstrap
from lmshape.numerics.ablation import Panel
from lmshape.numerics.random_tables import RandomColumns
from lmshape.numerics.ranking import Found, Precision, RetrievalError, search, search_widths
from lmshape.study.ablation_names import RANDOM_WIDTH

Qrels = Mapping[str, Mapping[str, int]]

CUTS = (1, 3, 5, 10, 100, 1000)  # beir's
TREC = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P"}
METRICS = tuple(f"{name}_at_{cut}" for name in (*TREC, "mrr") for cut in CUTS)


@dataclass(frozen=True)
class Scores:
    """Every measure of every judged query, 0 to 1.

    `values` maps a metric, e.g. ndcg_at_10, to an array (queries,) in the order of `query_ids`, which is sorted.
    Every query with a judgement, of whatever grade, is there: one that found nothing, or has no text, has 0.
    """

    query_ids: list[str]
    values: dict[str, np.ndarray]
    zero_documents: int
    zero_queries: int


def score(
    counts: Counts,
    panels: Sequence[Panel],
    qrels: Qrels,
    precision: Precision = "float32",
    drop_self: bool = False,
) -> Scores:
    """Score a table on a counted data set. The table is panels side by side (`lmshape.numerics.ablation.apply`).

    `precision="published"` rounds to bfloat16 where the published study's code did: the table, and of each text the
    sum of its rows, its length and their ratio. Cosines are float32 all the same.
    With `drop_self` a document whose id is the query's own is no answer to it (`lmshape.inputs.datasets.Dataset`).
    RetrievalError where a token has no row, a vector is not finite or no query is judged.
    """
    width = sum(panel.shape[1] for panel in panels)
    found = search(counts, judged(qrels), panels, [width], max(CUTS), precision, drop_self)
    return evaluate(found[width], qrels)


def random_baseline(
    counts: Counts,
    rows: int,
    widths: Sequence[int],
    seed: int,
    qrels: Qrels,
    precision: Precision = "float32",
    drop_self: bool = False,
) -> dict[int, Scores]:
    """Width -> scores of the random table of (rows, width): the first columns of one table, drawn once.

    RetrievalError as `score`, and for a width that no random table has.
    """
    for width in widths:
        if not 1 <= width <= RANDOM_WIDTH:
            raise RetrievalError(f"random tables are 1 to {RANDOM_WIDTH} wide, not {width}")
    table = RandomColumns(rows, RANDOM_WIDTH, seed, 0, max(widths))
    by_width = search_widths(counts, judged(qrels), [table], widths, max(CUTS), precision, drop_self)
    return {width: evaluate(found, qrels) for width, found in by_width}


def judged(qrels: Qrels) -> list[str]:
    """The queries that count: those with any judgement; RetrievalError if there are none."""
    if queries := sorted(query for query, grades in qrels.items() if grades):
        return queries
    raise RetrievalError("no query of the data set has a judgement: there is nothing to score")


def evaluate(found: Found, qrels: Qrels) -> Scores:
    """trec_eval's measures of what was found, by query and unrounded.

    A grade of 1 or more is relevant. A relevant document that is not in the corpus counts as missed.
    """
    query_ids = judged(qrels)
    cuts = ",".join(map(str, CUTS))
    measures = {f"{name}.{cuts}" for name in TREC.values()} | {"recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator({query: dict(qrels[query]) for query in query_ids}, measures)
    # a query that is not in the run would be left out of the result, and so of the mean
    by_query = evaluator.evaluate(dict.fromkeys(query_ids, {}) | found.run)
    table = [by_query[query] for query in query_ids]
    values = {
        f"{name}_at_{cut}": np.array([row[f"{trec}_{cut}"] for row in table])
        for name, trec in TREC.items()
        for cut in CUTS
    }
    ranks = np.array([row["recip_rank"] for row in table])
    values |= {f"mrr_at_{cut}": np.where(ranks >= 1 / cut, ranks, 0) for cut in CUTS}
    return Scores(query_ids, values, found.zero_documents, found.zero_queries)


def rows(scores: Scores, resamples: int, seed: int = 0) -> list[dict[str, Any]]:
    """One row per metric: the mean over queries, unrounded, and its bootstrap standard error.

    The standard error is null where there is one query.
    """
    errors = bootstrap.standard_error(np.stack(list(scores.values.values()), axis=1), resamples, seed)
    return [
        {
            "metric": metric,
            "value": float(values.mean()),
            "stderr": None if np.isnan(error) else float(error),
            "queries": len(scores.query_ids),
            "zero_documents": scores.zero_documents,
            "zero_queries": scores.zero_queries,
            "reason": None,
        }
        for (metric, values), error in zip(scores.values.items(), errors, strict=True)
    ]


def failed_rows(reason: str) -> list[dict[str, Any]]:
    """The rows of a combination that could not be scored: nulls, with the reason."""
    nothing = dict.fromkeys(("value", "stderr", "queries", "zero_documents", "zero_queries"))
    return [{"metric": metric, **nothing, "reason": reason} for metric in METRICS]
