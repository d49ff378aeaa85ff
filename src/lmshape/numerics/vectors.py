"""Sets of vectors as every measure of their geometry wants them: float64, finite, and not all the same."""

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_torch_array

ROOM = 200  # binary orders of magnitude: fourth powers of such numbers, summed, stay in float64's range
LARGEST_SHIFT = 1000  # a power of two beyond it, or its inverse, is not a normal float64
SMALLEST = 2.0**-150  # difference, as part of the largest value, whose square is still well above zero


class Unmeasurable(ValueError):
    """Vectors for which a measure has no answer; the message is the reason that a table gives for the null."""


def as_float64(X: Any) -> Any:
    """A float64 copy of `X` (n, d), fit to be measured: a torch tensor on any device, or what makes a NumPy array.

    Measures square and subtract: in float16 one outlier dimension of 300 overflows its square, in float32
    a small variance beside a large mean drowns. Scale and errors are those of `measurable`.
    """
    X = measurable(X)
    xp = array_namespace(X)
    return xp.astype(X, xp.float64)


def measurable(X: Any) -> Any:
    """`X` (n, d), if it is fit to be measured: a tensor without its gradient, and lists or a data frame as an array.

    No measure of geometry depends on scale. So values whose squares would leave the range of float64, which those
    of narrower types never do, are returned multiplied by a power of two, which is exact.

    Raises Unmeasurable where there is no geometry to measure: fewer than two vectors, a value that is not finite,
    or vectors that are all equal. ValueError for what are no real numbers.
    """
    X = as_array(X)
    xp = array_namespace(X)
    if X.ndim != 2 or X.shape[0] < 2 or X.shape[1] < 1:
        raise Unmeasurable(f"expected two or more vectors as rows, not an array of shape {tuple(X.shape)}")
    high, low = (xp.astype(find(X, axis=0), xp.float64) for find in (xp.max, xp.min))
    largest = max(float(xp.max(high)), -float(xp.min(low)))
    if not math.isfinite(largest):  # NaN and infinity survive the search
        count = int(xp.sum(xp.astype(~xp.isfinite(X), xp.int64)))
        raise Unmeasurable(f"{count} of {X.shape[0] * X.shape[1]} values are not finite")
    exponent = math.frexp(largest)[1]
    scale = 2.0 ** -max(-LARGEST_SHIFT, min(exponent, LARGEST_SHIFT))
    difference = float(xp.max(high * scale - low * scale))
    if difference < SMALLEST:
        within = f" to within {SMALLEST:.0e} of the largest value" if difference else ""
        raise Unmeasurable(f"all {X.shape[0]} vectors are equal{within}")
    return X if abs(exponent) < ROOM else X * scale


def as_array(X: Any) -> Any:
    """`X` as a NumPy array or a tensor without its gradient; ValueError where that holds no real numbers."""
    if is_torch_array(X):
        X = X.detach()
    elif not is_array_api_obj(X):
        X = np.asarray(X)
    xp = array_namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("complex vectors: give their real and imaginary parts as columns")
    if not xp.isdtype(X.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"expected an array of numbers, (vectors, width), not of {X.dtype}")
    return X
