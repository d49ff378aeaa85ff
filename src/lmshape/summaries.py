"""Two claims about shapes as numbers with an uncertainty: bells over layers, and a rise then a fall over training."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, get_args, get_type_hints

import numpy as np
import polars as pl

DRAWS = 2000  # of the noise, seeded: the tables of two runs are the same
MISSED = 0.05  # how often, at most, the range of a peak does not hold it
MODEL = ["suite", "size", "stack", "positions"]


@dataclass(frozen=True)
class Bell:
    """How much higher a profile is in the middle third of the layers than at the ends.

    `contrast` = `middle` - `ends`, with `stderr`; `peak_depth` is where the highest layer lies, 0 (what enters the
    first block) to 1 (what leaves the last). `peak_low` and `peak_high` bound the layers that may be the highest
    (see `_peak_range`).
    """

    middle: float
    ends: float
    contrast: float
    stderr: float | None
    peak_depth: float
    peak_low: float | None
    peak_high: float | None


@dataclass(frozen=True)
class RiseAndFall:
    """How far a value rises from the first step to its peak, and falls from there to the last step.

    `peak_low` and `peak_high` bound the steps that may be the peak (see `_peak_range`). `chance` is how often
    values that do not change at all would seem, by noise alone, both to rise and to fall as much as these.
    """

    peak_step: int
    peak_low: int | None
    peak_high: int | None
    rise: float
    rise_stderr: float | None
    fall: float
    fall_stderr: float | None
    chance: float | None


def bell(values: Sequence[float], stderrs: Sequence[float] | None = None) -> Bell:
    """The bell of a profile: one value per layer, layer 0 to the last, NaN where one is missing.

    Layers are measured on the same tokens, so their errors can move together. `stderr` is therefore the sum of the
    mean standard errors in the middle and at the ends: what it can be at most, however they are correlated.

    Raises ValueError where the middle third or the ends have no value.
    """
    values = np.asarray(values, dtype=np.float64)
    depth = np.arange(len(values)) / max(len(values) - 1, 1)
    middle = (depth >= 1 / 3) & (depth <= 2 / 3)
    known = np.isfinite(values)
    if not (known & middle).any() or not (known & ~middle).any():
        raise ValueError("no value in the middle third of the layers, or none at the ends")
    inside, outside = (values[known & part].mean() for part in (middle, ~middle))
    stderr, low, high = None, None, None
    if stderrs is not None:
        errors = np.asarray(stderrs, dtype=np.float64)
        stderr = sum(float(errors[known & part].mean()) for part in (middle, ~middle))
        low, high = _peak_range(depth[known], values[known], errors[known])
    peak = depth[np.nanargmax(values)]
    return Bell(float(inside), float(outside), float(inside - outside), stderr, float(peak), low, high)


def rise_and_fall(
    steps: Sequence[int], values: Sequence[float], stderrs: Sequence[float] | None = None, seed: int = 0
) -> RiseAndFall:
    """Where a value peaks over training, and how far it rises before and falls after.

    `values` and their standard errors belong to `steps`, in ascending order. `chance` comes from drawing
    independent normal noise of those errors around a constant.

    Raises ValueError for fewer than three steps: there would be no peak between others.
    """
    steps, values = np.asarray(steps), np.asarray(values, dtype=np.float64)
    if len(steps) < 3:
        raise ValueError(f"{len(steps)} training steps; a rise and a fall take three")
    peak = int(values.argmax())
    rise, fall = float(values[peak] - values[0]), float(values[peak] - values[-1])
    if stderrs is None:
        return RiseAndFall(int(steps[peak]), None, None, rise, None, fall, None, None)
    errors = np.asarray(stderrs, dtype=np.float64)
    noise = errors * np.random.default_rng(seed).standard_normal((DRAWS, len(errors)))
    by_chance = noise.max(axis=1) - np.maximum(noise[:, 0], noise[:, -1])
    return RiseAndFall(
        int(steps[peak]),
        *_peak_range(steps, values, errors),
        rise,
        float(np.hypot(errors[peak], errors[0])) if peak else 0.0,
        fall,
        float(np.hypot(errors[peak], errors[-1])) if peak < len(steps) - 1 else 0.0,
        float((by_chance >= min(rise, fall)).mean()),
    )


def _peak_range(places: np.ndarray, values: np.ndarray, errors: np.ndarray) -> tuple[Any, Any]:
    """First and last of `places` (n,) whose true value may be the largest; `values` and `errors` are (n,) too.

    Left out are those below another one by more than z times the sum of both standard errors, which is at most
    what their difference can have, however errors are correlated. At most n - 1 others could push out the true
    peak by chance, so z makes each do so once in 20 (n - 1): the range holds it in 95 of 100 repetitions or more,
    and the observed peak always. Standard errors are taken as known.
    Source: multiple comparisons with the best (Hsu 1984), with Bonferroni's bound.
    """
    z = NormalDist().inv_cdf(1 - MISSED / (len(values) - 1))
    possible = places[values + z * errors >= (values - z * errors).max()]
    return possible[0].item(), possible[-1].item()


def bells(anisotropy: pl.DataFrame) -> pl.DataFrame:
    """The bell of every model's profile (SVD, centred): one row per suite, size, stack, positions and checkpoint.

    `anisotropy` is the table of that name; `reason` says why a bell is null.
    """
    rows = anisotropy.filter(measure="svd", centered=True).sort("layer")
    rows = rows.with_columns(stderr=pl.col("std").cast(pl.Float64) / pl.col("batches").sqrt())

    def shape(group: pl.DataFrame) -> Bell:
        return bell(_numbers(group, "mean"), _errors(group))

    return _by_group(rows, [*MODEL, "checkpoint", "step"], shape, Bell)


def training_shapes(intrinsic_dimension: pl.DataFrame) -> pl.DataFrame:
    """Rise and fall of the dimension averaged over layers: one row per model, positions, estimator and fraction.

    `intrinsic_dimension` is the table of that name; models without training steps are left out. `layers` is how many
    are averaged (see `over_layers`). `repeated_steps` counts the steps that serve the weights of another one, which
    say nothing of their own. `reason` says why a shape is null.
    """
    keys = [*MODEL, "estimator", "fraction"]
    rows = intrinsic_dimension.filter(pl.col("step").is_not_null())
    repeated = pl.col("step").filter(pl.col("same_table_as").is_not_null()).n_unique()
    averages = over_layers(rows, keys).sort("step")
    counts = rows.group_by(keys).agg(repeated_steps=repeated)
    counts = counts.join(averages.group_by(keys).agg(pl.max("layers")), on=keys, nulls_equal=True)

    def shape(group: pl.DataFrame) -> RiseAndFall:
        known = group.drop_nulls("mean")
        if known.is_empty():
            raise ValueError("no layer has a value at every training step")
        return rise_and_fall(known["step"].to_list(), _numbers(known, "mean"), _errors(known))

    found = _by_group(averages, keys, shape, RiseAndFall)
    return found.join(counts, on=keys, how="left", nulls_equal=True, maintain_order="left")


def over_layers(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Averages over layers: one row per series (`keys`) and step, with the number of `layers` averaged.

    Only layers with a value at every step at which any layer of the series has one: were one missing at some steps,
    the average would move without any layer's moving. Beside the `mean` stand the `lowest` and the
    `highest` layer's value, and the `stderr`: layers are measured on the same tokens, so their errors may move
    together, and the mean of their standard errors is the bound that holds in any case. A step without values has
    a null.
    """
    steps = pl.col("step").filter(pl.col("mean").is_not_null()).n_unique()
    complete = steps.over(*keys, "layer") == steps.over(keys)
    numbers = [pl.when(complete).then(pl.col(name).cast(pl.Float64)) for name in ("mean", "stderr")]
    mean = pl.col("mean")
    ends = (mean.min().alias("lowest"), mean.max().alias("highest"))
    averages = (mean.mean(), *ends, pl.mean("stderr"), mean.count().alias("layers"))
    return rows.with_columns(numbers).group_by(*keys, "step").agg(averages)


