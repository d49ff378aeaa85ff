"""Which rows of a table each figure plots: one function per figure, named as in `lmshape.report.figure_list`.

Each takes the whole table and returns the plotted rows, sorted; it raises `NoData` with the recorded reason where
none has a value. A failed cell stays in as a null, so that a line shows a gap and not a bridge.
"""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from lmshape.report.missing import is_empty, reasons
from lmshape.summaries import TOO_FEW, over_layers, without_doubt

Select = Callable[..., pl.DataFrame]  # the rows that a figure plots, of its table and its choices
METRIC = "ndcg_at_10"
MODEL = ("suite", "size", "parameters")
LARGEST_NORMS = "largest_norms"  # as the anisotropy table names it
# Columns that say where in a figure a row is: the first of them that a table has counts. A lost random table has no
# width, as it is of several.
PLACES = ("layer", "first", "embedding_width", "width", "step")


class NoData(Exception):
    """Nothing to plot; the message says why."""


def plotted(select: Select, table: pl.DataFrame, **choices: Any) -> pl.DataFrame:
    """The rows that a figure plots by its choices; of what was lost, those that have a place among the others."""
    if is_empty(table):
        raise NoData("; ".join(reasons(table)[:3]))
    place = next((name for name in PLACES if name in table.columns), None)
    return select(table.drop_nulls(place) if place else table, **choices)


def retrieval_by_width(table: pl.DataFrame) -> pl.DataFrame:
    """Final checkpoints: one row per (dataset, suite, side, ablation, size), averaged over seeds."""
    return _over_seeds(_share_random(final(table.filter(metric=METRIC))))


def retrieval_all_suites(table: pl.DataFrame) -> pl.DataFrame:
    """The same rows, unchanged tables only."""
    return _over_seeds(final(table.filter(metric=METRIC, ablation="original")))


def retrieval_by_step(table: pl.DataFrame) -> pl.DataFrame:
    """Unchanged tables at every training step."""
    return _over_seeds(_with_steps(table.filter(metric=METRIC, ablation="original")))


def comparisons(table: pl.DataFrame) -> pl.DataFrame:
    """Every pair of sizes; sizes stay in the order of the table, from small to large."""
    return _present(table, "difference").with_columns(pl.col("difference", "probability").cast(pl.Float64))


def random_baseline(table: pl.DataFrame) -> pl.DataFrame:
    """One row per (dataset, tokenizer, width): mean over seeds, lowest and highest seed."""
    return _mean(table.filter(metric=METRIC), ["dataset", "tokenizer", "vocabulary_rows", "width"], "value")


def word_similarity(table: pl.DataFrame) -> pl.DataFrame:
    """Final checkpoints: one row per (dataset, suite, side, size)."""
    keys = ["dataset", "suite", "side", "embedding_width", "parameters", "size"]
    rows = _present(final(table), "spearman").select(*keys, "spearman", "stderr", "pairs", "missing")
    numbers = pl.col("spearman", "stderr").cast(pl.Float64)
    return rows.with_columns(numbers).sort(keys)


def anisotropy_by_depth(table: pl.DataFrame) -> pl.DataFrame:
    """Largest share of variance by relative depth, all positions and without the first; final checkpoints."""
    return _layers(final(table.filter(measure="svd", centered=True)))


def largest_norms(table: pl.DataFrame) -> pl.DataFrame:
    """Variance share of the largest norms by relative depth; final checkpoints."""
    return _layers(final(table.filter(measure=LARGEST_NORMS, positions="all")))


def anisotropy_measures(table: pl.DataFrame) -> pl.DataFrame:
    """Both measures, centred or not, of the largest model of each suite."""
    rows = final(table.filter(pl.col("measure") != LARGEST_NORMS, positions="all"))
    return _layers(_largest(rows), "measure", "centered")


def anisotropy_by_checkpoint(table: pl.DataFrame) -> pl.DataFrame:
    """Anisotropy by layer at every training step."""
    rows = _with_steps(table.filter(measure="svd", centered=True, positions="all"))
    return _layers(rows, "step")


