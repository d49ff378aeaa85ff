"""Anisotropy against decompositions and against the package of the authors of "The shape of learning"."""

import runpy
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from lmshape.anisotropy import anisotropy


def batch(n=600, d=250, seed=0):
    """Vectors as hidden states are: a mean, a decaying spectrum, one outlier dimension."""
    X = np.random.default_rng(seed).standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1)) + 2
    X[:, 5] += 300
    return X.astype(np.float32)


@pytest.mark.parametrize("shape", [(600, 250), (250, 600), (100, 40)])
def test_anisotropy_equals_the_float64_svd_to_1e_8(shape):
    X = batch(*shape)
    centred = X.astype(np.float64) - X.astype(np.float64).mean(0)
    squares = np.linalg.svd(centred, compute_uv=False) ** 2
    assert anisotropy(X) == pytest.approx(squares[0] / squares.sum(), rel=1e-8)


def test_anisotropy_equals_llm_microscope():
    package = find_spec("llm_microscope").submodule_search_locations[0]
    theirs = runpy.run_path(f"{package}/functions.py")  # the package itself cannot be imported
    X = torch.from_numpy(batch()).to(torch.float64)
    assert anisotropy(X) == pytest.approx(theirs["calculate_anisotropy_torch"](X), rel=1e-8)
