"""Every measure gives for a tensor, wherever it lies, what it gives for the same NumPy array."""

import numpy as np
import pytest
import torch
from simulated_device import DEVICE, REAL, Simulated, remote

from lmshape import anisotropy as anisotropy_module
from lmshape.anisotropy import anisotropy, average_cosine, norm_variance_share
from lmshape.intrinsic_dimension import estimate
from lmshape.numerics import neighbors
from lmshape.numerics.neighbors import distinct, nearest_distances
from lmshape.numerics.vectors import Unmeasurable, as_float64


@pytest.fixture(params=[*REAL, "simulated"])
def place(request):
    """Brings an array to a device."""
    if request.param == "simulated":
        with Simulated():
            yield remote
    else:
        yield lambda array: torch.as_tensor(array, device=request.param)


def batch(n=300, d=24):
    """Vectors as hidden states are: a mean, one outlier dimension, equal and nearly equal rows, in float32."""
    X = np.random.default_rng(0).standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1)) + 2
    X[:, 5] += 300
    X[20:30] = X[:10]
    X[30:40] = X[:10] + 1e-4
    return X.astype(np.float32)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shape", [(300, 24), (24, 300)])
@pytest.mark.parametrize("measure", [anisotropy, average_cosine])
def test_anisotropy(place, measure, shape, center, monkeypatch):
    monkeypatch.setattr(anisotropy_module, "BLOCK", 1000)  # several blocks
    X = batch(*shape) if shape[0] > shape[1] else batch().T.copy()
    assert measure(place(X), center) == pytest.approx(measure(X, center), rel=1e-10)


def test_variance_share_of_the_largest_norms(place):
    assert norm_variance_share(place(batch())) == pytest.approx(norm_variance_share(batch()), rel=1e-10)


def test_distinct_rows(place):
    rows, dropped = distinct(place(batch()))
    assert dropped == 10 and rows.device == place(batch()).device
    assert (np.asarray(rows.to("cpu")) == distinct(batch())[0]).all()


@pytest.fixture
def tf32():
    """A process in which someone has allowed products of float32 in lower precision."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize("block", [5000, 2**20])
def test_trap_23_distances_of_neighbours_are_in_double_whatever_is_said_of_tf32(
    place, block, tf32, monkeypatch
):
    monkeypatch.setattr(neighbors, "BLOCK", block)
    X = as_float64(distinct(batch())[0])
    np.testing.assert_allclose(nearest_distances(place(X), 7), nearest_distances(X, 7), rtol=1e-9)


def test_intrinsic_dimension(place):
    assert estimate(place(batch())) == pytest.approx(estimate(batch()), rel=1e-7)


@pytest.mark.parametrize("measure", [anisotropy, average_cosine, norm_variance_share, estimate])
def test_trap_24_half_precision_is_measured_in_double_and_what_is_not_finite_is_an_error(place, measure):
    half = torch.from_numpy(batch()).to(torch.bfloat16)
    values = half.to(torch.float64).numpy()  # what the half-precision numbers are
    assert measure(place(half)) == pytest.approx(measure(values), rel=1e-7)
    half[3, 2] = np.nan
    with pytest.raises(Unmeasurable, match="1 of 7200 values are not finite"):
        measure(place(half))
    with pytest.raises(Unmeasurable, match="all 300 vectors are equal"):
        measure(place(np.ones((300, 4), np.float32)))


@pytest.mark.parametrize("measure", [anisotropy, average_cosine, norm_variance_share, estimate])
def test_a_tensor_that_requires_a_gradient_is_measured(place, measure):
    X = place(batch())
    assert measure(X.clone().requires_grad_()) == pytest.approx(measure(X), rel=1e-12)


def test_the_simulated_device_does_refuse_to_be_mixed_with_the_host():
    X = remote(batch())
    with pytest.raises(RuntimeError, match="a tensor of the host"):
        X @ torch.from_numpy(batch()).T
    with pytest.raises(TypeError, match="brought to the host"):
        np.asarray(X)
    with Simulated():
        assert X.device == torch.arange(3, device=DEVICE).device == (X * 2)[:1].device == DEVICE
    assert X.to("cpu").device.type == "cpu"
