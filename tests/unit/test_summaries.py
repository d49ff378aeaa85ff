"""Shapes as numbers: profiles with and without a bell, values that rise and fall and values that only seem to."""

from dataclasses import asdict

import numpy as np
import polars as pl
import pytest
from synthetic_tables import all_tables, missing

from lmshape.summaries import ONE_BATCH, bell, bells, rise_and_fall, training_shapes, without_doubt

RNG = np.random.default_rng(0)


def measured(profile, noise):
    """Four batches (places, 4) of a profile with noise, of which all places share a part."""
    errors = RNG.standard_normal((len(profile), 4)) + RNG.standard_normal(4)
    return np.asarray(profile, float)[:, None] + noise * errors


# --- bells ---------------------------------------------------------------------------------------------


def test_a_bell_is_the_middle_third_above_the_ends():
    found = bell(np.array([0.1, 0.1, 0.8, 0.9, 0.7, 0.1, 0.1])[:, None] + [-0.03, 0.03, 0])
    assert found.middle == pytest.approx(0.8) and found.ends == pytest.approx(0.1)
    assert [found.contrast, found.contrast_low, found.contrast_high] == pytest.approx([0.7] * 3)
    assert found.peak_depth == pytest.approx(0.5)
    assert found.stderr == pytest.approx(0, abs=1e-12), (
        "what a batch adds to every layer is no error of a contrast"
    )


def test_a_flat_profile_has_no_contrast_and_a_bowl_a_negative_one():
    assert bell([0.3] * 13).contrast == pytest.approx(0)
    assert bell([1, 0.1, 0.1, 1]).contrast == pytest.approx(-0.9)
    assert bell([0.3] * 13).stderr is bell([0.3] * 13).contrast_low is None


def test_a_slope_is_no_bell():
    found = bell(np.linspace(0, 1, 31))
    assert abs(found.contrast) < 0.01 and found.peak_depth == 1


def test_the_peak_of_a_bell_is_known_only_within_a_range_where_layers_are_close():
    profile = [0.1, 0.1, 0.5, 0.9, 0.89, 0.5, 0.1, 0.1, 0.1]
    noise = np.array([[0, 1, 0, -1], [1, 0, -1, 0], [0, -1, 0, 1]])[np.arange(9) % 3]
    close, sharp = (bell(np.array(profile)[:, None] + size * noise) for size in (0.02, 1e-4))
    assert (close.peak_depth, close.peak_low, close.peak_high) == (3 / 8, 3 / 8, 4 / 8)
    assert sharp.peak_low == sharp.peak_depth == sharp.peak_high == 3 / 8
    assert bell(profile).peak_low is bell(profile).peak_high is None


def test_missing_layers_are_passed_over_and_a_missing_third_is_an_error():
    values = measured([0.1, np.nan, 0.8, np.nan, 0.9, 0.1, 0.1], 1e-3)
    found = bell(values)
    assert found.peak_depth == found.peak_low == found.peak_high == pytest.approx(4 / 6)
    assert bell([0.1, np.nan, 0.8, np.nan, 0.8, 0.1, 0.1]).contrast == pytest.approx(0.7)
    with pytest.raises(ValueError, match="middle third"):
        bell([0.1, 0.1, np.nan, np.nan, np.nan, 0.1, 0.1])
    with pytest.raises(ValueError, match="middle third"):
        bell([0.1])


# --- rise and fall -------------------------------------------------------------------------------------

STEPS = [0, 1, 4, 16, 64, 256]


def test_rise_and_fall_are_measured_from_the_peak_within_each_batch():
    values = np.array([5, 6, 9, 12, 10, 8.0])[:, None] + np.array(
        [-3, 0, 3]
    )  # batches differ more than steps
    values[3] += [0.1, 0, -0.1]
    found = rise_and_fall(STEPS, values)
    assert found.peak_step == found.peak_low == found.peak_high == 16
    assert (found.rise, found.fall) == pytest.approx((7, 4))
    assert (found.rise_stderr, found.fall_stderr) == pytest.approx((0.1 / 3**0.5, 0.1 / 3**0.5))
    assert found.chance < 0.01


def test_a_value_that_only_rises_or_only_falls_does_not_do_both():
    rising = rise_and_fall(STEPS, measured([1, 2, 3, 4, 5, 6], 0.1))
    assert rising.peak_step == 256 and rising.fall == 0 and rising.fall_stderr == 0 and rising.chance == 1
    falling = rise_and_fall(STEPS, measured([6, 5, 4, 3, 2, 1], 0.1))
    assert falling.peak_step == 0 and falling.rise == 0 and falling.chance == 1


def test_a_peak_between_equal_steps_is_known_only_to_lie_in_a_range():
    found = rise_and_fall(STEPS, measured([1, 5, 9, 9.01, 5, 1], 0.2))
    assert (found.peak_low, found.peak_high) == (4, 16)


def test_steps_that_serve_the_very_same_weights_are_equally_likely_peaks_and_no_rise():
    values = measured([1, 5, 9, 7, 5, 1], 0.2)
    values[3] = values[2]
    assert rise_and_fall(STEPS, values).peak_high == 16
    assert rise_and_fall(STEPS, np.repeat(values[:1], 6, axis=0)).chance == 1


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
    want = bell(np.array(profile["by_batch"].to_list()))
    row = found.filter(**keys).row(0, named=True)
    assert {name: row[name] for name in asdict(want)} == pytest.approx(asdict(want)) and want.contrast > 0.3
    assert 0 < want.peak_low < want.peak_high < 1
    assert found.filter(suite="minilm")["contrast"].max() < 0.1
    assert found.height == table.unique(["suite", "size", "stack", "positions", "checkpoint"]).height
    assert found["reason"].null_count() == found.height


