"""Intrinsic dimension of a set of vectors, from how distances to their nearest neighbours grow."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lmshape.neighbors import distinct, nearest_distances
from lmshape.vectors import as_float64

FACCO = 0.9  # share of the smallest ratios that Facco et al. and scikit-dimension fit
LLM_MICROSCOPE = 0.2  # share that the package of the authors of "The shape of learning" fits
NEIGHBORS = {
    "twonn": 2,
    "mada": 20,
    "mom": 100,
}  # neighbours each estimator looks at; scikit-dimension's choice


def estimate(
    X: Any,
    estimators: Sequence[str] = ("twonn", "mada", "mom"),
    fraction: float = FACCO,
    neighbors: Mapping[str, int] = NEIGHBORS,
) -> dict[str, float]:
    """Intrinsic dimension of `X` (n, d), NumPy or torch, by each estimator; all share one neighbour graph.

    Rows that repeat an earlier one exactly are left out first, or their zero distances would swamp TwoNN.
    `fraction` concerns TwoNN alone: FACCO, LLM_MICROSCOPE, or another share.

    Raises ValueError, with the reason, where an estimator has no answer: vectors without geometry (see
    `as_float64`), too few different ones, or too many equal distances.
    """
    if unknown := set(estimators) - set(NEIGHBORS):
        raise ValueError(f"unknown estimators {sorted(unknown)}; there are {', '.join(NEIGHBORS)}")
    rows, _ = distinct(as_float64(X))
    distances = nearest_distances(rows, max(neighbors[name] for name in estimators))
    return {name: _estimate(name, distances, fraction, neighbors) for name in estimators}


def twonn(distances: np.ndarray, fraction: float = FACCO) -> float:
    """TwoNN from `distances` (n, 2 or more) to the nearest neighbours, ascending along a row.

    The ratios mu = r2 / r1 follow F(mu) = 1 - mu^-d, so -log(1 - F) = d log(mu): a least-squares line through the
    origin, over the smallest `fraction` of the ratios, with i/n for F at the i-th of n.
    Source: Facco et al. 2017.
    """
    n = len(distances)
    kept = fitted(n, fraction)
    x = np.log(np.sort(distances[:, 1] / distances[:, 0])[:kept])
    y = -np.log1p(-np.arange(1, kept + 1) / n)
    return _finite((x @ y) / (x @ x) if x[-1] > 0 else np.inf)


def fitted(n: int, fraction: float) -> int:
    """How many of `n` ratios TwoNN fits; the largest never, as the logarithm of 1 - F is infinite there."""
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction is a share of the ratios, above 0 and up to 1, not {fraction}")
    kept = min(int(n * fraction), n - 1)
    if kept < 2:
        raise ValueError(f"{fraction:g} of {n} ratios of distances are too few to fit a line")
    return kept


def standard_error(dimension: float, n: int, fraction: float = FACCO) -> float:
    """Standard error of one TwoNN estimate from `n` vectors, were their ratios independent.

    The logarithm of mu is exponential with rate d, so k ratios tell d to d / sqrt(k) (Fisher information of the
    k smallest of n). The line through the origin comes within a tenth of that bound.
    Source: the Pareto law of Facco et al. 2017.
    """
    return dimension / fitted(n, fraction) ** 0.5


def mada(distances: np.ndarray, k: int = NEIGHBORS["mada"]) -> float:
    """Manifold-adaptive dimension: the mean over points of log 2 / log(r_k / r_(k/2)).

    `distances` is (n, k or more), ascending along a row. Source: Farahmand et al. 2007.
    """
    with np.errstate(divide="ignore"):
        return _finite(np.mean(np.log(2) / np.log(distances[:, k - 1] / distances[:, k // 2 - 1])))


def mom(distances: np.ndarray, k: int = NEIGHBORS["mom"]) -> float:
    """Method of moments: the mean over points of m / (w - m), m the mean and w the largest of k distances.

    `distances` is (n, k or more), ascending along a row. Source: Amsaleg et al. 2018.
    """
    m, w = distances[:, :k].mean(axis=1), distances[:, k - 1]
    with np.errstate(divide="ignore"):
        return _finite(np.mean(m / (w - m)))


def _estimate(name: str, distances: np.ndarray, fraction: float, neighbors: Mapping[str, int]) -> float:
    """One estimator by name; ValueError says which one failed and why."""
    if distances.shape[1] < neighbors[name]:
        raise ValueError(
            f"{name} looks at {neighbors[name]} neighbours, but {len(distances)} different vectors have "
            f"{len(distances) - 1} each"
        )
    try:
        if name == "twonn":
            return twonn(distances, fraction)
        return {"mada": mada, "mom": mom}[name](distances, neighbors[name])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _finite(dimension: float) -> float:
    if not np.isfinite(dimension):
        raise ValueError(
            "some vectors have neighbours at equal distances, which would make the dimension infinite"
        )
    return float(dimension)
