"""Which size of a suite has the better embedding table: paired comparisons over the same queries."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import polars as pl

from lmshape.numerics import bootstrap

METRIC = "ndcg_at_10"


def compare_sizes(
    scores: Mapping[tuple[str, str, str], pl.DataFrame], resamples: int
) -> list[dict[str, Any]]:
    """One row for each pair of sizes on each data set and side, the larger size first.

    `scores` maps (data set, side, size), sizes from small to large, to a frame (query, ndcg_at_10).
    """
    return [
        {"dataset": larger[0], "side": larger[1], "first": larger[2], "second": smaller[2], "metric": METRIC}
        | compare(scores[larger], scores[smaller], resamples)
        for smaller, larger in combinations(scores, 2)
        if smaller[:2] == larger[:2]
    ]


def compare(first: pl.DataFrame, second: pl.DataFrame, resamples: int) -> dict[str, Any]:
    """How much better the first's mean is than the second's, over the same queries in the same order.

    Returns difference; low and high, between which it lies over all queries like these; probability, the share of
    resamples in which the first is better (see `lmshape.numerics.bootstrap`); queries; and reason, where they are
    None: there is but one query, or one of the two tables could not be scored, which leaves it without queries.
    """
    row = dict.fromkeys(("difference", "low", "high", "probability"))
    queries = min(first.height, second.height)
    if queries < 2:
        return row | {"queries": queries, "reason": "a single query" if queries else "one was not scored"}
    if not first["query"].equals(second["query"]):
        raise ValueError("two tables that were scored on different queries cannot be compared")
    found = bootstrap.paired(first[METRIC].to_numpy(), second[METRIC].to_numpy(), resamples)
    row |= {"difference": found.value, "low": found.low, "high": found.high}
    return row | {"probability": found.probability, "queries": queries, "reason": None}
