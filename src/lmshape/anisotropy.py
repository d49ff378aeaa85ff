"""Anisotropy: how far a set of vectors is from pointing, or spreading, the same in all directions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, to_device
from scipy.linalg import eigvalsh
from scipy.linalg.blas import dsymv, dsyrk
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from lmshape.models.hidden_states import Cell, HiddenStates
from lmshape.numerics.vectors import Unmeasurable, as_float64, measurable

BLOCK = 2**19  # numbers of a float64 block: 4 MiB
LARGEST = 0.01  # share of the vectors that count as the longest
DENSE = 192  # up to this size LAPACK finds the largest eigenvalue sooner than Lanczos does
RESTARTS = 50  # enough for any spectrum met so far; LAPACK takes over after that
TOLERANCE = 1e-10  # of the largest eigenvalue, relative: its residual bounds its error


def anisotropy(X: Any, center: bool = True) -> float:
    """Share of the sum of squared singular values of `X` (n, d) that the largest one has; 1/min(n, d) to 1.

    The squared singular values are the eigenvalues of the Gram matrix of the smaller side. Its largest is
    exact to 1e-9 relative, and its trace is their sum, so no decomposition is needed. `center` removes the
    mean vector first. X is NumPy or torch, on any device.

    Raises Unmeasurable for vectors without geometry (see `measurable`).
    Source: Razzhigaev et al. 2024, section 2.3.
    """
    X = measurable(X)
    xp = array_namespace(X)
    mean = xp.sum(X, axis=0, dtype=xp.float64) / X.shape[0]
    gram = _gram(X, mean if center else 0 * mean)
    return min(_largest_eigenvalue(gram) / float(gram.trace()), 1.0)


def average_cosine(X: Any, center: bool = False) -> float:
    """Mean cosine of all pairs of different rows of `X` (n, d), in O(n d); -1/(n - 1) to 1.

    With u_i the rows at unit length, it is (|sum u_i|^2 - n) / (n (n - 1)), for the square of the sum holds
    every pair twice and every row with itself once. `center` removes the mean vector first.

    Raises Unmeasurable for vectors without geometry (see `measurable`), or where one has no direction.
    Source: Ethayarajh 2019; Razzhigaev et al. 2024, section 2.3.
    """
    Y = as_float64(X)
    xp = array_namespace(Y)
    if center:
        Y -= xp.mean(Y, axis=0)
    n = Y.shape[0]
    largest = xp.max(xp.abs(Y), axis=1, keepdims=True)
    if zeros := int(xp.sum(xp.astype(largest == 0, xp.int64))):
        raise Unmeasurable(f"{zeros} of {n} vectors are zero and have no direction")
    Y /= largest  # the square of a vector that is tiny beside others must not be zero
    resultant = (1 / xp.sqrt(xp.sum(Y * Y, axis=1))) @ Y  # (d,) sum of the unit vectors
    return (float(resultant @ resultant) - n) / (n * (n - 1))


def norm_variance_share(X: Any) -> float:
    """Share of the variance of `X` (n, d) that its longest vectors carry; 0 to 1.

    The longest are one percent of the rows (one at least) by norm. What they carry is their part of the sum of
    squared distances from the mean. Were norms equal, that would be a hundredth; a few massive activations bring
    it near 1, and then anisotropy says little about the other vectors.

    Raises Unmeasurable for vectors without geometry (see `measurable`).
    """
    Y = as_float64(X)
    xp = array_namespace(Y)
    count = max(1, round(LARGEST * Y.shape[0]))
    longest = xp.argsort(xp.sum(Y * Y, axis=1))[-count:]
    Y -= xp.mean(Y, axis=0)
    squares = xp.sum(Y * Y, axis=1)
    return float(xp.sum(xp.take(squares, longest, axis=0)) / xp.sum(squares))


def _gram(X: Any, shift: Any) -> np.ndarray:
    """Y'Y for Y = X - shift, or YY' where that is smaller, on the host; of use is its upper triangle alone."""
    size = min(X.shape)
    on_host = str(device(X)) == "cpu"
    gram = np.zeros((size, size), order="F") if on_host else 0
    for block in _blocks(X, shift):
        if on_host:  # half the work of a product
            gram = dsyrk(1.0, np.asarray(block).T, beta=1.0, c=gram, overwrite_c=True)
        else:
            gram = gram + block.T @ block
    # symmetric, so its transpose is itself, by columns: BLAS would copy it for every product otherwise
    return gram if on_host else np.asarray(to_device(gram, "cpu")).T


def _blocks(X: Any, shift: Any) -> Iterator[Any]:
    """X - shift, or its transpose if that is taller, a few float64 rows at a time: they stay in the cache."""
    xp = array_namespace(X)
    n, d = X.shape
    height = max(1, BLOCK // min(n, d))
    for start in range(0, max(n, d), height):
        part = slice(start, start + height)
        if n >= d:
            yield xp.astype(X[part], xp.float64) - shift
        else:
            yield (xp.astype(X[:, part], xp.float64) - shift[part]).T


def _largest_eigenvalue(gram: np.ndarray) -> float:
    """Largest eigenvalue of a symmetric positive semidefinite matrix, of which only the upper triangle is read.

    Lanczos stops when its residual is below TOLERANCE, so two close eigenvalues are told apart or do not matter.
    Its start is random, hence not orthogonal to what it looks for, and fixed, hence the same in every run.
    """
    size = len(gram)
    if size > DENSE:
        product = LinearOperator(gram.shape, matvec=lambda v: dsymv(1.0, gram, v), dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(size)
        try:
            found = eigsh(
                product, 1, which="LA", v0=start, tol=TOLERANCE, maxiter=RESTARTS, return_eigenvectors=False
            )
            return float(found[0])
        except ArpackError:  # no convergence: the answer must not depend on luck
            pass
    return float(eigvalsh(gram, lower=False, subset_by_index=(size - 1, size - 1))[0])


MEASURES = (  # name, whether the mean vector is removed first, function
    ("svd", True, anisotropy),
    ("svd", False, partial(anisotropy, center=False)),
    ("average_cosine", True, partial(average_cosine, center=True)),
    ("average_cosine", False, average_cosine),
    ("largest_norms", True, norm_variance_share),
)


def rows(states: HiddenStates) -> list[dict[str, Any]]:
    """Every measure at every layer: one row per (stack, layer, positions, measure, centred).

    `mean` and `std` are over batches, whose values `by_batch` holds. What cannot be measured is null, with the
    reason.
    """
    return [row for cell in states.cells() for row in _rows(cell)]


def _rows(cell: Cell) -> list[dict[str, Any]]:
    """One row per (measure, centred); the vectors are read once for all of them."""
    batches = cell.batches()
    return [
        {**cell.columns, "measure": name, "centered": centered, "rows_dropped": 0}
        | cell.over_batches(measure, batches)
        for name, centered, measure in MEASURES
    ]
