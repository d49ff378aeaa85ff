"""What jobs write: rows with the columns of their combination, alike in both formats."""

import polars as pl
import pytest

from lmshape import results
from lmshape.errors import LmshapeError


def test_rows_carry_the_columns_of_their_combination(tmp_path):
    results.save_rows([{"value": 1.0}, {"value": None}], {"suite": "a", "step": None}, tmp_path / "a.parquet")
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert frame.columns == ["suite", "step", "value"]
    assert frame["value"].to_list() == [1.0, None]


def test_csv_and_parquet_hold_the_same(tmp_path):
    frame = pl.DataFrame({"a": [1, None], "b": ["x", "y, z"]})
    for name in ("t.csv", "t.parquet"):
        results.write(frame, tmp_path / name)
    assert pl.read_csv(tmp_path / "t.csv").equals(pl.read_parquet(tmp_path / "t.parquet"))


def test_a_job_without_rows_is_an_error(tmp_path):
    with pytest.raises(LmshapeError, match="at least one row"):
        results.save_rows([], {}, tmp_path / "a.parquet")


def test_a_list_is_numbers_parted_by_spaces_in_csv_and_a_list_in_parquet(tmp_path):
    frame = pl.DataFrame({"mean": [2.0, None], "by_batch": [[1.5, 2.5], None]})
    for ending in ("csv", "parquet"):
        results.write(frame, tmp_path / f"table.{ending}")
    assert (tmp_path / "table.csv").read_text() == "mean,by_batch\n2.0,1.5 2.5\n,\n"
    assert pl.read_parquet(tmp_path / "table.parquet").equals(frame)
