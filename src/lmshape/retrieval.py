"""Embedding tables scored on retrieval.

A text is the mean of its tokens' rows, a score is a cosine, and the measures are trec_eval's, those that beir
takes. Documents are ranked in float32, equal scores by document id in trec_eval's own order (descending, by
bytes). A text of zeros, such as an empty one, scores 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from array_api_compat import array_namespace, to_device

from lmshape.inputs.tokens import Counts
from lmshape.numerics import bootstrap, trec_measures
from lmshape.numerics.ablation import Panel
from lmshape.numerics.random_tables import RandomColumns, from_file
from lmshape.numerics.ranking import Found, Precision, RetrievalError, search
from lmshape.numerics.vectors import as_array
from lmshape.study.ablation_names import RANDOM_WIDTH

Qrels = Mapping[str, Mapping[str, int]]

CUTS = (1, 3, 5, 10, 100, 1000)  # beir's
METRICS = tuple(f"{name}_at_{cut}" for name in trec_measures.NAMES for cut in CUTS)
ROW = ("metric", "value", "stderr", "queries", "zero_documents", "zero_queries", "reason")
# queries at once: their vectors and what they find take two thirds of a GiB, at fifteen widths of up to 14,336
SEARCHED = 4096
EVALUATED = 256  # queries at once


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

    @property
    def by_query(self) -> dict[str, Any]:
        """nDCG@10 of each query, in columns."""
        return {"query": self.query_ids, "ndcg_at_10": self.values["ndcg_at_10"]}


def score(
    counts: Counts,
    panels: Sequence[Panel] | Any,
    qrels: Qrels,
    precision: Precision = "float32",
    drop_self: bool = False,
) -> Scores:
    """Score a table on a counted data set, in float32.

    The table (rows, width) has a row for each token: an array or a tensor of any library, or several side by side
    in a list (`lmshape.numerics.ablation.apply`).
    `precision="published"` rounds where the published study's code did: the table to bfloat16, and nothing else, as
    its library's pooling multiplied the rows of a text by a float32 mask.
    With `drop_self` a document whose id is the query's own is no answer to it (`lmshape.inputs.datasets.Dataset`).
    RetrievalError where a token has no row, a vector is not finite or no query is judged.
    """
    panels = [as_panel(panel) for panel in (panels if isinstance(panels, list | tuple) else [panels])]
    width = sum(panel.shape[1] for panel in panels)
    return score_widths(counts, panels, [width], qrels, precision, drop_self)[width]


def as_panel(table: Any) -> Panel:
    """A table (rows, width) as `lmshape.numerics.ranking` takes it; RetrievalError for what is none."""
    if isinstance(table, RandomColumns):
        return table
    table = as_array(table)
    if table.ndim != 2:
        shape = f"an array of shape {tuple(table.shape)}"
        raise RetrievalError(f"{shape} is no table, which has a row for each token: (rows, width)")
    xp = array_namespace(table)
    return np.asarray(to_device(xp.astype(table, xp.float32, copy=False), "cpu"))


def random_baseline(
    counts: Counts,
    rows: int,
    widths: Sequence[int],
    seed: int,
    qrels: Qrels,
    precision: Precision = "float32",
    drop_self: bool = False,
    file: str | Path | None = None,
) -> dict[int, Scores]:
    """Width -> scores of the random table of (rows, width): the first columns of one table, from one pass.

    `file` is where `lmshape.numerics.random_tables.save` has drawn it, if it has.
    RetrievalError as `score`, and for a width that no random table has.
    """
    for width in widths:
        if not 1 <= width <= RANDOM_WIDTH:
            raise RetrievalError(f"random tables are 1 to {RANDOM_WIDTH} wide, not {width}")
    table = from_file([RandomColumns(rows, RANDOM_WIDTH, seed, 0, max(widths))], file)
    return score_widths(counts, table, widths, qrels, precision, drop_self)


def score_widths(
    counts: Counts,
    panels: Sequence[Panel],
    widths: Sequence[int],
    qrels: Qrels,
    precision: Precision,
    drop_self: bool,
) -> dict[int, Scores]:
    """Width -> `score` of a table's first columns. One pass for each SEARCHED queries, so that memory is bounded."""
    query_ids = judged(qrels)
    parts: dict[int, list[Scores]] = {width: [] for width in widths}
    for first in range(0, len(query_ids), SEARCHED):
        some = {query: qrels[query] for query in query_ids[first : first + SEARCHED]}
        for width, found in search(counts, some, panels, widths, max(CUTS), precision, drop_self).items():
            parts[width].append(evaluate(found, some))
    return {width: joined(scores) for width, scores in parts.items()}


def joined(parts: Sequence[Scores]) -> Scores:
    """The scores of parts of the queries, each with all documents, as one."""
    return Scores(
        [query for part in parts for query in part.query_ids],
        {metric: np.concatenate([part.values[metric] for part in parts]) for metric in METRICS},
        parts[0].zero_documents,
        sum(part.zero_queries for part in parts),
    )


def judged(qrels: Qrels) -> list[str]:
    """The queries that count: those with any judgement; RetrievalError if there are none."""
    if queries := sorted(query for query, grades in qrels.items() if grades):
        return queries
    raise RetrievalError("no query of the data set has a judgement: there is nothing to score")


def evaluate(found: Found, qrels: Qrels) -> Scores:
    """The measures of what was found, by query and unrounded.

    A grade of 1 or more is relevant. A relevant document that is not in the corpus counts as missed.
    """
    query_ids = judged(qrels)
    grades = graded(found, qrels, query_ids)
    blocks = []
    for first in range(0, len(query_ids), EVALUATED):
        given = [qrels[query].values() for query in query_ids[first : first + EVALUATED]]
        blocks.append(trec_measures.at_cuts(list(islice(grades, len(given))), given, CUTS))
    values = np.concatenate(blocks).reshape(len(query_ids), len(METRICS))
    by_metric = dict(zip(METRICS, np.ascontiguousarray(values.T), strict=True))
    return Scores(query_ids, by_metric, found.zero_documents, found.zero_queries)


def graded(found: Found, qrels: Qrels, query_ids: Sequence[str]) -> Iterator[np.ndarray]:
    """For each query the grades of the documents that it found, (documents found,), 0 where there is none."""
    judged_ids = set().union(*(qrels[query] for query in query_ids))
    place_of = {id: place for place, id in enumerate(found.document_ids) if id in judged_ids}
    grades = np.zeros(len(found.document_ids), np.int64)
    for query in query_ids:
        given = {place_of[id]: grade for id, grade in qrels[query].items() if id in place_of}
        places = list(given)
        grades[places] = list(given.values())
        yield grades[found.places.get(query, [])]
        grades[places] = 0


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
    return [dict.fromkeys(ROW) | {"metric": metric, "reason": reason} for metric in METRICS]
