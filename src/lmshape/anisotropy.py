"""Anisotropy: how far a set of vectors is from pointing, or spreading, the same in all directions."""

from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, to_device
from scipy.linalg import eigvalsh
from scipy.linalg.blas import dsymv, dsyrk
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from lmshape.hidden_states import HiddenStates
from lmshape.vectors import as_float64

DENSE = 192  # up to this size LAPACK finds the largest eigenvalue sooner than Lanczos does
RESTARTS = 50  # enough for any spectrum met so far; LAPACK takes over after that
TOLERANCE = 1e-10  # of the largest eigenvalue, relative: its residual bounds its error


def anisotropy(X: Any, center: bool = True) -> float:
    """Share of the sum of squared singular values of `X` (n, d) that the largest one has; 1/min(n, d) to 1.

    The squared singular values are the eigenvalues of the Gram matrix of the smaller side. Its largest is
    exact to 1e-9 relative, and its trace is their sum, so no decomposition is needed. `center` removes the
    mean vector first. X is NumPy or torch, on any device.

    Raises ValueError for vectors without geometry (see `as_float64`).
    Source: Razzhigaev et al. 2024, section 2.3.
    """
    Y = _prepared(X, center)
    gram = _gram(Y)
    total = float(gram.trace())
    if total == 0:
        raise ValueError("the vectors do not vary: their squares are zero in float64")
    return min(_largest_eigenvalue(gram) / total, 1.0)


def average_cosine(X: Any, center: bool = False) -> float:
    """Mean cosine of all pairs of different rows of `X` (n, d), in O(n d); -1/(n - 1) to 1.

    With u_i the rows at unit length, it is (|sum u_i|^2 - n) / (n (n - 1)), for the square of the sum holds
    every pair twice and every row with itself once. `center` removes the mean vector first.

    Raises ValueError for vectors without geometry (see `as_float64`), or where one has no direction.
    Source: Ethayarajh 2019; Razzhigaev et al. 2024, section 2.3.
    """
    Y = _prepared(X, center)
    xp = array_namespace(Y)
    n = Y.shape[0]
    lengths = xp.sqrt(xp.sum(Y * Y, axis=1))
    if zeros := int(xp.sum(xp.astype(lengths == 0, xp.int64))):
        raise ValueError(f"{zeros} of {n} vectors are zero and have no direction")
    resultant = (1 / lengths) @ Y  # (d,) sum of the unit vectors
    return (float(resultant @ resultant) - n) / (n * (n - 1))


def norm_variance_share(X: Any, largest: float = 0.01) -> float:
    """Share of the variance of `X` (n, d) that its longest vectors carry; 0 to 1.

    The longest are the `largest` share of the rows (one at least) by norm. What they carry is their part of the
    sum of squared distances from the mean. Among vectors of equal length it would be `largest`; a few massive
    activations bring it near 1, and then anisotropy says little about the other vectors.

    Raises ValueError for vectors without geometry (see `as_float64`).
    """
    Y = as_float64(X)
    xp = array_namespace(Y)
    count = max(1, round(largest * Y.shape[0]))
    longest = xp.argsort(xp.sum(Y * Y, axis=1))[-count:]
    Y -= xp.mean(Y, axis=0)
    squares = xp.sum(Y * Y, axis=1)
    return float(xp.sum(xp.take(squares, longest, axis=0)) / xp.sum(squares))


def _prepared(X: Any, center: bool) -> Any:
    """A float64 copy, with the mean vector removed if wanted."""
    Y = as_float64(X)
    if center:
        Y -= array_namespace(Y).mean(Y, axis=0)
    return Y


def _gram(Y: Any) -> np.ndarray:
    """Y'Y, or YY' where that is smaller, on the host; only the upper triangle is sure to be filled."""
    wide = Y.shape[1] > Y.shape[0]
    if str(device(Y)) == "cpu":
        return dsyrk(1.0, np.asarray(Y).T, trans=wide)  # half the work of a product
    return np.asarray(to_device(Y @ Y.T if wide else Y.T @ Y, "cpu"))


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


def rows(states: HiddenStates, batch_size: int) -> list[dict[str, Any]]:
    """Every measure at every layer: one row per (stack, layer, positions, measure, centred).

    `mean` and `std` are over batches of `batch_size` vectors. What cannot be measured is null, with the reason.
    """
    return [
        {**cell.columns, "measure": name, "centered": centered, "rows_dropped": 0}
        | cell.over_batches(measure, cell.batches)
        for cell in states.cells(batch_size)
        for name, centered, measure in MEASURES
    ]
