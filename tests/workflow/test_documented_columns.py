"""docs/measures.md explains every column of every table that a study ends with, and no other."""

import documented
import polars as pl


def test_the_columns_of_a_small_study_are_explained(undisturbed):
    explained = documented.tables()
    for name, table in undisturbed.items():
        assert set(table.columns) == explained[name], name


def test_the_columns_of_the_embedded_study_are_explained(embedded_study):
    explained = documented.tables()
    found = {
        path.stem: pl.read_parquet(path).columns for path in (embedded_study / "tables").glob("*.parquet")
    }
    assert found.keys() == explained.keys() - {"published", "mteb_tasks"}  # which it has nothing for
    for name, columns in found.items():
        assert set(columns) == explained[name], name
