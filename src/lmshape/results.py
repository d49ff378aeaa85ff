"""What jobs write: rows as tidy tables, one per value; Parquet for programs and CSV for people."""

from collections.abc import Mapping, Sequence
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


def save_by_query(scores: Mapping[str, Sequence] | None, path: str | Path) -> None:
    """Write the score of every query, in columns; none where a table could not be scored."""
    columns = {"query": pl.String, "ndcg_at_10": pl.Float64}
    write(pl.DataFrame(scores or {}, schema=columns), path)


def of_width(
    rows: str | Path, queries: str | Path, width: int, columns: Sequence[str]
) -> tuple[list[dict], dict[str, list]]:
    """Of two files of the random baseline, what one width has: `columns` of its rows, and nDCG@10 by query."""
    of_rows, of_queries = (pl.read_parquet(path).filter(width=width) for path in (rows, queries))
    return of_rows.select(columns).to_dicts(), of_queries.drop("width").to_dict(as_series=False)


def write(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a frame as its name's ending says: .parquet, or .csv, where a list becomes numbers parted by spaces."""
    with writing(path) as temporary:
        if Path(path).suffix == ".csv":
            lists = pl.selectors.list()
            frame.with_columns(lists.cast(pl.List(pl.String)).list.join(" ")).write_csv(temporary)
        else:
            frame.write_parquet(temporary)
