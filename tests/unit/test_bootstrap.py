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


# --- what is promised of 100 sets of queries ------------------------------------------------------------


def gains(rng, shape):
    """nDCG@10 of one relevant document at a rank from 1 to 10, or none (three times of ten)."""
    return (rng.random(shape) < 0.7) / np.log2(rng.integers(2, 12, shape))


def both_ways(differing):
    """Differences of which this share is not zero, of either sign."""
    return lambda rng, shape: (rng.random(shape) < differing) * (gains(rng, shape) - gains(rng, shape))


def one_way(differing):
    """Differences of which this share is not zero, and then positive: what is not seen is all on one side."""
    return lambda rng, shape: (rng.random(shape) < differing) * gains(rng, shape)


def dense(rng, shape):
    return rng.random(shape) - rng.random(shape)


def repeated(draw, queries, sets=2000):
    """For many sets of queries: whether the range holds the truth, how often it is exceeded, and how many differ."""
    rng = np.random.default_rng(0)
    truth, values = draw(rng, 10**6).mean(), draw(rng, (queries, sets))
    differences = bootstrap.resampled_differences(np.round(values, 12), 400)
    low, high = np.quantile(differences, [0.025, 0.975], axis=0)
    return (
        (low <= truth) & (truth <= high),
        (differences > truth).mean(axis=0),
        np.count_nonzero(values, axis=0),
    )


HELD = [(dense, 30), (both_ways(0.5), 30), (both_ways(0.5), 100), (one_way(0.5), 100), (one_way(0.15), 400)]


@pytest.mark.parametrize(("draw", "queries"), HELD)
def test_the_range_holds_the_difference_for_95_of_100_sets_of_queries(draw, queries):
    held, probability, _ = repeated(draw, queries)
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)
    assert np.mean((probability < 0.025) | (probability > 0.975)) == pytest.approx(0.05, abs=0.025)


@pytest.mark.parametrize("queries", [30, 100, 400])
@pytest.mark.parametrize("draw", [gains, one_way(0.4)])
def test_the_mean_over_all_queries_is_within_one_standard_error_in_two_of_three_sets(draw, queries):
    rng = np.random.default_rng(0)
    truth, values = draw(rng, 10**6).mean(), draw(rng, (queries, 2000))
    error = bootstrap.standard_error(values, 400)
    assert np.mean(np.abs(values.mean(axis=0) - truth) < error) == pytest.approx(0.67, abs=0.03)


@pytest.mark.parametrize("draw", [both_ways(0.1), one_way(0.15)])
@pytest.mark.parametrize("queries", [30, 100])
def test_where_few_queries_differ_the_range_holds_the_difference_at_least_as_often(draw, queries):
    held, _, differing = repeated(draw, queries)
    assert np.mean(held[differing > 1]) > 0.94


def test_bounds_are_those_of_resamples_and_an_unresampled_difference_lies_between():
    first, second = RNG.random(40), RNG.random(40)
    found = bootstrap.paired(first, second, 300, seed=3)
    differences = bootstrap.resampled_differences(first - second, 300, seed=3)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(differences, [0.025, 0.975])))
    assert found.probability == np.mean(differences > 0)


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((1,), (1,)), ((3, 2), (3, 2))])
def test_unlike_arrays_are_refused(shapes):
    with pytest.raises(ValueError, match="two arrays of one shape"):
        bootstrap.paired(*(np.zeros(shape) for shape in shapes), 10)
