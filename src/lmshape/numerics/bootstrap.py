"""How sure a mean over queries is: bootstrap over queries, seeded."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np


@dataclass(frozen=True)
class Difference:
    """How one mean compares with another over the same queries.

    Between `low` and `high` lies the difference over all queries like these, for 95 of 100 sets of such: they bound
    the middle 95 % of `resampled_differences`. `probability` is the share of these in which the first is better, ties
    counted half: what differs by less than 1e-12 is a tie.
    """

    value: float
    low: float
    high: float
    probability: float


def resampled_means(values: np.ndarray, resamples: int, seed: int = 0) -> np.ndarray:
    """Means of `values` (queries, ...) over `resamples` samples of queries with replacement: (resamples, ...).

    The same samples for every column, and for every array of as many queries.
    """
    queries = len(values)
    # how often each query is in each sample: no more is needed of a sample
    times = np.random.default_rng(seed).multinomial(queries, np.full(queries, 1 / queries), size=resamples)
    # whole numbers of a unit, and so few that their sums are exact in float64, in whatever order BLAS adds them
    unit = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0))[1] + queries.bit_length() - 52)
    return np.tensordot(times.astype(np.float64), np.rint(values / unit), axes=1) * (unit / queries)


def standard_error(values: np.ndarray, resamples: int, seed: int = 0) -> np.ndarray:
    """Standard error of the mean of each column of `values` (queries, columns); NaN for a single query."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return resampled_means(values, resamples, seed).std(axis=0, ddof=1)


def paired(first: np.ndarray, second: np.ndarray, resamples: int, seed: int = 0) -> Difference:
    """Compare two combinations by their values (queries,) on the same queries in the same order."""
    if first.shape != second.shape or first.ndim != 1 or len(first) < 2:
        raise ValueError(
            f"two arrays of one shape (queries,), two or more: not {first.shape} and {second.shape}"
        )
    each = np.round(first - second, 12)
    differences = resampled_differences(each, resamples, seed)
    low, high = np.quantile(differences, [0.025, 0.975])
    better = np.mean(differences > 0) + np.mean(differences == 0) / 2
    return Difference(float(each.mean()), float(low), float(high), float(better))


def resampled_differences(each: np.ndarray, resamples: int, seed: int = 0) -> np.ndarray:
    """Means of differences (queries, ...) as other queries like these would give them: (resamples, ...).

    Resamples scatter as if the queries at hand were all there are, by the root of (n - 1) / n too little, and
    normally where Student's t is due; they are made wider by both. The degrees of freedom are those of the queries
    that differ at all: of a few among many that do not, the zeros do not tell how far they go.
    """
    from scipy.special import stdtrit  # which a standard error does without

    queries, mean = len(each), each.mean(axis=0)
    differing = np.maximum(np.count_nonzero(each, axis=0), 2)
    wider = stdtrit(differing - 1, 0.975) / NormalDist().inv_cdf(0.975) * np.sqrt(queries / (queries - 1))
    return np.round(mean + wider * (resampled_means(each, resamples, seed) - mean), 12)
