"""The random baseline: fifteen widths from one pass over a random table, against fifteen evaluations one by one.

Also against the widest alone (`cost_over_widest`), and the peak of memory, which is that of the larger of two cases:
BLOOM's 250,880 rows of 14,336 with 5,000 documents, and Pythia's 50,304 rows with as many documents and queries as
SCIDOCS has, whose vectors do not fit in memory at once. The difference is the largest over widths of nDCG@10. Times
compared are of a table of 16,384 rows and 2,000 documents.
"""

import sys
from pathlib import Path

import numpy as np
from measure import peak_mib, report, timed

from lmshape.retrieval import random_baseline

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit"))
from counted import random_counts, random_qrels  # noqa: E402

WIDTHS = [
    128,
    256,
    512,
    768,
    1024,
    1088,
    1536,
    2048,
    2560,
    4096,
    5120,
    7168,
    9216,
    12288,
    14336,
]  # the published study's


def data(documents: int, queries: int, vocabulary: int):
    counts = random_counts(documents, queries, vocabulary, length=400)
    return counts, random_qrels(counts, 20)


def main() -> None:
    counts, qrels = data(5000, 200, 250_000)
    bloom_seconds, _ = timed(lambda: random_baseline(counts, 250_880, WIDTHS, 0, qrels))
    counts, qrels = data(25_657, 1000, 50_277)
    scidocs_seconds, _ = timed(lambda: random_baseline(counts, 50_304, WIDTHS, 0, qrels))
    peak = peak_mib()

    counts, qrels = data(2000, 100, 16_384)

    def scored(*widths: int):
        return timed(lambda: random_baseline(counts, 16_384, widths, 0, qrels))

    # the best of two calls before and after the fifteen, so that a busy moment hits all
    at_once, widest = [scored(*WIDTHS)], [scored(WIDTHS[-1])]
    apart = {width: scored(width) for width in WIDTHS}
    at_once, widest = at_once + [scored(*WIDTHS)], widest + [scored(WIDTHS[-1])]

    seconds, widest_seconds = (min(seconds for seconds, _ in calls) for calls in (at_once, widest))
    (_, together), *_ = at_once
    differences = [
        abs(together[width].values["ndcg_at_10"].mean() - alone[width].values["ndcg_at_10"].mean())
        for width, (_, alone) in apart.items()
    ]
    report(
        "random baseline",
        seconds,
        "fifteen evaluations",
        sum(seconds for seconds, _ in apart.values()),
        float(np.max(differences)),
        peak,
        cost_over_widest=seconds / widest_seconds,
        bloom_seconds=bloom_seconds,
        scidocs_seconds=scidocs_seconds,
    )


if __name__ == "__main__":
    main()