def test_training_shapes_average_over_layers_and_leave_out_models_without_steps():
    table = TABLES["intrinsic_dimension"]
    found = training_shapes(table)
    assert set(found["suite"]) == {"neox-small", "bert-small"}
    keys = {"suite": "neox-small", "size": "64x3", "positions": "all", "estimator": "mada"}
    row = found.filter(**keys).row(0, named=True)
    layers = table.filter(**keys).sort("step", "layer").group_by("step", maintain_order=True)
    steps = {step: np.mean(rows["by_batch"].to_list(), axis=0) for (step,), rows in layers}
    want = rise_and_fall(list(steps), list(steps.values()))
    assert {name: row[name] for name in asdict(want)} == pytest.approx(asdict(want))
    assert row["fraction"] is None and row["layers"] == 4


def constant_layers(without=()):
    """Four layers that never change over six steps, 10, 10, 10 and 20; the (layer, step) `without` have no value."""
    table = TABLES["intrinsic_dimension"].filter(
        pl.col("step") < 1024, suite="neox-small", size="64x3", positions="all", estimator="mada"
    )
    value = pl.when(pl.col("layer") == 3).then(20.0).otherwise(10.0)
    table = table.with_columns(mean=value, by_batch=pl.concat_list(value, value))
    lost = [(pl.col("layer") == layer) & (pl.col("step") == step) for layer, step in without]
    return missing(table, pl.any_horizontal(pl.lit(False), *lost))


def test_layers_missing_at_some_steps_make_no_rise_and_fall():
    whole = training_shapes(constant_layers()).row(0, named=True)
    assert (whole["rise"], whole["fall"], whole["chance"], whole["layers"]) == (0, 0, 1, 4)
    found = training_shapes(constant_layers([(3, 0), (3, 256)])).row(0, named=True)
    assert (found["rise"], found["fall"], found["chance"], found["layers"]) == (0, 0, 1, 3)


def test_a_layer_in_doubt_at_some_step_is_missing_there():
    doubt = pl.when(layer=3, step=4).then(pl.lit("near twins"))
    found = training_shapes(constant_layers().with_columns(doubt=doubt)).row(0, named=True)
    assert (found["rise"], found["layers"], found["reason"]) == (0, 3, None)
    found = training_shapes(constant_layers().with_columns(doubt=pl.lit("near twins"))).row(0, named=True)
    assert (found["rise"], found["layers"]) == (None, 0)
    assert found["reason"] == "fewer than half of the layers have a value at every training step; near twins"


def test_a_step_at_which_every_layer_is_missing_is_left_out():
    found = training_shapes(constant_layers([(layer, 4) for layer in range(4)])).row(0, named=True)
    assert (found["rise"], found["layers"], found["reason"]) == (0, 4, None)


@pytest.mark.parametrize(
    "without",
    [
        [(0, 0), (1, 1), (2, 4)],
        [(0, 0), (1, 1), (2, 4), (3, 16)],
        [(i, s) for i in range(4) for s in STEPS],
    ],
)
def test_fewer_than_half_of_the_layers_with_a_value_at_every_step_are_a_null_with_a_reason(without):
    found = training_shapes(constant_layers(without)).row(0, named=True)
    assert found["rise"] is None and found["layers"] == 0
    assert found["reason"] == "fewer than half of the layers have a value at every training step"


def test_trap_12_steps_that_repeat_the_weights_of_another_are_counted_beside_the_shape():
    table = TABLES["intrinsic_dimension"]
    assert training_shapes(table)["repeated_steps"].unique().to_list() == [0]
    copies = (pl.col("suite") == "bert-small") & pl.col("step").is_in([16, 64])
    table = table.with_columns(same_table_as=pl.when(copies).then(pl.lit("step4")))
    counts = training_shapes(table).group_by("suite").agg(pl.col("repeated_steps").unique())
    assert dict(counts.iter_rows()) == {"bert-small": [2], "neox-small": [0]}


def test_a_shape_that_cannot_be_told_is_null_with_a_reason():
    table = missing(TABLES["anisotropy"], pl.col("suite") == "minilm")
    row = bells(table).filter(suite="minilm").row(0, named=True)
    assert row["contrast"] is None and "middle third" in row["reason"]
    two = training_shapes(TABLES["intrinsic_dimension"].filter(pl.col("step") < 4))
    assert two["peak_step"].null_count() == two.height and "2 training steps" in two["reason"][0]


def test_a_single_batch_gives_shapes_without_uncertainty():
    table = TABLES["anisotropy"].with_columns(pl.col("by_batch").list.head(1), std=None, batches=1)
    found = bells(table)
    assert found["contrast"].null_count() == 0 and found["stderr"].null_count() == found.height
    assert set(found["reason"]) == {ONE_BATCH}


def test_a_value_in_doubt_of_fewer_batches_than_asked_for_is_left_out_for_its_doubt():
    rows = pl.DataFrame({"mean": [3.0, 4.0], "std": 0.1, "stderr": 0.1, "by_batch": [[3.0], [4.0]]})
    rows = rows.with_columns(reason=pl.lit("1 of 4 batches"), doubt=pl.Series(["near twins", None]))
    found = without_doubt(rows)
    assert found["mean"].to_list() == [None, 4] and found["reason"].to_list() == [
        "near twins",
        "1 of 4 batches",
    ]
