"""Products of vectors to the last bit the same, however they are computed.

A matrix product adds up in an order that hangs on its shape, on threads and on the processor's kernels, and so do the
last bits of its sums. Not so with whole numbers below 2^53, of which float64 loses nothing. So vectors are rounded to
whole multiples of a unit, a power of two of which their length is 2^26 at most. Of two such vectors each product, and
by the inequality of Cauchy and Schwarz each sum of some products, is a whole multiple of both units, 2^52 at most:
every order gives the same. To round so moves a cosine by some 1e-8, less than products in float32 do.

The idea, with more parts for more digits, is that of Ozaki, Ogita, Oishi and Rump, Error-free transformations of
matrix multiplication (Numerical Algorithms 59, 2012).
"""

import numpy as np

from lmshape.numerics import threads

BITS = 26  # of a length in its unit: half of what a float64 holds
BLOCK = 128  # vectors rounded at once, which stay in the processor's cache


def rounded(vectors: np.ndarray) -> np.ndarray:
    """`vectors` (n, d), each rounded to multiples of its own unit, as float64; what is not finite stays so."""
    whole = np.empty(vectors.shape)

    def fill(first: int) -> None:
        block = whole[first : first + BLOCK]
        block[...] = vectors[first : first + BLOCK]
        round_rows(block)

    threads.each(fill, range(0, len(vectors), BLOCK))
    return whole


def round_rows(vectors: np.ndarray) -> None:
    """`rounded` in place."""
    with np.errstate(invalid="ignore"):
        squares = np.square(vectors).sum(axis=1)  # NumPy adds a row in one order, whatever the processor
        length = (np.frexp(squares)[1] + 1) // 2  # at most 2 ** length
        # from 2 ** (52 + k) to twice that, float64 numbers are 2 ** k apart: to add one of them rounds to that
        shift = np.ldexp(1.5, 52 - BITS + length)[:, None]
        vectors += shift
        vectors -= shift


def add_products(first: np.ndarray, second: np.ndarray, dots: np.ndarray, squares: np.ndarray) -> None:
    """Add those of `first` (m, d) and `second` (n, d) to `dots` (m, n) and to `squares` (m + n) of both, float64.

    What is added depends on two vectors alone, not on others, on threads or on kernels.
    """
    sides = rounded(first), rounded(second)
    dots += sides[0] @ sides[1].T
    squares += np.concatenate([np.vecdot(side, side) for side in sides])
