"""Estimators of intrinsic dimension on manifolds whose dimension is known."""

import warnings

import numpy as np
import pytest
import torch
from scipy.spatial import KDTree

from lmshape.intrinsic_dimension import (
    COPIES,
    bears,
    estimate,
    extreme_ratios,
    follows_law,
    mada,
    mom,
    standard_error,
    twonn,
)
from lmshape.numerics.neighbors import nearest_distances
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


def independent(repetitions, n, dimension, rng):
    """Distances (n, COPIES) to neighbours, `repetitions` times, whose ratios follow TwoNN's law independently."""
    rates = [np.inf, *(dimension * np.arange(1, COPIES))]
    for _ in range(repetitions):
        yield np.exp(np.cumsum(rng.exponential(1, (n, COPIES)) / rates, axis=1))


@pytest.mark.parametrize("fraction", [FACCO, LLM_MICROSCOPE, 1.0])
def test_the_scatter_over_samples_of_independent_ratios_is_the_standard_error_or_somewhat_more(fraction):
    n, dimension = 1000, 8.0
    found = [twonn(graph, fraction) for graph in independent(400, n, dimension, np.random.default_rng(0))]
    assert 0.95 < np.std(found) / standard_error(dimension, n, fraction) < 1.25


@pytest.mark.parametrize("fraction", [FACCO, LLM_MICROSCOPE])
@pytest.mark.parametrize("dimension", [2, 5])
def test_the_scatter_over_samples_of_a_sphere_is_the_standard_error_or_up_to_a_quarter_more(
    dimension, fraction
):
    """Neighbours share distances, so their ratios are not independent."""
    rng = np.random.default_rng(0)
    found = [
        twonn(KDTree(X).query(X, 3)[0][:, 1:], fraction)
        for X in (sphere(600, dimension, rng) for _ in range(200))
    ]
    assert 0.95 < np.std(found) / standard_error(np.mean(found), 600, fraction) < 1.35


# --- near twins ----------------------------------------------------------------------------------------


def with_twins(n, share, rng, dimension=10, gap=1e-4, size=2):
    """Points of a flat manifold in 30 dimensions, `share` of which are in clusters of `size`, tiny steps apart."""
    clusters = round(n * share / size)
    rest = n - clusters * (size - 1)
    X = rng.random((rest, dimension)) @ np.linalg.qr(rng.standard_normal((30, dimension)))[0].T
    copies = np.tile(X[:clusters], (size - 1, 1))
    return np.concatenate([X, copies + gap * rng.standard_normal((len(copies), 30))])


def graphs(share, count, n=1200, **options):
    rng = np.random.default_rng(0)
    return [nearest_distances(with_twins(n, share, rng, **options), COPIES) for _ in range(count)]


