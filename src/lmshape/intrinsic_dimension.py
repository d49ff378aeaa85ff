"""Intrinsic dimension of a set of vectors, from how distances to their nearest neighbours grow."""

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np

from lmshape.models.hidden_states import Cell, HiddenStates
from lmshape.numerics import threads
from lmshape.numerics.neighbors import distinct, nearest_distances, nearest_within, pooled
from lmshape.numerics.vectors import Unmeasurable, as_float64, measurable
from lmshape.study.estimator_settings import FACCO, FRACTIONS, MADA, MOM, NEIGHBORS

# of distances (n, k) to the nearest neighbours, and of a fraction (TwoNN) or as many neighbours as it looks at
Estimator = Callable[[np.ndarray, Any], float]
EXPECTED = 0.01  # extreme ratios in a batch that follows TwoNN's law
COPIES = 20  # vectors that may be almost equal; more of them are a set with a dimension of its own
KOLMOGOROV = 1.63  # one percent of samples of n of a law are further from it than this over sqrt(n)

# Estimator -> how many neighbours it may look at, and in words. MADA and the method of moments average over points;
# from fewer neighbours, those that happen to be almost equally far make single terms so large that the average has no
# finite variance. MADA sets k beside its half.
MAY_LOOK_AT = {
    "twonn": (range(2, 3), "two neighbours"),
    "mada": (range(6, sys.maxsize, 2), "an even number of neighbours, six or more"),
    "mom": (range(4, sys.maxsize), "four neighbours or more"),
}


def estimate(
    X: Any,
    estimators: str | Sequence[str] = ("twonn", "mada", "mom"),
    fraction: float | str = FACCO,
    neighbors: Mapping[str, int] = NEIGHBORS,
) -> dict[str, float]:
    """Intrinsic dimension of `X` (n, d), NumPy or torch, by each estimator; all share one neighbour graph.

    Rows that repeat an earlier one exactly are left out first, or their zero distances would swamp TwoNN.
    `fraction` concerns TwoNN alone: a share of the ratios, or the name of one in FRACTIONS; `neighbors` says how many
    MADA and the method of moments look at, where they are not the usual NEIGHBORS (see MAY_LOOK_AT).

    Raises Unmeasurable, with the reason, where an estimator has no answer: vectors without geometry (see
    `measurable`), too few different ones, or too many equal distances. Warns where so many vectors have a near twin
    that TwoNN is no plain number (see `bears`).
    """
    names, neighbors = _asked(estimators, neighbors)
    rows, _ = distinct(as_float64(X))
    distances = nearest_distances(rows, min(_looked_at(names, neighbors), len(rows) - 1))
    found = {name: _estimate(name, globals()[name], fraction, neighbors, distances) for name in names}
    if "twonn" in names and (extreme := extreme_ratios(distances)) > bears(fraction):
        message = f"twonn {found['twonn']:.3g}, {extreme:.3f} of the ratios extreme: {_doubt(fraction)}"
        warnings.warn(message, stacklevel=2)
    return found


def _asked(estimators: str | Sequence[str], neighbors: Mapping[str, int]) -> tuple[list[str], dict[str, int]]:
    """Names of estimators, and how many neighbours each looks at: as asked, or else the usual number."""
    names = [estimators] if isinstance(estimators, str) else list(estimators)
    if not names:
        raise ValueError(f"no estimator asked for; there are {', '.join(NEIGHBORS)}")
    if unknown := {*names, *neighbors} - set(NEIGHBORS):
        raise ValueError(f"unknown estimators {sorted(unknown)}; there are {', '.join(NEIGHBORS)}")
    for name, k in neighbors.items():
        allowed, words = MAY_LOOK_AT[name]
        if not isinstance(k, Integral) or int(k) not in allowed:
            raise ValueError(f"{name} looks at {words}, not {k}")
    return names, {**NEIGHBORS, **neighbors}


def _looked_at(names: Iterable[str], neighbors: Mapping[str, int]) -> int:
    """How many neighbours are needed: those that the estimators look at, and COPIES at least."""
    return max(COPIES, *(neighbors[name] for name in names))


def twonn(distances: np.ndarray, fraction: float | str = FACCO) -> float:
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


def fitted(n: int, fraction: float | str) -> int:
    """How many of `n` ratios TwoNN fits; the largest never, as the logarithm of 1 - F is infinite there."""
    share = share_of(fraction)
    kept = min(int(n * share), n - 1)
    if kept < 2:
        raise Unmeasurable(f"{share:g} of {n} ratios of distances are too few to fit a line")
    return kept


def share_of(fraction: float | str) -> float:
    """The share of the ratios that TwoNN fits, given as a number or by its name in FRACTIONS."""
    share = FRACTIONS.get(fraction, fraction)
    if isinstance(share, str) or not 0 < share <= 1:
        names = ", ".join(FRACTIONS)
        raise ValueError(
            f"fraction is a share of the ratios, above 0 and up to 1, or {names}, not {fraction}"
        )
    return share