def intrinsic_dimension_by_depth(table: pl.DataFrame, fraction: float) -> pl.DataFrame:
    """TwoNN at one fraction by relative depth, all positions and without the first; final checkpoints."""
    return _layers(final(table.filter(estimator="twonn", fraction=fraction)))


def intrinsic_dimension_by_step(table: pl.DataFrame, fraction: float) -> pl.DataFrame:
    """TwoNN at one fraction averaged over layers at every training step."""
    return _over_layers(_with_steps(table.filter(positions="all", estimator="twonn", fraction=fraction)))


def intrinsic_dimension_estimators(table: pl.DataFrame) -> pl.DataFrame:
    """Every estimator averaged over layers at every training step."""
    return _over_layers(_with_steps(table.filter(positions="all")))


def pretraining_loss(table: pl.DataFrame) -> pl.DataFrame:
    """Loss averaged over a quarter of an octave of steps, at the last of them, with its spread over those steps.

    The loss of single batches is too noisy to compare sizes by. Sizes stay in the order of the table.
    """
    rows = _present(table, "loss").with_columns(part=(4 * pl.col("step").log(2)).ceil())
    loss = pl.col("loss").cast(pl.Float64)
    averages = (pl.max("step"), loss.mean(), loss.std().fill_null(0).alias("spread"), pl.len().alias("steps"))
    parts = rows.group_by("suite", "size", "part", maintain_order=True).agg(*averages).drop("part")
    return parts.sort("suite", maintain_order=True)


def cost_by_rule(table: pl.DataFrame) -> pl.DataFrame:
    """One row per rule, the longest first: its jobs, their time and the highest peak of memory."""
    return _cost(table, "rule").sort("seconds", "rule", descending=[True, False])


def cost_by_size(table: pl.DataFrame) -> pl.DataFrame:
    """One row per (rule, model), for rules that ran on models of several sizes."""
    rows = _cost(table.drop_nulls("parameters"), "rule", "suite", "size", "parameters")
    rows = rows.filter((pl.n_unique("parameters") > 1).over("rule")).sort("rule", "parameters", "suite")
    if rows.is_empty():
        raise NoData("no rule ran on models of several sizes")
    return rows


def _cost(table: pl.DataFrame, *keys: str) -> pl.DataFrame:
    if table.is_empty():
        raise NoData("no job of this study was measured")
    return table.group_by(keys, maintain_order=True).agg(
        pl.len().alias("jobs"),
        pl.sum("seconds"),
        pl.mean("seconds").alias("seconds_per_job"),
        pl.max("seconds").alias("longest_seconds"),
        pl.sum("cpu_seconds"),
        pl.max("peak_memory_mib"),
    )


def facts(rows: pl.DataFrame) -> dict[str, str]:
    """What a caption may state about the plotted rows: field -> "240", "1 to 3", or words where none is recorded.

    `doubts` and `below` are sentences of their own, or nothing.
    """
    fields = ("queries", "pairs", "seeds", "batches", "batch_size", "layers", "fraction")
    return {field: _range(rows, field) for field in fields} | {"doubts": _doubts(rows), "below": _below(rows)}


def _doubts(rows: pl.DataFrame) -> str:
    count = rows["doubtful"].sum() if "doubtful" in rows.columns else 0
    values = "1 value of a layer is" if count == 1 else f"{count:,} values of layers are"
    return f" Left out: {values} in doubt, as too many vectors have a near twin." if count else ""


def _below(rows: pl.DataFrame) -> str:
    """How many of the lines that have a step 0 are lower at their last step, and why that can be."""
    if not {"step", "value"} <= set(rows.columns):
        return ""
    step, value = pl.col("step"), pl.col("value")
    ends = rows.drop_nulls("value").group_by("dataset", "suite", "side", "size").agg(
        first=value.filter(step == 0).first(), last=value.sort_by("step").last(), steps=step.max()
    )  # fmt: skip
    ends = ends.filter(pl.col("steps") > 0).drop_nulls("first")
    count = ends.filter(pl.col("last") < pl.col("first")).height
    if not count:
        return ""
    return (
        f" Lower at the last step than at step 0: {count:,} of {ends.height:,} lines. At step 0 a table is random "
        "and keeps all tokens apart; training first moves those together that occur in like contexts."
    )


