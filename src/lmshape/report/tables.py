"""Rows of many jobs as one table."""

from collections.abc import Iterable
from pathlib import Path

import polars as pl


def collect(paths: Iterable[str | Path]) -> pl.DataFrame:
    """The rows of all files in one frame, in the order of the files.

    A column that is null throughout one file has no type there and takes that of the others.
    """
    frames = [pl.read_parquet(path) for path in paths]
    return pl.concat(frames, how="diagonal_relaxed")


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
