"""Estimators of intrinsic dimension on manifolds whose dimension is known."""

import numpy as np
import pytest
import torch

from lmshape.intrinsic_dimension import estimate, mada, mom, standard_error, twonn
from lmshape.numerics.vectors import Unmeasurable
from lmshape.study.estimator_settings import FACCO, FRACTIONS, LLM_MICROSCOPE

# --- manifolds of known dimension ----------------------------------------------------------------------


def hypercube(n, dimension, rng):
    return rng.random((n, dimension))


def sphere(n, dimension, rng):
    X = rng.standard_normal((n, dimension + 1))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def swiss_roll(n, dimension, rng):
    angle = 1.5 * np.pi * (1 + 2 * rng.random(n))
    return np.stack([angle * np.cos(angle), 21 * rng.random(n), angle * np.sin(angle)], axis=1)


def affine_in_noise(n, dimension, rng):
    """A subspace in 50 dimensions, with noise of a hundredth of the spacing of neighbours."""
    flat = rng.random((n, dimension)) @ np.linalg.qr(rng.standard_normal((50, dimension)))[0].T
    return flat + 3 + 1e-4 * rng.standard_normal((n, 50))


# Bounds are relative. Moments and MADA average over neighbourhoods of 100 and 20 points, which at the faces of
# a cube are cut: both fall below the truth as the dimension grows. On a sphere there is no boundary.
@pytest.mark.parametrize(
    "manifold, dimension, bounds",
    [
        (hypercube, 2, {"twonn": 0.05, "mada": 0.15, "mom": 0.10}),
        (hypercube, 5, {"twonn": 0.08, "mada": 0.12, "mom": 0.15}),
        (hypercube, 10, {"twonn": 0.20, "mada": 0.20, "mom": 0.30}),
        (sphere, 3, {"twonn": 0.05, "mada": 0.15, "mom": 0.10}),
        (sphere, 8, {"twonn": 0.10, "mada": 0.10, "mom": 0.15}),
        (swiss_roll, 2, {"twonn": 0.05, "mada": 0.15, "mom": 0.10}),
        (affine_in_noise, 3, {"twonn": 0.06, "mada": 0.15, "mom": 0.10}),
    ],
)
def test_dimension_of_a_manifold_is_found_within_bounds(manifold, dimension, bounds):
    found = estimate(manifold(3000, dimension, np.random.default_rng(0)))
    assert set(found) == set(bounds)
    for name, bound in bounds.items():
        assert found[name] == pytest.approx(dimension, rel=bound), name


def test_ratios_that_follow_the_pareto_law_exactly_give_their_dimension():
    n, dimension = 1000, 7.0
    shares = np.arange(1, n + 1) / n
    ratios = np.concatenate([(1 - shares[:-1]) ** (-1 / dimension), [1e6]])
    distances = np.stack([np.ones(n), np.random.default_rng(0).permutation(ratios)], axis=1)
    for fraction in (FACCO, LLM_MICROSCOPE, 1.0):
        assert twonn(distances, fraction) == pytest.approx(dimension, rel=1e-12)


def test_radii_that_grow_as_a_power_give_mada_its_exponent_and_moments_nearly_so():
    dimension, k = 5, 100
    radii = np.tile(np.arange(1, k + 1) ** (1 / dimension), (3, 1))
    assert mada(radii) == pytest.approx(dimension)
    assert mom(radii) == pytest.approx(dimension, rel=0.05)  # the mean of k radii is not quite the integral


# --- one graph, several estimators ---------------------------------------------------------------------


def test_estimators_are_the_same_alone_and_together_and_for_torch():
    X = np.random.default_rng(0).standard_normal((400, 6))
    together = estimate(X)
    for name, value in together.items():
        assert estimate(X, [name])[name] == pytest.approx(value, rel=1e-12)
    assert estimate(torch.from_numpy(X)) == pytest.approx(together, rel=1e-12)


def test_neighbourhood_sizes_are_the_callers():
    X = np.random.default_rng(0).random((300, 3))
    few = estimate(X, ("mada", "mom"), neighbors={"mada": 10, "mom": 50})
    assert few != estimate(X, ("mada", "mom"))
    assert few["mom"] == pytest.approx(3, rel=0.15)


def test_shift_scale_and_order_leave_the_dimension_alone():
    X = np.random.default_rng(0).standard_normal((300, 6))
    want = estimate(X)
    assert estimate(1000 * X[::-1] + 50) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e308])
def test_vectors_whose_squares_leave_the_range_of_float64_have_their_dimension(scale):
    X = np.random.default_rng(0).random((300, 6))
    assert estimate(X * scale) == pytest.approx(estimate(X), rel=1e-6)


@pytest.mark.parametrize("fraction", [0, -1, 1.5])
def test_a_fraction_beyond_its_range_is_an_error(fraction):
    with pytest.raises(ValueError, match="share of the ratios"):
        estimate(np.random.default_rng(0).random((50, 3)), ("twonn",), fraction)


def test_an_unknown_estimator_is_an_error_that_names_the_known():
    with pytest.raises(ValueError, match="'gride'.*twonn, mada, mom"):
        estimate(np.eye(5), ["gride"])
    with pytest.raises(ValueError, match="'gride'.*twonn, mada, mom"):
        estimate(np.eye(5), neighbors={"gride": 5})


