"""Shapes as numbers: profiles with and without a bell, values that rise and fall and values that only seem to."""

import numpy as np
import polars as pl
import pytest
from synthetic_tables import all_tables

from lmshape.summaries import bell, bells, rise_and_fall, training_shapes

# --- bells ---------------------------------------------------------------------------------------------


def test_a_bell_is_the_middle_third_above_the_ends():
    found = bell([0.1, 0.1, 0.8, 0.9, 0.7, 0.1, 0.1], [0.01] * 7)
    assert found.middle == pytest.approx(0.8) and found.ends == pytest.approx(0.1)
    assert found.contrast == pytest.approx(0.7)
    assert found.peak_depth == pytest.approx(0.5)
    assert found.stderr == pytest.approx(0.02)


def test_a_flat_profile_has_no_contrast_and_a_bowl_a_negative_one():
    assert bell([0.3] * 13).contrast == pytest.approx(0)
    assert bell([1, 0.1, 0.1, 1]).contrast == pytest.approx(-0.9)
    assert bell([0.3] * 13).stderr is None


def test_a_slope_is_no_bell():
    found = bell(np.linspace(0, 1, 31))
    assert abs(found.contrast) < 0.01 and found.peak_depth == 1


def test_stderr_bounds_the_scatter_of_the_contrast_even_if_errors_of_layers_move_together():
    rng = np.random.default_rng(0)
    profile, sign = np.array([0.1, 0.1, 0.8, 0.9, 0.7, 0.1, 0.1]), np.array([-1, -1, 1, 1, 1, -1, -1])
    independent = [bell(profile + 0.02 * rng.standard_normal(7)).contrast for _ in range(300)]
    together = [bell(profile + 0.02 * sign * rng.standard_normal()).contrast for _ in range(300)]
    bound = bell(profile, [0.02] * 7).stderr
    assert np.std(independent) < bound
    assert np.std(together) == pytest.approx(bound, rel=0.15)


def test_the_peak_of_a_bell_is_known_only_within_a_range_where_layers_are_close():
    profile = [0.1, 0.1, 0.5, 0.9, 0.89, 0.5, 0.1, 0.1, 0.1]
    found = bell(profile, [0.02] * 9)
    assert (found.peak_depth, found.peak_low, found.peak_high) == (3 / 8, 3 / 8, 4 / 8)
    sharp = bell(profile, [1e-4] * 9)
    assert sharp.peak_low == sharp.peak_depth == sharp.peak_high == 3 / 8
    assert bell(profile).peak_low is bell(profile).peak_high is None


def test_the_range_of_a_peak_holds_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    profile, errors = np.array([0.1, 0.2, 0.5, 0.56, 0.5, 0.2, 0.1]), np.full(7, 0.03)
    found = [bell(profile + errors * rng.standard_normal(7), errors) for _ in range(300)]
    assert np.mean([row.peak_low <= 0.5 <= row.peak_high for row in found]) > 0.95
    assert np.mean([row.peak_depth != 0.5 for row in found]) > 0.1, "the noise does move the peak"


def test_the_observed_peak_is_in_its_range_whatever_the_errors_of_other_layers():
    """An exact layer is the highest, beside many nearly as high that noise lifts above it in most repetitions."""
    found = bell([0.1, 0.76, *[0.75] * 8, 0.1], [0.001, 0.001, *[0.2] * 8, 0.001])
    assert (found.peak_low, found.peak_depth, found.peak_high) == (0.1, 0.1, 0.9)
    steps = rise_and_fall(range(11), [0.1, 0.76, *[0.75] * 8, 0.1], [0.001, 0.001, *[0.2] * 8, 0.001])
    assert (steps.peak_low, steps.peak_step, steps.peak_high) == (1, 1, 9)


@pytest.mark.parametrize(
    "signs", [[1, 1, 1, 1, 1, 1, 1], [1, -1, 1, -1, 1, -1, 1]], ids=["together", "against"]
)
def test_the_range_of_a_peak_holds_it_when_errors_of_layers_move_together_or_against_each_other(signs):
    rng = np.random.default_rng(0)
    profile = np.array([0.1, 0.2, 0.5, 0.52, 0.5, 0.2, 0.1])
    errors = np.array([0.1, 0.1, 0.01, 0.05, 0.05, 0.1, 0.1])
    found = [bell(profile + errors * signs * rng.standard_normal(), errors) for _ in range(300)]
    assert np.mean([row.peak_low <= 0.5 <= row.peak_high for row in found]) >= 0.95
    assert np.mean([row.peak_depth != 0.5 for row in found]) > 0.1


