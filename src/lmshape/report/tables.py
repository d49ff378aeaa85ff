"""Rows of many jobs as one table."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

NO_COLUMNS = ("table", "summary")  # wildcards of the workflow that are none of a table
# What tells the values of one combination from each other.
CELLS = ("metric", "stack", "layer", "layers", "measure", "centered", "positions", "estimator", "fraction")
FACTS = ("embedding_width", "vocabulary_rows", "tokenizer")  # that all tables of a model have in common
MODEL = ("suite", "size", "checkpoint", "step")


def collect(
    paths: Iterable[str | Path], lost: Iterable[Mapping[str, Any]] = (), value: str | None = None
) -> pl.DataFrame:
    """The rows of all files in one frame, in the order of the files, and a null for each value that was `lost`.

    A column that is null throughout one file has no type there and takes that of the others. `lost` are the `names`
    of combinations (wildcard -> value) whose files could not be made, each with the `reason`; `value` is the column
    that the table is about.
    """
    frames = [pl.read_parquet(path) for path in paths]
    found = pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()
    nulls = [nulled(found, each["names"], each["reason"]) for each in lost]
    if nulls and value:
        nulls[0] = nulls[0].with_columns(pl.lit(None, pl.Float64).alias(value))
    return pl.concat([*frames, *nulls], how="diagonal_relaxed")


def nulled(found: pl.DataFrame, names: Mapping[str, str], reason: str) -> pl.DataFrame:
    """The nulls of one combination: a row for each value that its model has elsewhere in what was `found`.

    That is a single row where nothing is known of its values, as of a model whose layers nobody counted.
    """
    row = pl.DataFrame([_columns(names) | {"reason": reason}])
    keys = [name for name in ("suite", "size", "tokenizer") if name in row.columns and name in found.columns]
    own = found.join(row, on=keys, how="semi") if keys else found.clear()
    like = own if own.height or "layer" in found.columns else found
    cells = like.select(name for name in CELLS if name in like.columns).unique(maintain_order=True)
    facts = own.select(name for name in FACTS if name in own.columns and name not in row.columns).unique()
    for part in (facts if facts.height == 1 else facts.clear(), cells):
        row = row.join(part, how="cross") if part.height else row
    return row


def _columns(names: Mapping[str, str]) -> dict[str, str | int | None]:
    """Wildcards of the workflow as columns of a table."""
    columns: dict[str, Any] = {name: value for name, value in names.items() if name not in NO_COLUMNS}
    if names.get("table") == "random_baseline":  # whose parts are of tokenizers
        columns["tokenizer"] = columns.pop("suite")
    if "seed" in columns:
        columns["seed"] = int(columns["seed"]) if columns["seed"].isdigit() else None
    return columns


def summarized(table: pl.DataFrame, summarize: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """What `summarize` makes of a table of layers, and a null for each model of which it has no layer."""
    lost = pl.col("layer").is_null() if "layer" in table.columns else pl.lit(True)
    known, unknown = table.filter(~lost), table.filter(lost)
    summary = summarize(known) if known.height else pl.DataFrame(schema=MODEL)
    nulls = unknown.select(*(name for name in MODEL if name in summary.columns), "reason").unique(
        maintain_order=True
    )
    return pl.concat([summary, nulls], how="diagonal_relaxed") if nulls.height else summary


def describe(
    frame: pl.DataFrame, architecture: str, final: str, parameters: Mapping[str, int]
) -> pl.DataFrame:
    """Add what a suite's file says of the models of its rows, after the columns that name them.

    `architecture` and `final`, the checkpoint that is the finished model, are the suite's, `parameters` those of each
    size. It is no part of what jobs measure, so a corrected label measures nothing again. The only stack of blocks of
    a model, null until now, has the name of the architecture.
    """
    rows = frame.with_columns(
        parameters=pl.col("size").replace_strict(parameters, return_dtype=pl.Int64),
        architecture=pl.lit(architecture),
        step=pl.col("checkpoint").str.extract(r"^step(\d+)$").cast(pl.Int64),
        final=pl.col("checkpoint") == final,
    )
    if "stack" in frame.columns:
        rows = rows.with_columns(pl.col("stack").cast(pl.String).fill_null(architecture))
    known = ["suite", "size", "parameters", "architecture", "checkpoint", "step", "final"]
    return rows.select(*known, pl.exclude(known))


def flag_repeats(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `same_table_as`: the first checkpoint of the size that served the very same embedding table, if another.

    Some published step branches hold the weights of another step. What is measured on whole models has no `side`:
    its hash is that of the input table. A frame that knows no tables stays as it is.
    """
    if "table_sha256" not in frame.columns:
        return frame
    one = [name for name in ("suite", "size", "side", "table_sha256") if name in frame.columns]
    first = pl.col("checkpoint").sort_by("step", nulls_last=True).first().over(one)
    repeats = pl.col("table_sha256").is_not_null() & (first != pl.col("checkpoint"))
    return frame.with_columns(same_table_as=pl.when(repeats).then(first))