@pytest.mark.parametrize("share", [0.08, 0.09, 0.10, 0.11, 0.12, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("gap", [1e-4, 1e-2])
def test_near_twins_are_counted_and_put_what_is_fitted_beside_them_in_doubt(share, gap):
    for distances in graphs(share, 3, gap=gap):
        assert extreme_ratios(distances) == pytest.approx(share, abs=0.01)
        assert extreme_ratios(distances) > bears(FACCO)
        assert not follows_law(distances, twonn(distances, FACCO), FACCO)
        if gap == 1e-4:  # then the vectors beside a pair are equally far from both
            assert not follows_law(distances, twonn(distances, LLM_MICROSCOPE), LLM_MICROSCOPE)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("size", [2, 3, 4, 8, 20])
def test_clusters_of_near_twins_are_counted_as_pairs_are(size, share):
    """Both nearest neighbours of such a vector lie in its cluster: r2 / r1 tells nothing of it."""
    (distances,) = graphs(share, 1, dimension=24, size=size)
    assert extreme_ratios(distances) == pytest.approx(share, abs=0.01)
    assert extreme_ratios(distances) > bears(FACCO)
    assert (extreme_ratios(distances) > bears(LLM_MICROSCOPE)) == (share > 0.2)


def test_three_tenths_in_threes_more_than_halve_the_value():
    (clean,), (moved,) = (graphs(share, 1, dimension=24, size=3) for share in (0, 0.3))
    assert extreme_ratios(clean) == 0 and twonn(moved) < 0.5 * twonn(clean)


def test_more_vectors_near_one_another_than_copies_have_a_dimension_of_their_own():
    rng = np.random.default_rng(0)
    X = (1000 * rng.standard_normal((10, 1, 5)) + rng.standard_normal((10, 60, 5))).reshape(-1, 5)
    distances = nearest_distances(X, COPIES)
    assert extreme_ratios(distances) == 0 and twonn(distances) == pytest.approx(5, rel=0.15)


@pytest.mark.parametrize("neighbors", [{}, {"mom": 4}, {"mom": 50}])
def test_a_doubt_does_not_hang_on_what_else_is_estimated(neighbors):
    X = with_twins(600, 0.12, np.random.default_rng(0), size=8)
    names = ["twonn", *neighbors]
    with pytest.warns(UserWarning, match=r"0\.120 of the ratios extreme"):
        estimate(X, names, neighbors=neighbors)


def test_up_to_a_doubt_near_twins_lower_the_value_by_an_eighth_and_soon_after_they_break_it():
    clean, bearable = (np.mean([twonn(g) for g in graphs(share, 8)]) for share in (0, bears(FACCO)))
    assert 0.83 < bearable / clean < 0.93
    assert max(twonn(g) for g in graphs(0.11, 3)) < 1 < 7 < clean


def test_at_smaller_fractions_a_tenth_of_near_twins_moves_the_value_but_does_not_break_it():
    """The third points beside a pair have two neighbours equally far: at 0.5 both effects cancel."""
    for fraction, low, high in ((LLM_MICROSCOPE, 1.15, 1.4), (0.5, 0.92, 1.02)):
        clean, moved = (np.array([twonn(g, fraction) for g in graphs(share, 12)]) for share in (0, 0.1))
        assert low < moved.mean() / clean.mean() < high and moved.std() < 0.15 * moved.mean()
    assert bears(LLM_MICROSCOPE) == 0.2 and bears(FACCO) == pytest.approx(0.05) and bears(0.5) == 0.25


@pytest.mark.parametrize("n", [100, 300])
def test_none_of_two_thousand_samples_that_follow_the_law_is_put_in_doubt(n):
    """A hundredth of a ratio is expected to be extreme in a sample, and a doubt takes six of a hundred."""
    extreme, refused = [], {FACCO: [], LLM_MICROSCOPE: []}
    for distances in independent(2000, n, 8.0, np.random.default_rng(0)):
        extreme.append(extreme_ratios(distances))
        for fraction, found in refused.items():
            found.append(not follows_law(distances, twonn(distances, fraction), fraction))
    assert max(extreme) < min(map(bears, refused)) and np.mean(np.array(extreme) > 0) < 0.02
    assert max(map(np.mean, refused.values())) < 0.01


@pytest.mark.parametrize(
    "manifold, dimension", [(hypercube, 2), (hypercube, 10), (sphere, 8), (swiss_roll, 2)]
)
def test_clean_manifolds_are_never_in_doubt(manifold, dimension):
    rng = np.random.default_rng(0)
    for X in (manifold(500, dimension, rng) for _ in range(50)):
        distances = KDTree(X).query(X, COPIES + 1)[0][:, 1:]
        assert extreme_ratios(distances) < 0.01


def test_a_doubt_is_a_warning_to_those_who_ask_for_one_estimate():
    X = with_twins(1200, 0.11, np.random.default_rng(0))
    with pytest.warns(
        UserWarning, match=r"twonn 0.\d+, 0.110 of the ratios extreme: near twins: .* smallest 0.9 .* 0.05"
    ):
        estimate(X, "twonn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(X, "twonn", "llm-microscope")
        estimate(X, "mada")
        estimate(X[:1000], "twonn", neighbors={})
        estimate(np.random.default_rng(0).random((3, 2)), "twonn")


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
