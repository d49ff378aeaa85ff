"""Tables in print: what rows share is said once, and a number has the digits that its error leaves it."""

import math

import polars as pl
import pytest

from lmshape.report.printing import cell, compose, printed, with_error, write


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, "–"),
        (True, "yes"),
        (0.123456, "0.1235"),
        (1e-9, "1e-09"),
        (134515008, "134,515,008"),
        ("x", "x"),
    ],
)
def test_cells_are_written_for_readers(value, wanted):
    assert cell(value) == wanted


@pytest.mark.parametrize(
    ("value", "error", "wanted"),
    [
        (0.000938, 0.004391, ("0.0009", "0.0044")),
        (0.03164, 0.4829, ("0.03", "0.48")),
        (11.0168, 0.0414, ("11.017", "0.041")),
        (1234.5, 56.0, ("1,234", "56")),
        (1234.5, 5678.0, ("1,234", "5,678")),
        (-0.003461, 0.01456, ("-0.003", "0.015")),
        (0.5, 0.0, ("0.5", "0")),
        (0.5, math.nan, ("0.5", "nan")),
        (0.5, math.inf, ("0.5", "inf")),
    ],
)
def test_a_value_has_the_digits_that_its_error_leaves_it(value, error, wanted):
    assert with_error(value, error) == wanted


@pytest.mark.parametrize(
    ("pattern", "row", "wanted"),
    [
        ("{suite} {size}", {"suite": "a", "size": "1m"}, "a 1m"),
        ("{rise} ± {error}", {"rise": 1.23456, "error": 0.25}, "1.23 ± 0.25"),
        ("{rise} ± {error}", {"rise": 1.23456, "error": None}, "1.235"),
        ("{rise} ± {error}", {"rise": None, "error": None}, None),
        ("{peak:.2f} ({low:.2f} to {high:.2f})", {"peak": 1 / 3, "low": 0.0, "high": 1.0}, "0.33 (0.00 to 1.00)"),
        ("{peak:.2f} ({low:.2f} to {high:.2f})", {"peak": 1 / 3, "low": None, "high": None}, "0.33"),
        ("{step} ({low} to {high})", {"step": 143000, "low": 64, "high": 143000}, "143,000 (64 to 143,000)"),
    ],
)  # fmt: skip
def test_a_pattern_is_filled_with_what_a_row_has(pattern, row, wanted):
    assert write(pattern, row) == wanted


def test_what_all_rows_share_is_said_once_and_what_none_has_is_not_said():
    rows = pl.DataFrame(
        {"size": ["a", "b"], "queries": [400, 400], "value": [0.5, 0.25], "step": [None, None]}
    )
    found = printed(rows)
    assert found.rows.columns == ["size", "value"] and found.numbers == [False, True]
    assert found.common == {"queries": "400"}
    assert found.rows.rows() == [("a", 0.5), ("b", 0.25)]


def test_a_single_row_shares_nothing():
    found = printed(pl.DataFrame({"size": ["a"], "value": [0.5], "step": [None]}))
    assert found.rows.columns == ["size", "value"] and found.common == {}


def test_columns_in_print_are_made_of_those_of_the_table_and_flush_right_where_they_hold_numbers():
    table = pl.DataFrame({"suite": ["a", "a"], "size": ["1", "2"], "rise": [1.0, None], "error": [0.5, None],
                          "reason": [None, "too few"]})  # fmt: skip
    found = compose(table, {"model": "{suite} {size}", "rise": "{rise} ± {error}", "no value": "{reason}"})
    assert found.rows.rows() == [("a 1", "1.00 ± 0.50", None), ("a 2", None, "too few")]
    assert found.rows.columns == ["model", "rise", "no value"] and found.numbers == [False, True, False]
