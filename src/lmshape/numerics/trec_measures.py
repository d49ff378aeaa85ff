"""The measures of trec_eval that beir takes, of many rankings at once.

trec_eval takes longer to be told of a ranking than it takes to find one, so they are computed here; tests compare
every value with pytrec_eval's. Source: https://github.com/usnistgov/trec_eval, m_ndcg_cut.c, m_map_cut.c, m_recall.c,
m_P.c and m_recip_rank.c.
"""

from collections.abc import Collection, Sequence

import numpy as np

NAMES = ("ndcg", "map", "recall", "precision", "mrr")


def at_cuts(
    found: Sequence[Sequence[int]], judged: Sequence[Collection[int]], cuts: Sequence[int]
) -> np.ndarray:
    """Each of NAMES at each cut for every query, (queries, 5, cuts), 0 to 1.

    `found` are for each query the grades of what it found, best first, 0 where there is none; `judged` are all grades
    that were given, also to documents that were not found. A grade of 1 or more is relevant, and gains as much.
    """
    found_gains = gains(found, max(cuts))
    ideal_gains = gains([sorted(grades, reverse=True) for grades in judged], max(cuts))
    total = np.array([max(1, sum(grade > 0 for grade in grades)) for grades in judged])[:, None]
    ranks = np.arange(1, max(cuts) + 1)
    relevant = found_gains > 0
    hits = np.cumsum(relevant, axis=1)
    dcg, best = (np.cumsum(side / np.log2(ranks + 1), axis=1) for side in (found_gains, ideal_gains))
    values = {
        "ndcg": dcg / np.where(best > 0, best, 1),
        "map": np.cumsum(relevant * hits / ranks, axis=1) / total,
        "recall": hits / total,
        "precision": hits / ranks,
        "mrr": np.where(hits > 0, 1 / (1 + np.argmax(relevant, axis=1)[:, None]), 0),
    }
    return np.stack([values[name][:, np.array(cuts) - 1] for name in NAMES], axis=1)


def gains(grades: Sequence[Sequence[int]], depth: int) -> np.ndarray:
    """What the first `depth` of each query's grades gain, (queries, depth): nothing below 0; zeros fill up."""
    filled = np.zeros((len(grades), depth), np.int64)
    for row, some in zip(filled, grades, strict=True):
        row[: len(some)] = some[:depth]
    return np.maximum(filled, 0)