def extreme_ratios(distances: np.ndarray) -> float:
    """Share of the points with near twins: those whose distances leap as TwoNN's law lets none of its ratios.

    `distances` is (n, 3 or more), ascending along a row; the nearest COPIES are looked at. Of m vectors almost equal,
    each has the others near, and the m-th much further off. Where log(r2 / r1) is exponential with rate d,
    log(r[j+1] / r[j]) is with j d, so the median of j log(r[j+1] / r[j]) tells d; it is over all j from 2 on, as at
    one alone all those of a cluster may leap. A leap is what n ratios r2 / r1 of that law would exceed 0.01 times in
    all; later ratios, with their higher rates, add next to nothing. Three vectors have no third neighbours, and none.
    """
    if distances.shape[1] < 3:
        return 0.0
    logs = np.diff(np.log(distances[:, :COPIES]), axis=1)  # (n, COPIES - 1)
    scaled = np.arange(1, logs.shape[1] + 1) * logs
    dimension = math.log(2) / max(float(np.median(scaled[:, 1:])), sys.float_info.min)
    limit = math.log(len(distances) / EXPECTED) / dimension
    return float(np.mean((logs > limit).any(axis=1)))


def bears(fraction: float | str) -> float:
    """The share of extreme ratios up to which TwoNN at a fraction is a plain number: half way to where it breaks.

    If as many ratios are extreme as the fit leaves out, 1 - fraction, a few more are fitted and bring the dimension
    below one. And the third vectors beside a pair of twins have ratios near 1, half as many as have twins: if they
    fill the fraction, the dimension has no bound. Larger clusters, with ratios of their own, move it less abruptly.
    """
    share = share_of(fraction)
    return min((1 - share) / 2, share)


def follows_law(distances: np.ndarray, dimension: float, fraction: float | str = FACCO) -> bool:
    """Whether the ratios that TwoNN fitted are as exponential as its law says, with `dimension` for their rate.

    Kolmogorov's distance over the fitted ratios, at its one percent point for a law given beforehand, made smaller by
    the root of the fraction, as distances over the beginning of a law are. Here the law is fitted to the same ratios:
    of samples that follow it, fewer than one in a hundred are refused (simulated for fractions of 0.05 to 0.97).
    """
    n = len(distances)
    kept = fitted(n, fraction)
    law = -np.expm1(-dimension * np.log(np.sort(distances[:, 1] / distances[:, 0])[:kept]))
    counted = np.arange(kept + 1) / n
    return max((counted[1:] - law).max(), (law - counted[:-1]).max()) < KOLMOGOROV * math.sqrt(kept) / n


def standard_error(dimension: float, n: int, fraction: float | str = FACCO) -> float:
    """Standard error of one TwoNN estimate from `n` vectors whose ratios follow its law and are independent.

    The logarithm of mu is exponential with rate d, so k ratios tell d to d / sqrt(k) (Fisher information of the
    k smallest of n). That is a lower bound: over simulated samples of 300 to 4096 vectors, of independent ratios or
    of points on spheres, the line through the origin scatters by up to a quarter more.
    Source: the Pareto law of Facco et al. 2017.
    """
    return dimension / fitted(n, fraction) ** 0.5


