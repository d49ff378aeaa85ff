import numpy as np
import pytest

from lmshape.numerics import bootstrap

RNG = np.random.default_rng(0)


def test_the_error_is_the_deviation_over_the_root_of_the_number():
    values = RNG.random((400, 3)) * [1, 2, 0]
    expected = values.std(axis=0) / 20
    np.testing.assert_allclose(bootstrap.standard_error(values, 4000), expected, rtol=0.05)


def test_the_error_of_one_query_is_unknown():
    assert np.isnan(bootstrap.standard_error(np.ones((1, 2)), 100)).tolist() == [True, True]


def test_a_seed_repeats_and_another_does_not():
    values = RNG.random((50, 1))
    first, again, other = (bootstrap.standard_error(values, 200, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_resampled_means_are_means_of_samples_of_the_queries():
    means = bootstrap.resampled_means(np.array([0.0, 1.0]), 2000)
    assert set(means.tolist()) == {0.0, 0.5, 1.0}
    assert np.mean(means == 0.5) == pytest.approx(0.5, abs=0.05)


def test_pairing_removes_what_two_combinations_share():
    difficulty = RNG.random(200) * 10
    first, second = difficulty + 0.1 + RNG.normal(0, 0.1, 200), difficulty
    found = bootstrap.paired(first, second, 2000)
    assert found.value == pytest.approx(0.1, abs=0.03)
    assert 0.05 < found.low < found.value < found.high < 0.15
    assert found.probability == 1


def test_the_other_way_round_is_the_other_side():
    first, second = RNG.random(80), RNG.random(80)
    one, other = bootstrap.paired(first, second, 500), bootstrap.paired(second, first, 500)
    assert other.value == -one.value
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
    assert one.probability + other.probability == pytest.approx(1)


def test_a_combination_is_as_good_as_itself():
    values = RNG.random(30)
    assert bootstrap.paired(values, values, 100) == bootstrap.Difference(0, 0, 0, 0.5)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    covered = 0
    for trial in range(200):
        rng = np.random.default_rng(trial)
        found = bootstrap.paired(rng.normal(0.3, 1, 60), rng.normal(0, 1, 60), 400, trial)
        covered += found.low <= 0.3 <= found.high
    assert 180 <= covered <= 198


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((1,), (1,)), ((3, 2), (3, 2))])
def test_unlike_arrays_are_refused(shapes):
    with pytest.raises(ValueError, match="two arrays of one shape"):
        bootstrap.paired(*(np.zeros(shape) for shape in shapes), 10)