def _by_group(
    rows: pl.DataFrame, keys: Sequence[str], shape: Callable[[pl.DataFrame], Any], kind: type
) -> pl.DataFrame:
    """One row per group, in the order of the keys: a `kind`'s fields, or nulls and the reason."""
    found = []
    for values, group in rows.group_by(keys, maintain_order=True):
        key = dict(zip(keys, values, strict=True))
        try:
            found.append(key | asdict(shape(group)) | {"reason": None})
        except ValueError as error:
            found.append(key | dict.fromkeys(kind.__dataclass_fields__) | {"reason": str(error)})
    schema = {name: rows.schema[name] for name in keys}
    for name, annotation in get_type_hints(kind).items():  # a frame of nulls alone has no types of its own
        whole = int in (annotation, *get_args(annotation))
        schema[name] = pl.Int64 if whole else pl.Float64
    return pl.DataFrame(found, schema=schema | {"reason": pl.String}).sort(keys, nulls_last=True)


def _numbers(group: pl.DataFrame, column: str) -> np.ndarray:
    return group[column].cast(pl.Float64).to_numpy()  # null becomes NaN


def _errors(group: pl.DataFrame) -> np.ndarray | None:
    """Standard errors, or None where one is missing beside a value (a single batch has no spread)."""
    known = group.filter(pl.col("mean").is_not_null())
    return None if known["stderr"].null_count() else _numbers(group, "stderr")