def test_no_estimator_is_an_error_that_names_the_known():
    with pytest.raises(ValueError, match="no estimator asked for; there are twonn, mada, mom"):
        estimate(np.eye(5), ())


def test_one_estimator_can_be_named_without_a_list():
    X = np.random.default_rng(0).random((60, 3))
    assert estimate(X, "twonn") == estimate(X, ["twonn"])


def test_fractions_go_by_the_names_that_studies_give_them():
    X = np.random.default_rng(0).random((60, 3))
    for name, fraction in FRACTIONS.items():
        assert estimate(X, "twonn", name) == estimate(X, "twonn", fraction)
        assert standard_error(5, 100, name) == standard_error(5, 100, fraction)
    with pytest.raises(ValueError, match="share of the ratios.*or facco, llm-microscope, not faco"):
        estimate(X, "twonn", "faco")


@pytest.mark.parametrize(
    "neighbors, words",
    [
        ({"mada": 20.5}, "mada looks at an even number of neighbours, six or more, not 20.5"),
        ({"mada": 4}, "mada .* not 4"),
        ({"mada": 7}, "mada .* not 7"),
        ({"mom": 3}, "mom looks at four neighbours or more, not 3"),
        ({"twonn": 3}, "twonn looks at two neighbours, not 3"),
    ],
)
def test_neighbours_from_which_an_estimator_has_no_answer_are_an_error_that_says_what_is_allowed(
    neighbors, words
):
    with pytest.raises(ValueError, match=words):
        estimate(np.random.default_rng(0).random((60, 3)), neighbors=neighbors)


@pytest.mark.parametrize("estimator, fewest", [("mada", 6), ("mom", 4)])
def test_as_few_neighbours_as_are_allowed_scatter_around_a_mean(estimator, fewest):
    """With two, estimates of a 10-d Gaussian scatter from tens to hundreds."""
    samples = np.random.default_rng(0).standard_normal((8, 500, 10))
    found = [estimate(X, estimator, neighbors={estimator: fewest})[estimator] for X in samples]
    assert np.std(found) < 0.1 * np.mean(found)


# --- standard error ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [FACCO, LLM_MICROSCOPE, 1.0])
def test_the_scatter_over_samples_of_independent_ratios_is_the_standard_error_or_somewhat_more(fraction):
    rng = np.random.default_rng(0)
    n, dimension = 1000, 8.0
    found = [
        twonn(np.stack([np.ones(n), np.exp(rng.exponential(1 / dimension, n))], axis=1), fraction)
        for _ in range(400)
    ]
    assert 0.95 < np.std(found) / standard_error(dimension, n, fraction) < 1.25


# --- traps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("dimension", [10, 64])
@pytest.mark.parametrize("share", [0, 0.02, 0.10, 0.30])
def test_trap_22_duplicates_leave_the_estimate_at_that_of_the_set_without_them(convert, dimension, share):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, dimension)).astype(np.float32) + 5
    repeated = X[rng.choice(1000, int(share * 1000), replace=False)]
    shuffled = rng.permutation(np.concatenate([X, repeated]))
    assert estimate(convert(shuffled)) == pytest.approx(estimate(convert(X)), rel=1e-9)


def test_trap_24_an_outlier_dimension_in_half_precision_is_harmless():
    X = torch.from_numpy(np.random.default_rng(0).standard_normal((400, 8))).to(torch.float16)
    shifted = X.clone()
    shifted = torch.cat([shifted, torch.full((400, 1), 300, dtype=torch.float16)], dim=1)
    assert estimate(shifted) == pytest.approx(estimate(X), rel=1e-6)


def test_trap_25_equal_vectors_or_too_few_for_the_neighbours_are_errors_with_a_reason():
    rng = np.random.default_rng(0)
    with pytest.raises(Unmeasurable, match="all 500 vectors are equal"):
        estimate(np.ones((500, 4)))
    with pytest.raises(Unmeasurable, match="mom: 60 different vectors have 59 neighbours each, not the 100"):
        estimate(rng.random((60, 4)))
    with pytest.raises(Unmeasurable, match="leave mom out, or lower its"):  # 300 rows, of which 60 differ
        estimate(rng.random((60, 4))[rng.integers(0, 60, 300)])
    assert set(estimate(rng.random((60, 4)), ("twonn", "mada"))) == {"twonn", "mada"}


def test_trap_25_points_of_a_lattice_have_equal_distances_and_no_dimension():
    lattice = np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0)), axis=-1).reshape(-1, 2)
    with pytest.raises(Unmeasurable, match="twonn: .*equal distances"):
        estimate(lattice, ("twonn",))
    with pytest.raises(Unmeasurable, match="mada: .*equal distances"):
        estimate(np.eye(30), ("mada",))  # every pair equally far


def test_neighbours_of_one_estimator_can_be_set_alone():
    X = np.random.default_rng(0).standard_normal((300, 3))
    changed, usual = estimate(X, neighbors={"mada": 10}), estimate(X)
    assert changed["mada"] != usual["mada"]
    assert changed["twonn"] == usual["twonn"] and changed["mom"] == usual["mom"]
