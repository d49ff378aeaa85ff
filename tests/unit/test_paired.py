"""What is promised of 100 repetitions, by simulation: of few or many batches, whose places share errors or do not."""

import numpy as np
import pytest

from lmshape.numerics import paired

RNG = np.random.default_rng(0)


def batches_of(profile, batches, together, repetitions, noise=1.0):
    """Values (repetitions, places, batches) of a profile with noise, of which all places share a part `together`."""
    own = RNG.standard_normal((repetitions, len(profile), batches))
    shared = RNG.standard_normal((repetitions, 1, batches))
    errors = np.sqrt(1 - together) * own + np.sqrt(together) * shared
    return np.asarray(profile, float)[:, None] + np.broadcast_to(noise, len(profile))[:, None] * errors


few_or_many = pytest.mark.parametrize("batches", [2, 3, 4, 16])
apart_or_together = pytest.mark.parametrize("together", [0, 0.9])


@few_or_many
@apart_or_together
def test_an_interval_holds_a_contrast_in_95_of_100_repetitions(batches, together):
    values = batches_of([0, 1, 1, 0], batches, together, 4000, noise=[1, 0.2, 1, 0.2])
    low, high = paired.interval(values[:, 1:3].mean(axis=1) - values[:, [0, 3]].mean(axis=1), 0.05)
    assert np.mean((low <= 1) & (high >= 1)) == pytest.approx(0.95, abs=0.01)


@few_or_many
def test_of_what_scatters_askew_an_interval_holds_92_of_100_and_of_differences_of_such_95(batches):
    values = np.exp(0.5 * RNG.standard_normal((2, 8000, batches)))
    for sample, truth, share in ((values[0], np.exp(0.125), 0.92), (values[0] - values[1], 0, 0.955)):
        low, high = paired.interval(sample, 0.05)
        assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(share, abs=0.025)


@few_or_many
@apart_or_together
@pytest.mark.parametrize("places", [2, 7, 31])
def test_the_true_peak_may_be_highest_in_95_to_97_of_100_repetitions_where_it_is_hardest(
    places, batches, together
):
    """Where all places are alike: one of them is the peak by a hair."""
    values = batches_of(np.zeros(places), batches, together, min(2000, 10**6 // places**2))
    assert 0.935 < np.mean(paired.may_be_highest(values, 0.05)[:, 0]) < 0.98


def test_places_that_are_surely_lower_are_left_out_and_the_observed_peak_never():
    values = batches_of([0, 0.5, 4, 4.2, 0.5, 0], 4, 0.5, 500, noise=0.5)
    possible = paired.may_be_highest(values, 0.05)
    observed = values.mean(axis=-1).argmax(axis=-1)
    assert possible[np.arange(500), observed].all() and possible[:, 3].mean() > 0.95
    assert possible.mean(axis=0)[[0, 1, 4, 5]].max() < 0.1
    assert paired.may_be_highest(values[0, :1], 0.05).tolist() == [True]


PEAKLESS = {  # steps -> the mean at each; what noise there is has a deviation of 1 in a batch
    "constant": np.zeros,
    "rises and stays": lambda steps: np.where(np.arange(steps) < 1, -50, 0),
    "rises for long and stays": lambda steps: np.where(
        np.arange(steps) < steps // 2, np.arange(steps) - 50, 0
    ),
    "stays and falls": lambda steps: np.where(np.arange(steps) < steps - 1, 0, -50),
    "rises": lambda steps: 3 * np.arange(steps),
    "falls": lambda steps: -3 * np.arange(steps),
    "falls and rises": lambda steps: np.abs(np.arange(steps) - steps // 2) * 3,
}


@few_or_many
@apart_or_together
@pytest.mark.parametrize("kind", PEAKLESS)
def test_the_chance_of_a_peak_is_below_5_percent_in_at_most_5_of_100_curves_without_one(
    kind, batches, together
):
    for steps in (3, 6, 20):
        values = batches_of(PEAKLESS[kind](steps), batches, together, 2000)
        for level in (0.05, 0.2):
            assert np.mean(paired.chance_of_peak(values) < level) < level + 0.015


@few_or_many
def test_the_chance_is_as_small_as_it_can_be_where_one_phase_is_sure_and_the_other_is_none(batches):
    """Of three steps, at 5 in 100 repetitions: were it rarer, true peaks would be missed for nothing."""
    values = batches_of([-50, 0, 0], batches, 0.5, 4000)
    assert np.mean(paired.chance_of_peak(values) < 0.05) == pytest.approx(0.05, abs=0.01)


def test_a_true_rise_and_fall_is_found():
    values = batches_of([0, 2, 5, 8, 6, 4], 4, 0.5, 1000)
    assert np.mean(paired.chance_of_peak(values) < 0.05) > 0.9
    same = np.repeat(values[:, :1], 6, axis=1)  # every step serves the weights of the first
    assert (paired.chance_of_peak(same) == 1).all()
