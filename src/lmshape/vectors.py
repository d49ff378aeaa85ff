"""Sets of vectors as every measure of their geometry wants them: float64, finite, and not all the same."""

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace


def as_float64(X: Any) -> Any:
    """A float64 copy of `X`, an (n, d) NumPy array or torch tensor on any device.

    Measures square and subtract: in float16 one outlier dimension of 300 overflows its square, in float32
    a small variance beside a large mean drowns.

    Raises ValueError, saying why, where there is no geometry to measure: fewer than two vectors, a value that
    is not finite, or vectors that are all equal.
    """
    xp = array_namespace(X)
    if X.ndim != 2 or X.shape[0] < 2 or X.shape[1] < 1:
        raise ValueError(f"expected two or more vectors as rows, not an array of shape {tuple(X.shape)}")
    Y = xp.astype(X, xp.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        total = float(xp.sum(Y))  # one pass: NaN and infinity survive every sum
    if not math.isfinite(total):
        count = int(xp.sum(xp.astype(~xp.isfinite(Y), xp.int64)))
        raise ValueError(
            f"{count} of {Y.shape[0] * Y.shape[1]} values are not finite (NaN, infinite, or too large)"
        )
    if bool(xp.all(Y[-1] == Y[0])) and bool(xp.all(Y[:1] == Y)):
        raise ValueError(f"all {Y.shape[0]} vectors are equal")
    return Y
