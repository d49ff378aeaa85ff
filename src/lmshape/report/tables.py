"""Rows of many jobs as one table."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl


def collect(paths: Iterable[str | Path]) -> pl.DataFrame:
    """The rows of all files in one frame, in the order of the files.

    A column that is null throughout one file has no type there and takes that of the others.
    """
    frames = [pl.read_parquet(path) for path in paths]
    return pl.concat(frames, how="diagonal_relaxed")


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