def mada(distances: np.ndarray, k: int = MADA) -> float:
    """Manifold-adaptive dimension: the mean over points of log 2 / log(r_k / r_(k/2)).

    `distances` is (n, k or more), ascending along a row, k as in MAY_LOOK_AT. Source: Farahmand et al. 2007.
    """
    with np.errstate(divide="ignore"):
        return _finite(np.mean(np.log(2) / np.log(distances[:, k - 1] / distances[:, k // 2 - 1])))


def mom(distances: np.ndarray, k: int = MOM) -> float:
    """Method of moments: the mean over points of m / (w - m), m the mean and w the largest of k distances.

    `distances` is (n, k or more), ascending along a row, k as in MAY_LOOK_AT. Source: Amsaleg et al. 2018.
    """
    m, w = distances[:, :k].mean(axis=1), distances[:, k - 1]
    with np.errstate(divide="ignore"):
        return _finite(np.mean(m / (w - m)))


def rows(
    states: HiddenStates,
    estimators: Sequence[str],
    fractions: Sequence[float],
    neighbors: Mapping[str, int] = NEIGHBORS,
) -> list[dict[str, Any]]:
    """`rows_of` the estimators of these names."""
    names, neighbors = _asked(estimators, neighbors)
    return rows_of(states, {name: globals()[name] for name in names}, fractions, neighbors)


def rows_of(
    states: HiddenStates,
    estimators: Mapping[str, Estimator],
    fractions: Sequence[float],
    neighbors: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Every estimate at every layer: one row per (stack, layer, positions, estimator, fraction).

    `estimators` are functions by their names, so that an estimator that is not among them concerns no result.
    `mean` and `std` are over batches, whose values `by_batch` holds; `stderr` is the standard error of the mean that
    they show. Of TwoNN alone: `fraction`; `extreme_ratios`, the largest share in any batch (see `extreme_ratios`);
    `doubt`, why for so many the mean is no plain number; `stderr_facco`, the standard error that its law predicts,
    null where a batch does not follow it. `neighbors` is null for TwoNN. `rows_dropped` counts repeated vectors in
    all batches. What cannot be estimated is null, with the reason.
    """
    settings = [(name, f) for name in estimators for f in (fractions if name == "twonn" else [None])]

    def of_layer(cells: Sequence[Cell]) -> list[dict[str, Any]]:
        graphs = _graphs(cells, estimators, neighbors)
        return [row for cell, of_cell in zip(cells, graphs, strict=True)
                for row in _rows(cell, of_cell, estimators, settings, neighbors)]  # fmt: skip

    return list(chain.from_iterable(threads.each(of_layer, states.by_layer())))


@dataclass
class _Graphs:
    """Distances to the nearest neighbours for each batch of a cell; repeated vectors; what was in the way."""

    distances: list[np.ndarray] = field(default_factory=list)
    dropped: int = 0
    failure: dict[str, Any] | None = None


def _graphs(cells: Sequence[Cell], names: Iterable[str], neighbors: Mapping[str, int]) -> list[_Graphs]:
    """The graphs of a layer's cells. They have most vectors in common, so a batch is searched once for all."""
    found = [_Graphs() for _ in cells]
    for batch in sorted(set().union(*(cell.whole for cell in cells))):
        sets, of_sets = [], []
        for cell, graphs in zip(cells, found, strict=True):
            if batch in cell.whole and not graphs.failure:
                try:
                    measurable(cell.read(batch))
                except Unmeasurable as error:
                    graphs.failure = cell.failure(error)
                else:
                    sets.append(cell.tokens[batch])
                    of_sets.append(graphs)
        if sets:
            tokens = reduce(np.union1d, sets)
            rows, places = pooled(cells[0].rows(tokens), [np.searchsorted(tokens, each) for each in sets])
            nearest = nearest_within(as_float64(rows), _looked_at(names, neighbors), places)
            for graphs, of_set, distances in zip(of_sets, sets, nearest, strict=True):
                graphs.distances.append(distances)
                graphs.dropped += len(of_set) - len(distances)
    return found


def _rows(
    cell: Cell,
    graphs: _Graphs,
    estimators: Mapping[str, Estimator],
    settings: Sequence[tuple[str, float | None]],
    neighbors: Mapping[str, int],
) -> list[dict[str, Any]]:
    """One row per (estimator, fraction)."""
    found = []
    for name, fraction in settings:
        estimate = partial(_estimate, name, estimators[name], fraction, neighbors)
        value = graphs.failure or cell.over_batches(estimate, graphs.distances)
        std = value["std"]
        about = {
            "estimator": name,
            "fraction": fraction,
            "neighbors": None if name == "twonn" else neighbors[name],
        }
        error = None if std is None else std / math.sqrt(len(graphs.distances))
        about |= {"rows_dropped": graphs.dropped, "stderr": error}
        law = dict.fromkeys(("extreme_ratios", "stderr_facco", "doubt"))
        if name == "twonn" and value["mean"] is not None:
            law = _against_law(value, graphs.distances, fraction)
        found.append({**cell.columns, **about, **value, **law})
    return found


def _against_law(value: Mapping[str, Any], graphs: Sequence[np.ndarray], fraction: float) -> dict[str, Any]:
    """What TwoNN's law says of the batches' values: extreme ratios, the error of their mean, and perhaps a doubt."""
    extreme = max(map(extreme_ratios, graphs))
    each = list(zip(graphs, value["by_batch"], strict=True))
    predicted = None
    if all(follows_law(graph, dimension, fraction) for graph, dimension in each):
        errors = [standard_error(dimension, len(graph), fraction) for graph, dimension in each]
        predicted = math.hypot(*errors) / len(errors)
    doubt = _doubt(fraction) if extreme > bears(fraction) else None
    return {"extreme_ratios": extreme, "stderr_facco": predicted, "doubt": doubt}


def _doubt(fraction: float | str) -> str:
    return (
        f"near twins: a fit of the smallest {share_of(fraction):g} of the ratios bears {bears(fraction):.2g} of them "
        "extreme, and there are more: it hangs on which it takes in"
    )


def _estimate(
    name: str,
    estimator: Estimator,
    fraction: float | str | None,
    neighbors: Mapping[str, int],
    distances: np.ndarray,
) -> float:
    """One estimator by name; Unmeasurable says which one failed and why."""
    n, k = distances.shape
    if k < neighbors[name]:
        raise Unmeasurable(
            f"{name}: {n} different vectors have {n - 1} neighbours each, not the {neighbors[name]} it looks at: "
            f"leave {name} out, or lower its neighbours"
        )
    try:
        return estimator(distances, fraction if name == "twonn" else neighbors[name])
    except Unmeasurable as error:
        raise Unmeasurable(f"{name}: {error}") from None


def _finite(dimension: float) -> float:
    if not np.isfinite(dimension):
        raise Unmeasurable(
            "some vectors have neighbours at equal distances, which would make the dimension infinite"
        )
    return float(dimension)
