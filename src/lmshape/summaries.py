"""Two claims about shapes as numbers with an uncertainty: bells over layers, and a rise then a fall over training."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args, get_type_hints

import numpy as np
import polars as pl

from lmshape.numerics import paired

MISSED = 0.05  # how often, at most, an interval does not hold what it is of
MODEL = ["suite", "size", "stack", "positions"]
TOO_FEW = "fewer than half of the layers have a value at every training step"
ONE_BATCH = "no errors: values are of one batch (hidden_states.batches, hidden_states.batch_size)"


@dataclass(frozen=True)
class Bell:
    """How much higher a profile is in the middle third of the layers than at the ends.

    `contrast` = `middle` - `ends`, with `stderr`, lies between `contrast_low` and `contrast_high`; `peak_depth` is
    where the highest layer lies, 0 (what enters the first block) to 1 (what leaves the last), and `peak_low` and
    `peak_high` bound the layers that may be the highest. Bounds are None for a single batch.
    """

    middle: float
    ends: float
    contrast: float
    stderr: float | None
    contrast_low: float | None
    contrast_high: float | None
    peak_depth: float
    peak_low: float | None
    peak_high: float | None


@dataclass(frozen=True)
class RiseAndFall:
    """How far a value rises from the first step to its peak, and falls from there to the last step.

    `peak_low` and `peak_high` bound the steps that may be the peak. The standard errors are those of a peak chosen
    beforehand. `chance` is how often, at most, a value that does not rise, or does not fall, would seem to do both
    as surely as this one. What tells of noise is None for a single batch.
    """

    peak_step: int
    peak_low: int | None
    peak_high: int | None
    rise: float
    rise_stderr: float | None
    fall: float
    fall_stderr: float | None
    chance: float | None


def bell(values: Any) -> Bell:
    """The bell of a profile: `values` (layers, batches), layer 0 to the last, NaN where a layer has none.

    Raises ValueError where the middle third or the ends have no value.
    """
    values = _places(values)
    depth = np.arange(len(values)) / max(len(values) - 1, 1)
    middle = (depth >= 1 / 3) & (depth <= 2 / 3)
    known = np.isfinite(values).all(axis=1)
    if not (known & middle).any() or not (known & ~middle).any():
        raise ValueError("no value in the middle third of the layers, or none at the ends")
    inside, outside = (values[known & part].mean(axis=0) for part in (middle, ~middle))  # (batches,)
    return Bell(
        float(inside.mean()),
        float(outside.mean()),
        float((inside - outside).mean()),
        _error(inside - outside),
        *_bounds(inside - outside),
        float(depth[known][values[known].mean(axis=1).argmax()]),
        *_peak_range(depth[known], values[known]),
    )


def rise_and_fall(steps: Sequence[int], values: Any) -> RiseAndFall:
    """Where a value peaks over training, and how far it rises before and falls after.

    `values` (steps, batches) belong to `steps`, in ascending order.

    Raises ValueError for fewer than three steps: there would be no peak between others.
    """
    steps, values = np.asarray(steps), _places(values)
    if len(steps) < 3:
        raise ValueError(f"{len(steps)} training steps; a rise and a fall take three")
    peak = int(values.mean(axis=1).argmax())
    rise, fall = values[peak] - values[0], values[peak] - values[-1]  # (batches,)
    return RiseAndFall(
        int(steps[peak]),
        *_peak_range(steps, values),
        float(rise.mean()),
        _error(rise),
        float(fall.mean()),
        _error(fall),
        float(paired.chance_of_peak(values)) if values.shape[1] > 1 else None,
    )


def _places(values: Any) -> np.ndarray:
    """(places, batches); a value for each place is that of one batch."""
    values = np.asarray(values, dtype=np.float64)
    return values.reshape(len(values), -1)


def _error(values: np.ndarray) -> float | None:
    return float(paired.standard_error(values)) if len(values) > 1 else None


def _bounds(values: np.ndarray) -> tuple[float | None, float | None]:
    """Between which the mean over batches (batches,) lies in 95 of 100 repetitions of the noise."""
    return tuple(map(float, paired.interval(values, MISSED))) if len(values) > 1 else (None, None)


def _peak_range(places: np.ndarray, values: np.ndarray) -> tuple[Any, Any]:
    """First and last of `places` (n,) whose true value may be the largest; `values` (n, batches)."""
    if values.shape[1] == 1:
        return None, None
    possible = places[paired.may_be_highest(values, MISSED)]
    return possible[0].item(), possible[-1].item()


def bells(anisotropy: pl.DataFrame) -> pl.DataFrame:
    """The bell of every model's profile (SVD, centred): one row per suite, size, stack, positions and checkpoint.

    `anisotropy` is the table of that name; `reason` says why a bell is null.
    """
    rows = anisotropy.filter(measure="svd", centered=True).sort("layer")

    def shape(group: pl.DataFrame) -> Bell:
        return bell(_by_batch(group))

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
    doubt = pl.col("doubt").cast(pl.String).drop_nulls().first()
    averages = over_layers(rows, keys).sort("step")
    facts = rows.group_by(keys).agg(repeated_steps=repeated, doubt=doubt)
    facts = facts.join(averages.group_by(keys).agg(pl.max("layers")), on=keys, nulls_equal=True)

    def shape(group: pl.DataFrame) -> RiseAndFall:
        known = group.drop_nulls("mean")
        if known.is_empty():
            raise ValueError(TOO_FEW)
        return rise_and_fall(known["step"].to_list(), _by_batch(known))

    found = _by_group(averages, keys, shape, RiseAndFall)
    found = found.join(facts, on=keys, how="left", nulls_equal=True, maintain_order="left")
    why = pl.when(pl.col("reason").is_not_null()).then(
        pl.concat_str("reason", "doubt", separator="; ", ignore_nulls=True)
    )
    return found.with_columns(reason=why).drop("doubt")


def without_doubt(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows, with a null in place of every value that must not be taken for a plain number, and the reason."""
    if "doubt" not in rows.columns:
        return rows
    plain = pl.col("doubt").is_null()
    numbers = [pl.when(plain).then(pl.col(name)) for name in ("mean", "std", "stderr", "by_batch")]
    return rows.with_columns(*numbers, reason=pl.coalesce(pl.col("doubt", "reason").cast(pl.String)))