def test_the_range_of_a_peak_passes_over_missing_layers():
    found = bell([0.1, np.nan, 0.8, np.nan, 0.9, 0.1, 0.1], [0.01, np.nan, 0.01, np.nan, 0.01, 0.01, 0.01])
    assert found.peak_depth == found.peak_low == found.peak_high == pytest.approx(4 / 6)


def test_missing_layers_are_passed_over_and_a_missing_third_is_an_error():
    assert bell([0.1, np.nan, 0.8, np.nan, 0.8, 0.1, 0.1]).contrast == pytest.approx(0.7)
    with pytest.raises(ValueError, match="middle third"):
        bell([0.1, 0.1, np.nan, np.nan, np.nan, 0.1, 0.1])
    with pytest.raises(ValueError, match="middle third"):
        bell([0.1])


# --- rise and fall -------------------------------------------------------------------------------------

STEPS = [0, 1, 4, 16, 64, 256]


def test_rise_and_fall_are_measured_from_the_peak():
    found = rise_and_fall(STEPS, [5, 6, 9, 12, 10, 8], [0.1] * 6)
    assert found.peak_step == found.peak_low == found.peak_high == 16
    assert (found.rise, found.fall) == (7, 4)
    assert found.rise_stderr == found.fall_stderr == pytest.approx(0.1 * 2**0.5)
    assert found.chance == 0


def test_a_value_that_only_rises_does_not_fall():
    found = rise_and_fall(STEPS, [1, 2, 3, 4, 5, 6], [0.1] * 6)
    assert found.peak_step == 256 and found.fall == 0 and found.fall_stderr == 0
    assert found.chance == 1


def test_noise_alone_is_recognised_and_a_true_rise_and_fall_is_not_taken_for_it():
    rng = np.random.default_rng(0)
    errors = np.full(6, 0.3)
    flat = [rise_and_fall(STEPS, 8 + errors * rng.standard_normal(6), errors).chance for _ in range(200)]
    assert np.mean(np.array(flat) < 0.05) == pytest.approx(0.05, abs=0.04)  # as often as it should
    true = [5, 6, 7, 9, 8, 7] + errors * rng.standard_normal((50, 6))
    assert np.mean([rise_and_fall(STEPS, values, errors).chance < 0.05 for values in true]) > 0.9


def test_a_peak_between_equal_steps_is_known_only_to_lie_in_a_range():
    found = rise_and_fall(STEPS, [1, 5, 9, 9.01, 5, 1], [0.2] * 6)
    assert (found.peak_low, found.peak_high) == (4, 16)


def test_without_standard_errors_there_is_no_uncertainty_to_tell():
    found = rise_and_fall(STEPS, [5, 6, 9, 12, 10, 8])
    assert found.peak_step == 16 and found.rise == 7
    assert found.chance is found.peak_low is found.peak_high is found.rise_stderr is found.fall_stderr is None


def test_two_steps_are_too_few():
    with pytest.raises(ValueError, match="2 training steps"):
        rise_and_fall([0, 1], [1, 2])


# --- tables --------------------------------------------------------------------------------------------

TABLES = all_tables()


def test_bells_of_a_table_are_those_of_its_profiles():
    table = TABLES["anisotropy"]
    found = bells(table)
    keys = {"suite": "smollm2", "size": "135m", "positions": "all"}
    profile = table.filter(measure="svd", centered=True, **keys).sort("layer")
    row = found.filter(**keys)
    assert row.height == 1
    want = bell(profile["mean"].to_numpy(), profile["std"].to_numpy() / 2)  # of 4 batches
    assert row["contrast"].item() == pytest.approx(want.contrast) and want.contrast > 0.3
    assert row["stderr"].item() == pytest.approx(want.stderr)
    assert row.select("peak_low", "peak_depth", "peak_high").row(0) == (
        want.peak_low, want.peak_depth, want.peak_high
    )  # fmt: skip
    assert 0 < want.peak_low < want.peak_high < 1
    assert found.filter(suite="minilm")["contrast"].max() < 0.1
    assert found.height == table.unique(["suite", "size", "stack", "positions", "checkpoint"]).height
    assert found["reason"].null_count() == found.height