def _range(rows: pl.DataFrame, column: str) -> str:
    if column not in rows.columns or rows[column].null_count() == rows.height:
        return "an unrecorded number of"
    low, high = rows[column].min(), rows[column].max()
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def final(rows: pl.DataFrame) -> pl.DataFrame:
    """Each model's `main` checkpoint (it has no step), or the last step of a model that has no `main`."""
    step = pl.col("step")
    last = step.is_null() | (~step.is_null().any() & (step == step.max()))
    return rows.filter(last.over("suite", "size"))


def _with_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """The training steps of the models that have several: a single one says nothing of training."""
    rows = rows.filter(pl.col("step").is_not_null())
    rows = rows.filter((pl.n_unique("step") > 1).over("suite", "size"))
    if rows.is_empty():
        raise NoData("no model of this study has several training steps")
    return rows


def _largest(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of each suite's model with the most parameters."""
    return rows.filter((pl.col("parameters") == pl.col("parameters").max()).over("suite"))


def _share_random(rows: pl.DataFrame) -> pl.DataFrame:
    """Give every table its random twin: one is scored for all that share data set, tokenizer and shape."""
    twin = ["dataset", "tokenizer", "vocabulary_rows", "embedding_width"]
    own = ["suite", "side", "size", "parameters", "step"]
    random = rows.filter(ablation="random").unique([*twin, "seed"], keep="first", maintain_order=True)
    shared = random.drop(own).join(rows.select(*twin, *own).unique(), on=twin)
    return pl.concat([rows.filter(pl.col("ablation") != "random"), shared], how="diagonal")


def _over_seeds(rows: pl.DataFrame) -> pl.DataFrame:
    keys = ["dataset", "suite", "side", "ablation", "embedding_width", "parameters", "size", "step"]
    return _mean(rows, keys, "value", pl.col("queries").max())


def _layers(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """One row per layer, averaged over seeds, with its relative depth: 0 at layer 0, 1 at the last."""
    keys = ["suite", "parameters", "size", "stack", "positions", *keys, "layer"]
    counts = [pl.col(name).max() for name in ("batches", "batch_size", "fraction") if name in rows.columns]
    if "doubt" in rows.columns:
        counts.append(pl.col("doubt").count().alias("doubtful"))
    rows = _mean(without_doubt(rows), keys, "mean", *counts)
    last = pl.col("layer").max().over("stack", "suite", "size")
    return rows.with_columns(depth=pl.col("layer") / last)


def _over_layers(rows: pl.DataFrame) -> pl.DataFrame:
    """Averages over those layers that have a value at every training step: see `over_layers`."""
    keys = ["suite", "parameters", "size", "stack", "estimator", "fraction"]
    _present(without_doubt(rows), "mean")
    averages = over_layers(rows, keys).drop("by_batch")
    if averages["mean"].null_count() == averages.height:
        raise NoData(TOO_FEW)
    layers = pl.when(pl.col("mean").is_not_null()).then("layers")
    return averages.with_columns(layers=layers).sort(*keys, "step")


def _mean(rows: pl.DataFrame, keys: Sequence[str], value: str, *also: pl.Expr) -> pl.DataFrame:
    """Average `value` and its spread over everything but `keys` (seeds); add the lowest, the highest and how many."""
    _present(rows, value)
    error = "stderr" if "stderr" in rows.columns else "std"
    number = pl.col(value).cast(pl.Float64)
    summary = (
        number.mean(),
        pl.col(error).cast(pl.Float64).mean(),
        number.min().alias("lowest"),
        number.max().alias("highest"),
        number.count().alias("seeds"),
    )
    return rows.group_by(keys).agg(*summary, *also).sort(keys, nulls_last=True)


def _present(rows: pl.DataFrame, value: str) -> pl.DataFrame:
    if rows.is_empty():
        raise NoData("the table has no such rows")
    if rows[value].null_count() == rows.height:
        raise NoData("; ".join(reasons(rows)[:3]))
    return rows
