"""Intrinsic dimension against scikit-dimension and against llm-microscope."""

import runpy
from importlib.util import find_spec

import numpy as np
import pytest
import skdim
import torch

from lmshape.intrinsic_dimension import estimate
from lmshape.study.estimator_settings import FACCO, LLM_MICROSCOPE


def clean(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))


@pytest.mark.parametrize("shape", [(600, 5), (800, 20), (700, 80)])
def test_all_three_estimators_equal_scikit_dimension(shape):
    X = clean(*shape)
    found = estimate(X, fraction=FACCO)
    peers = {"twonn": skdim.id.TwoNN(), "mada": skdim.id.MADA(), "mom": skdim.id.MOM()}
    assert found == pytest.approx({name: peer.fit(X).dimension_ for name, peer in peers.items()}, rel=1e-6)


@pytest.mark.parametrize("shape", [(500, 10), (503, 64)])
def test_twonn_of_the_smallest_fifth_equals_llm_microscope(shape):
    X = clean(*shape)
    package = find_spec("llm_microscope").submodule_search_locations[0]
    functions = runpy.run_path(f"{package}/functions.py")  # the package itself cannot be imported
    theirs = functions["intrinsic_dimension"](torch.from_numpy(X), "cpu")
    assert estimate(X, ("twonn",), LLM_MICROSCOPE)["twonn"] == pytest.approx(theirs, rel=1e-6)


def test_linear_fit_on_a_hundred_points_of_two_gaussians_equals_scikit_dimension():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-2, 1, (50, 2)), rng.normal(2, 0.5, (50, 2))])
    theirs = skdim.id.TwoNN(method="linear").fit(X).dimension_
    assert estimate(X, ("twonn",))["twonn"] == pytest.approx(theirs, rel=1e-6)
