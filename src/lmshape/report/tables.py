"""Rows of measures as tidy tables: one row per value, Parquet for programs and CSV for people."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from lmshape.errors import LmshapeError
from lmshape.files import writing


def save_rows(rows: Sequence[dict], columns: dict, path: str | Path) -> None:
    """Write the rows of one job as Parquet, each with the `columns` that say which combination it is about."""
    if not rows:
        raise LmshapeError(
            f"{path}: a job must give at least one row (a null with its reason, if all else fails)"
        )
    write(pl.DataFrame([{**columns, **row} for row in rows], infer_schema_length=None), path)


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


def write(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a frame as its name's ending says: .parquet or .csv."""
    with writing(path) as temporary:
        if Path(path).suffix == ".csv":
            frame.write_csv(temporary)
        else:
            frame.write_parquet(temporary)
