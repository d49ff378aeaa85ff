"""Sets of vectors as every measure of their geometry wants them: float64, finite, and not all the same."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace


class Unmeasurable(ValueError):
    """Vectors for which a measure has no answer; the message is the reason that a table gives for the null."""


def as_float64(X: Any) -> Any:
    """A float64 copy of `X`, an (n, d) NumPy array or torch tensor on any device, fit to be measured.

    Measures square and subtract: in float16 one outlier dimension of 300 overflows its square, in float32
    a small variance beside a large mean drowns. Raises Unmeasurable as `mean_vector` does.
    """
    mean_vector(X)
    xp = array_namespace(X)
    return xp.astype(X, xp.float64)


def mean_vector(X: Any) -> Any:
    """The mean (d,) of the rows of `X` (n, d), NumPy or torch, in float64.

    Raises Unmeasurable where there is no geometry to measure: fewer than two vectors, a value that is not finite,
    or vectors that are all equal.
    """
    xp = array_namespace(X)
    if X.ndim != 2 or X.shape[0] < 2 or X.shape[1] < 1:
        raise Unmeasurable(f"expected two or more vectors as rows, not an array of shape {tuple(X.shape)}")
    with np.errstate(invalid="ignore", over="ignore"):
        mean = xp.sum(X, axis=0, dtype=xp.float64) / X.shape[0]
    if not bool(xp.all(xp.isfinite(mean))):  # NaN and infinity survive every sum
        count = int(xp.sum(xp.astype(~xp.isfinite(X), xp.int64)))
        raise Unmeasurable(f"{count} of {X.shape[0] * X.shape[1]} values are not finite")
    if bool(xp.all(X[-1] == X[0])) and bool(xp.all(X[:1] == X)):
        raise Unmeasurable(f"all {X.shape[0]} vectors are equal")
    return mean
