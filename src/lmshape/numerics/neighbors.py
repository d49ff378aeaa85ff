"""Distances of every vector to its nearest neighbours, exact, in blocked matrix products."""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array, to_device

from lmshape.numerics.vectors import Unmeasurable

BLOCK = 2**20  # distances looked at a time: 8 MiB, which stay in the cache
KEPT = 2**26  # distances kept at most: 512 MiB, those of 8,192 vectors
ACCURACY = 1e-9  # relative error allowed to a squared distance
ROUNDING = 2.0**-53  # of one float64 operation


def distinct(X: Any) -> tuple[Any, int]:
    """The different rows of `X` (n, d), each where it first occurs, and how many repeated ones were left out.

    Rows are compared by value, so 0 and -0 are the same.
    """
    first = _first_occurrences(_numbers(np.asarray(to_device(X, "cpu"))))
    repeated = X.shape[0] - len(first)
    return (X[first.tolist()] if repeated else X), repeated


def pooled(X: np.ndarray, sets: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The `distinct` rows of `X` (n, d), and where among them those of several sets of rows are, each ascending."""
    numbers = _numbers(X)
    return X[_first_occurrences(numbers)], [np.unique(numbers[members]) for members in sets]


def _numbers(rows: np.ndarray) -> np.ndarray:
    """For each row (n, d) the number of its content, (n,): contents are counted as they first occur."""
    seen: dict[bytes, int] = {}
    whole = rows + 0.0  # turns -0 into 0: rows are compared as bytes
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in whole])


def _first_occurrences(numbers: np.ndarray) -> np.ndarray:
    """Where each number first occurs, in their order."""
    return np.unique(numbers, return_index=True)[1]


def nearest_distances(X: Any, k: int) -> np.ndarray:
    """Euclidean distances (n, k) of each row of `X` to its `k` nearest other rows, ascending, on the host.

    `X` is (n, d) float64, NumPy or torch, finite, with different rows.
    Raises Unmeasurable where there are not that many neighbours.
    """
    n = X.shape[0]
    if k >= n:
        raise Unmeasurable(f"{k} neighbours asked for, but {n} different vectors have {n - 1} each")
    return nearest_within(X, k, [np.arange(n)])[0]


def nearest_within(X: Any, k: int, sets: Sequence[np.ndarray]) -> list[np.ndarray]:
    """`nearest_distances` within each of several sets of rows of `X`, given by their ascending places; one search.

    Distances are (rows of the set, k), or as many as the set has others. Squared distances come from a matrix
    product, |a|^2 + |b|^2 - 2ab. Its rounding error is at most E (|a|^2 + |b|^2) with E = 2 (d + 2) ROUNDING, and
    |b|^2 <= 2|a|^2 + 2r^2 at distance r, so the error is within ACCURACY of r^2 unless r^2 is a small part of
    |a|^2 (centring makes that rare; any centre will do). Every pair so close is measured again by subtraction. Then
    all distances of a row are accurate, so are its smallest ones, and so are those to the rows of any set.

    The rows that all sets have in common are searched once; the nearest in a set are among these and its own.
    """
    n, d = X.shape
    xp = array_namespace(X)
    Y = X - xp.mean(X, axis=0)
    squares = xp.sum(Y * Y, axis=1)
    limits = squares[:, None] * (6 * (d + 2) * ROUNDING / ACCURACY)
    common = reduce(np.intersect1d, sets)
    others, *own = (_on(X, np.setdiff1d(some, common)) for some in (np.arange(n), *sets))
    found: list[list[np.ndarray]] = [[] for _ in sets]
    for start, block in _squared(Y, squares[:, None]):
        end = start + block.shape[0]
        _measure_close(block, X, limits[start:end], start)
        of_own = [xp.take(block, columns, axis=1) for columns in own]
        block[:, others] = xp.inf
        nearest = _smallest(block, min(k, len(common)))
        for members, distances, candidates in zip(sets, found, of_own, strict=True):
            first, last = np.searchsorted(members, (start, end))
            if first < last:
                rows = _on(X, members[first:last] - start)
                inside = xp.take(xp.concat([nearest, candidates], axis=1), rows, axis=0)
                smallest = _smallest(inside, min(k, len(members) - 1))
                distances.append(np.sqrt(np.asarray(to_device(smallest, "cpu"))))
    return [np.concatenate(distances) for distances in found]


def _on(X: Any, places: np.ndarray) -> Any:
    """Places as an array where `X` is."""
    return array_namespace(X).asarray(places, device=device(X))


def _squared(Y: Any, squares: Any) -> Iterator[tuple[int, Any]]:
    """(first row, (rows, n) squared distances of some rows of `Y` (n, d) to all), block by block.

    `squares` (n, 1) are the rows' squared lengths. Where KEPT has room for all pairs, the product is taken of each
    once, and what is below the diagonal is what was found above it.
    """
    n, xp = Y.shape[0], array_namespace(Y)
    ones = xp.ones_like(squares)
    left = xp.concat([-2 * Y, squares, ones], axis=1)
    right = xp.concat([Y, ones, squares], axis=1).T  # left_i . right_j is the squared distance of i and j
    whole = xp.empty((n, n), dtype=Y.dtype, device=device(Y)) if n * n <= KEPT else None
    height = max(1, BLOCK // n)
    for start in range(0, n, height):
        end = min(start + height, n)
        if whole is None:
            yield start, left[start:end] @ right
        else:
            whole[start:end, start:] = left[start:end] @ right[:, start:]
            whole[end:, start:end] = whole[start:end, end:].T
            yield start, whole[start:end]


def _measure_close(block: Any, X: Any, limits: Any, start: int) -> None:
    """Replace, in place, the squared distances below the row's limit, and put a row's own beyond reach.

    `block` (rows, n) holds those of rows start, start + 1, ... of `X` to all; `limits` is (rows, 1).
    """
    xp = array_namespace(X)
    own = xp.arange(block.shape[0], device=device(X))
    block[own, start + own] = xp.inf
    suspects = xp.nonzero(xp.min(block, axis=1) < limits[:, 0])[0]
    within, columns = xp.nonzero(block[suspects] < limits[suspects])
    rows = suspects[within]
    pairs = max(1, BLOCK // X.shape[1])  # as many as keep the differences in a block's memory
    for first in range(0, rows.shape[0], pairs):
        i, j = rows[first : first + pairs], columns[first : first + pairs]
        block[i, j] = xp.sum((X[start + i] - X[j]) ** 2, axis=1)


def _smallest(block: Any, k: int) -> Any:
    """The `k` smallest of each row, ascending; `block` is in any order then."""
    if k == 0:
        return block[:, :0]
    if is_numpy_array(block):
        block.partition(k - 1, axis=1)
        return np.sort(block[:, :k], axis=1)
    return block.topk(k, dim=1, largest=False).values  # the array standard has no partial sort
