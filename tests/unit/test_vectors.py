"""What counts as a set of vectors."""

import numpy as np
import polars as pl
import pytest
import torch

from lmshape.anisotropy import anisotropy
from lmshape.intrinsic_dimension import estimate
from lmshape.numerics.vectors import Unmeasurable, as_float64, measurable

BOTH = pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])


@BOTH
def test_values_are_kept_in_float64_and_the_original_is_left_alone(convert):
    X = convert(np.array([[1, 2], [3, 5]], np.float32))
    Y = as_float64(X)
    assert str(Y.dtype).endswith("float64")
    Y += 1
    assert X[0, 0] == 1


@BOTH
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_an_error_with_a_count(convert, bad):
    X = np.ones((5, 3), np.float32)
    X[1:3, 2] = bad
    X[0, 0] = -bad
    with pytest.raises(Unmeasurable, match="3 of 15 values are not finite"):
        as_float64(convert(X))


@BOTH
def test_equal_vectors_are_an_error(convert):
    with pytest.raises(Unmeasurable, match="all 4 vectors are equal"):
        as_float64(convert(np.full((4, 3), 0.1)))


@pytest.mark.parametrize("shape", [(1, 3), (0, 3), (4, 0), (5,), (2, 3, 4)])
def test_fewer_than_two_vectors_or_another_shape_is_an_error(shape):
    with pytest.raises(Unmeasurable, match="two or more vectors"):
        as_float64(np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape))


def test_float16_is_summed_without_overflow():
    X = np.zeros((300, 2), np.float16)
    X[::2] = 300  # their float16 sum, let alone that of their squares, is infinite
    assert as_float64(X).sum() == 300 * 300


@BOTH
@pytest.mark.parametrize("scale", [2.0**-1070, 2.0**-500, 2.0**500, 2.0**1020])
def test_values_beyond_the_range_of_their_squares_are_scaled_exactly(convert, scale):
    X = np.array([[1.0, 2], [3, -5]])
    Y = np.asarray(as_float64(convert(X * scale)))
    assert (Y / Y[0, 0] == X).all()
    assert np.isfinite(Y**4).all() and (Y**4 > 1e-300).all()


@BOTH
def test_values_whose_squares_are_in_range_are_left_as_they_are(convert):
    X = convert(np.array([[1e-45, 2], [3, 3e38]], np.float32))
    assert measurable(X) is X or measurable(X).data_ptr() == X.data_ptr()


def test_vectors_that_differ_by_less_than_squares_can_tell_are_an_error():
    with pytest.raises(Unmeasurable, match="all 2 vectors are equal to within 7e-46 of the largest value"):
        as_float64(np.array([[1.0, 0], [1, 1e-200]]))


def test_a_tensor_that_requires_a_gradient_is_measured_without_it():
    X = torch.arange(6.0).reshape(3, 2).requires_grad_()
    assert not as_float64(X).requires_grad and X.requires_grad


@BOTH
def test_complex_vectors_are_refused_and_not_measured_by_their_real_part(convert):
    with pytest.raises(ValueError, match="complex"):
        as_float64(convert(np.eye(3) * 1j))


def test_lists_and_data_frames_are_measured_as_the_arrays_they_make():
    rows = [[1, 2], [3, 5], [4, -1]]
    for X in (rows, tuple(map(tuple, rows)), pl.DataFrame(rows, orient="row")):
        assert anisotropy(X) == anisotropy(np.array(rows))
        assert estimate(X, "twonn") == estimate(np.array(rows), "twonn")


@pytest.mark.parametrize("X", [[["a", "b"], ["c", "d"]], [[1, None], [2, 3]], np.array([[object()] * 2] * 2)])
def test_what_are_no_numbers_is_refused_in_words(X):
    with pytest.raises(
        ValueError, match=r"expected an array of numbers, \(vectors, width\), not of (<U1|object)"
    ):
        measurable(X)
