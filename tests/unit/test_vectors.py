"""What counts as a set of vectors."""

import numpy as np
import pytest
import torch

from lmshape.numerics.vectors import Unmeasurable, as_float64

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
