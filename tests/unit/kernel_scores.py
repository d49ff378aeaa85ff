"""What depends on no kernel and no number of threads, computed and printed with those that computed it.

Run in a process of its own, because a process has the kernels it began with.
"""

import json

import numpy as np
from counted import random_counts, random_qrels
from numpy._core._multiarray_umath import __cpu_features__
from threadpoolctl import threadpool_info

from lmshape import retrieval
from lmshape.numerics import ablation, bootstrap
from lmshape.numerics.ranking import search

SOME = random_counts(300, 25, 80, 30)
QRELS = random_qrels(SOME, 12)


def found(table: np.ndarray) -> dict[str, dict[str, float]]:
    width = table.shape[1]
    return search(SOME, SOME.query_ids, [table], [width], 100)[width].run


def computed() -> dict:
    """Cosines by query and document; measures by query and what is told of them; the cosines of `pca-12`."""
    table = np.random.default_rng(0).standard_normal((80, 1100)).astype(np.float32)
    scores, narrow = (retrieval.score(SOME, [table[:, :width]], QRELS) for width in (1100, 40))
    first, second = (side.values["ndcg_at_10"] for side in (scores, narrow))
    return {
        "cosines": found(table),
        "sums": np.square(table.astype(float)).sum(axis=1).tolist(),  # by which `exact` chooses its units
        "measures": {metric: values.tolist() for metric, values in scores.values.items()},
        "stderr": bootstrap.standard_error(np.stack([first, second], axis=1), 1000).tolist(),
        "difference": vars(bootstrap.paired(first, second, 1000)),
        "pca": found(ablation.principal(table[:, :60], 12, 80)),
    }


def kernels() -> dict:
    """By which this process computes: BLAS's, how many threads of it, and NumPy's."""
    return {
        "blas": sorted({pool["architecture"] for pool in threadpool_info() if pool["user_api"] == "blas"}),
        "threads": sorted({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}),
        "numpy": sorted(name for name, there in __cpu_features__.items() if there),
    }


if __name__ == "__main__":
    print(json.dumps({"kernels": kernels(), "computed": computed()}))
