"""Measures of anisotropy against closed forms and against decompositions they avoid."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmshape import anisotropy as module
from lmshape.anisotropy import anisotropy, average_cosine, norm_variance_share
from lmshape.numerics.vectors import Unmeasurable

BOTH = pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])


def gaussian(n, d, seed=0, scales=1.0):
    return np.random.default_rng(seed).standard_normal((n, d)) * scales


def by_svd(X, center=True):
    X = np.asarray(X, dtype=np.float64)
    squares = np.linalg.svd(X - X.mean(0) if center else X, compute_uv=False) ** 2
    return squares.max() / squares.sum()


def with_spectrum(squares, n, seed=0):
    """n vectors whose centred singular values squared are `squares`."""
    rng = np.random.default_rng(seed)
    left = rng.standard_normal((n, len(squares)))
    left = np.linalg.qr(left - left.mean(0))[0]
    right = np.linalg.qr(rng.standard_normal((len(squares), len(squares))))[0]
    return left * np.sqrt(squares) @ right


# --- largest share of variance -------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("block", [1000, 2**19])
@pytest.mark.parametrize("shape", [(800, 300), (300, 800), (50, 20), (20, 50), (3, 1), (2, 5)])
def test_anisotropy_is_that_of_the_svd_whichever_side_is_smaller(convert, center, shape, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    X = gaussian(*shape) + 1
    assert anisotropy(convert(X), center) == pytest.approx(by_svd(X, center), rel=1e-12)


def test_close_largest_eigenvalues_are_told_apart():
    for gap in (1e-3, 1e-6, 1e-9, 1e-12, 0.0):
        squares = np.concatenate([[1.0, 1.0 - gap], np.linspace(0.9, 0.1, 298)])
        found = anisotropy(with_spectrum(squares, 500))
        assert found == pytest.approx(1 / squares.sum(), rel=1e-9), gap


def test_a_flat_spectrum_that_lanczos_cannot_resolve_is_left_to_lapack(monkeypatch):
    X = gaussian(700, 400)
    monkeypatch.setattr(module, "RESTARTS", 1)
    monkeypatch.setattr(module, "TOLERANCE", 1e-14)
    calls = []
    exact = module.eigvalsh
    monkeypatch.setattr(module, "eigvalsh", lambda *a, **k: calls.append(1) or exact(*a, **k))
    assert anisotropy(X) == pytest.approx(by_svd(X), rel=1e-12)
    assert calls


@BOTH
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e308])
@pytest.mark.parametrize(
    "measure", [anisotropy, average_cosine, partial(average_cosine, center=True), norm_variance_share]
)
def test_vectors_whose_squares_leave_the_range_of_float64_are_measured_as_others(measure, scale, convert):
    X = gaussian(300, 6)
    X /= np.abs(X).max()
    assert measure(convert(X * scale)) == pytest.approx(measure(X), rel=1e-9)


def test_vectors_on_a_line_have_anisotropy_one_and_a_regular_simplex_the_least():
    assert anisotropy(np.outer(np.arange(5.0), [1, 2, 3])) == pytest.approx(1)
    assert anisotropy(np.eye(5)) == pytest.approx(1 / 4)
    assert anisotropy(np.eye(5), center=False) == pytest.approx(1 / 5)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(2, 40),
    d=st.integers(1, 40),
    seed=st.integers(0, 99),
    scale=st.sampled_from([1e-20, 1, 1e20]),
)
def test_anisotropy_is_a_share_that_shift_scale_and_rotation_leave_alone(n, d, seed, scale):
    X = gaussian(n, d, seed)
    rotation = np.linalg.qr(gaussian(d, d, seed + 1))[0]
    value = anisotropy(X)
    assert 1 / min(n, d) - 1e-9 <= value <= 1
    assert anisotropy(scale * (X @ rotation + 3)) == pytest.approx(value, rel=1e-9)


def test_anisotropy_of_one_seed_is_the_same_to_the_last_bit():
    X = gaussian(900, 400)
    assert anisotropy(X) == anisotropy(X.copy())


# --- average cosine ------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("center", [True, False])
def test_average_cosine_is_the_mean_over_all_pairs(convert, center):
    X = gaussian(60, 7) + 0.5
    Y = X - X.mean(0) if center else X
    unit = Y / np.linalg.norm(Y, axis=1, keepdims=True)
    pairs = (unit @ unit.T)[np.triu_indices(60, 1)]
    assert average_cosine(convert(X), center) == pytest.approx(pairs.mean(), rel=1e-11)


def test_average_cosine_of_opposite_and_of_orthogonal_vectors():
    assert average_cosine(np.array([[1.0, 0], [-2, 0]])) == pytest.approx(-1)
    assert average_cosine(np.eye(4)) == pytest.approx(0)
    assert average_cosine(np.array([[1.0, 0], [2, 0], [3, 0]])) == pytest.approx(1)


def test_a_zero_vector_has_no_direction():
    X = gaussian(5, 3)
    X[2] = 0
    with pytest.raises(Unmeasurable, match="1 of 5 vectors are zero"):
        average_cosine(X)


def test_a_vector_that_is_tiny_beside_others_has_a_direction_all_the_same():
    X = gaussian(5, 3)
    want = average_cosine(X)
    X[2] *= 1e-200
    assert average_cosine(X) == pytest.approx(want, rel=1e-12)


# --- massive activations -------------------------------------------------------------------------------


def test_one_percent_of_norms_carries_what_its_squared_distances_say():
    X = gaussian(1000, 8)
    X[:10] *= 100
    squares = ((X - X.mean(0)) ** 2).sum(1)
    assert norm_variance_share(X) == pytest.approx(squares[:10].sum() / squares.sum())
    assert norm_variance_share(X) > 0.98
    assert norm_variance_share(torch.from_numpy(X)) == pytest.approx(norm_variance_share(X))


def test_vectors_of_equal_length_share_variance_evenly():
    X = np.concatenate([np.eye(200), -np.eye(200)])
    assert norm_variance_share(X) == pytest.approx(0.01)


# --- traps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_trap_24_an_outlier_dimension_of_300_does_not_overflow_half_precision(dtype):
    X = gaussian(400, 30)
    X[:, 3] += 300
    half = torch.from_numpy(X).to(dtype)
    exact = half.to(torch.float64).numpy()  # what the half-precision numbers are
    assert anisotropy(half) == pytest.approx(by_svd(exact), rel=1e-9)
    assert 0.9 < average_cosine(half) <= 1
    assert np.isfinite(norm_variance_share(half))


@pytest.mark.parametrize("measure", [anisotropy, average_cosine, norm_variance_share])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_trap_24_a_value_that_is_not_finite_is_an_error(measure, bad):
    X = gaussian(10, 4).astype(np.float32)
    X[3, 2] = bad
    with pytest.raises(Unmeasurable, match="1 of 40 values are not finite"):
        measure(X)


@pytest.mark.parametrize("measure", [anisotropy, average_cosine, norm_variance_share])
def test_trap_25_equal_vectors_and_a_single_one_are_errors_with_a_reason(measure):
    with pytest.raises(Unmeasurable, match="all 6 vectors are equal"):
        measure(np.full((6, 3), 0.1, np.float32))
    with pytest.raises(Unmeasurable, match="two or more vectors"):
        measure(np.ones((1, 3)))


def test_numpy_vectors_are_measured_without_torch():
    program = (
        "import sys, numpy as np; from lmshape import anisotropy as a, intrinsic_dimension as i;"
        "X = np.random.default_rng(0).random((300, 4)); a.anisotropy(X); a.average_cosine(X); i.estimate(X);"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