def test_training_shapes_average_over_layers_and_leave_out_models_without_steps():
    table = TABLES["intrinsic_dimension"]
    found = training_shapes(table)
    assert set(found["suite"]) == {"neox-small", "bert-small"}
    keys = {"suite": "neox-small", "size": "64x3", "positions": "all", "estimator": "mada"}
    steps = table.filter(**keys).group_by("step").agg(pl.mean("mean")).sort("step")
    row = found.filter(**keys).row(0, named=True)
    want = rise_and_fall(steps["step"].to_list(), steps["mean"].to_list(), [0.2] * steps.height)
    assert row["peak_step"] == want.peak_step and row["fraction"] is None
    assert (row["rise"], row["fall"], row["chance"]) == pytest.approx((want.rise, want.fall, want.chance))


def constant_layers(missing=()):
    """Four layers that never change over six steps, 10, 10, 10 and 20; the (layer, step) `missing` have no value."""
    table = TABLES["intrinsic_dimension"].filter(
        pl.col("step") < 1024, suite="neox-small", size="64x3", positions="all", estimator="mada"
    )
    lost = [(pl.col("layer") == layer) & (pl.col("step") == step) for layer, step in missing] or [
        pl.lit(False)
    ]
    value = pl.when(pl.col("layer") == 3).then(20.0).otherwise(10.0)
    return table.with_columns(mean=pl.when(~pl.any_horizontal(lost)).then(value))


def test_layers_missing_at_some_steps_make_no_rise_and_fall():
    whole = training_shapes(constant_layers()).row(0, named=True)
    assert (whole["rise"], whole["fall"], whole["chance"], whole["layers"]) == (0, 0, 1, 4)
    found = training_shapes(constant_layers([(3, 0), (3, 256)])).row(0, named=True)
    assert (found["rise"], found["fall"], found["chance"], found["layers"]) == (0, 0, 1, 3)


def test_a_step_at_which_every_layer_is_missing_is_left_out():
    found = training_shapes(constant_layers([(layer, 4) for layer in range(4)])).row(0, named=True)
    assert (found["rise"], found["layers"], found["reason"]) == (0, 4, None)


@pytest.mark.parametrize(
    "missing", [[(0, 0), (1, 1), (2, 4), (3, 16)], [(i, s) for i in range(4) for s in STEPS]]
)
def test_no_layer_with_a_value_at_every_step_is_a_null_with_a_reason(missing):
    found = training_shapes(constant_layers(missing)).row(0, named=True)
    assert found["rise"] is None and found["layers"] == 0
    assert found["reason"] == "no layer has a value at every training step"


def test_trap_12_steps_that_repeat_the_weights_of_another_are_counted_beside_the_shape():
    table = TABLES["intrinsic_dimension"]
    assert training_shapes(table)["repeated_steps"].unique().to_list() == [0]
    copies = (pl.col("suite") == "bert-small") & pl.col("step").is_in([16, 64])
    table = table.with_columns(same_table_as=pl.when(copies).then(pl.lit("step4")))
    counts = training_shapes(table).group_by("suite").agg(pl.col("repeated_steps").unique())
    assert dict(counts.iter_rows()) == {"bert-small": [2], "neox-small": [0]}


def test_a_shape_that_cannot_be_told_is_null_with_a_reason():
    table = TABLES["anisotropy"].with_columns(
        mean=pl.when(pl.col("suite") == "minilm").then(None).otherwise("mean")
    )
    row = bells(table).filter(suite="minilm").row(0, named=True)
    assert row["contrast"] is None and "middle third" in row["reason"]
    two = training_shapes(TABLES["intrinsic_dimension"].filter(pl.col("step") < 4))
    assert two["peak_step"].null_count() == two.height and "2 training steps" in two["reason"][0]


def test_a_single_batch_gives_shapes_without_uncertainty():
    table = TABLES["anisotropy"].with_columns(std=pl.lit(None, pl.Float64), batches=1)
    found = bells(table)
    assert found["contrast"].null_count() == 0 and found["stderr"].null_count() == found.height
