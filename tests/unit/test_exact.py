"""Products that no order of adding up can change, against sums in Python's whole numbers and fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lmshape.numerics import exact

RNG = np.random.default_rng(0)
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def products(first, second):
    dots, squares = np.zeros((len(first), len(second))), np.zeros(len(first) + len(second))
    exact.add_products(first, second, dots, squares)
    return dots, squares


def length(vector: list[Fraction]) -> Fraction:
    """Squared, exact."""
    return sum(value * value for value in vector)


@given(arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=FLOATS))
def test_vectors_are_rounded_to_whole_multiples_of_a_unit_of_which_their_length_is_2_to_the_26_at_most(
    vectors,
):
    for vector, rounded in zip(vectors, exact.rounded(vectors), strict=True):
        before, after = ([Fraction(float(value)) for value in side] for side in (vector, rounded))
        unit = Fraction(2) ** -200
        while length(before) >= (2**26 * unit) ** 2:
            unit *= 2
        assert (
            any(  # sums of squares are rounded too: a length just below 2^26 units may be taken for one above
                all(value % one == 0 for value in after)
                and all(2 * abs(a - b) <= one for a, b in zip(before, after, strict=True))
                and length(after) <= ((2**26 + 2) * one) ** 2
                for one in (unit, 2 * unit)
            )
        )


@pytest.mark.parametrize("scale", [1e-30, 1, 1e30])
@pytest.mark.parametrize("outlier", [1, 1e4])
def test_products_are_exact_of_the_rounded_vectors(scale, outlier):
    first, second = (RNG.standard_normal((n, 700)) * scale for n in (3, 5))
    first[:, 7] *= outlier
    first, second = first.astype(np.float32), second.astype(np.float32)
    dots, squares = products(first, second)
    sides = [
        [[Fraction(value) for value in row] for row in exact.rounded(side).tolist()]
        for side in (first, second)
    ]
    for i, one in enumerate(sides[0]):
        assert Fraction(squares[i]) == length(one)
        for j, other in enumerate(sides[1]):
            assert Fraction(dots[i, j]) == sum(a * b for a, b in zip(one, other, strict=True))


def test_any_order_of_columns_and_any_other_vectors_give_the_same_bits():
    first, second = (RNG.standard_normal((n, 513)).astype(np.float32) for n in (70, 600))
    dots, squares = products(first, second)
    order = RNG.permutation(513)
    mixed = products(np.ascontiguousarray(first[:, order]), second[:, order])
    assert np.array_equal(mixed[0], dots) and np.array_equal(mixed[1], squares)
    for some in (slice(0, 1), slice(255, 258), slice(3, None)):
        assert np.array_equal(products(first[some], second)[0], dots[some])
        assert np.array_equal(products(first, second[some])[0], dots[:, some])


def test_rounding_moves_a_cosine_by_less_than_float32_can_tell():
    first, second = (RNG.standard_normal((40, 1024)).astype(np.float32) for _ in range(2))
    dots, squares = products(first, second)
    truth = first.astype(float) @ second.astype(float).T
    norms = [np.linalg.norm(side.astype(float), axis=1) for side in (first, second)]
    cosines = dots / np.sqrt(squares[:40, None] * squares[40:])
    np.testing.assert_allclose(cosines, truth / np.outer(*norms), rtol=0, atol=5e-8)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_so_and_harms_no_other_vector(bad):
    vectors = np.ones((2, 3), np.float32)
    vectors[0, 1] = bad
    _, squares = products(vectors, vectors[1:])
    assert not np.isfinite(squares[0]) and squares[1] == squares[2] == 3