def over_layers(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Averages over layers: one row per series (`keys`) and step, with the number of `layers` averaged.

    Beside the `mean` stand the `lowest` and the `highest` layer's value, the average `by_batch` and the `stderr` that
    it shows (layers are measured on the same tokens, so they are averaged within a batch first), and how many layers
    are `doubtful`. A step without values has a null.
    """
    rows, step = _averageable(without_doubt(rows), keys), [*keys, "step"]
    mean, layers = pl.col("mean"), pl.count("mean").alias("layers")
    ends = (mean.min().alias("lowest"), mean.max().alias("highest"))
    averages = rows.group_by(step).agg(mean.mean(), *ends, layers, pl.count("doubt").alias("doubtful"))
    each = rows.drop_nulls("by_batch").with_columns(batch=pl.int_ranges(pl.col("by_batch").list.len()))
    each = each.explode("batch", "by_batch").group_by(*step, "batch").agg(pl.mean("by_batch")).sort("batch")
    error = (pl.col("by_batch").std() / pl.len().sqrt()).alias("stderr")
    spread = each.group_by(step).agg(pl.col("by_batch"), error)
    return averages.join(spread, on=step, how="left", nulls_equal=True)


def _averageable(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The rows, with nulls in place of values that no average over layers takes.

    It takes layers with a value at every step at which any layer of the series has one: were one missing at some
    steps, the average would move without any layer's moving. And it takes no fewer than half of the layers.
    """
    steps, layer = pl.col("step").filter(pl.col("mean").is_not_null()).n_unique(), pl.col("layer")
    rows = rows.with_columns(taken=steps.over(*keys, "layer") == steps.over(keys))
    most = 2 * layer.filter("taken").n_unique() >= layer.n_unique()
    rows = rows.with_columns(pl.col("taken") & most.over(keys))
    types = {"mean": pl.Float64, "by_batch": pl.List(pl.Float64)}
    return rows.with_columns(pl.when("taken").then(pl.col(name).cast(kind)) for name, kind in types.items())


def _by_group(
    rows: pl.DataFrame, keys: Sequence[str], shape: Callable[[pl.DataFrame], Any], kind: type
) -> pl.DataFrame:
    """One row per group, in the order of the keys: a `kind`'s fields, and the reason of those that are null."""
    found = []
    for values, group in rows.group_by(keys, maintain_order=True):
        key = dict(zip(keys, values, strict=True))
        try:
            fields = asdict(shape(group))
            found.append(key | fields | {"reason": ONE_BATCH if None in fields.values() else None})
        except ValueError as error:
            found.append(key | dict.fromkeys(kind.__dataclass_fields__) | {"reason": str(error)})
    schema = {name: rows.schema[name] for name in keys}
    for name, annotation in get_type_hints(kind).items():  # a frame of nulls alone has no types of its own
        whole = int in (annotation, *get_args(annotation))
        schema[name] = pl.Int64 if whole else pl.Float64
    return pl.DataFrame(found, schema=schema | {"reason": pl.String}).sort(keys, nulls_last=True)


def _by_batch(group: pl.DataFrame) -> np.ndarray:
    """Values of a column of lists, (places, batches), NaN where a place has none."""
    lists = group["by_batch"].to_list()
    batches = max(map(len, filter(None, lists)), default=1)
    return np.array([[np.nan] * batches if values is None else values for values in lists])
