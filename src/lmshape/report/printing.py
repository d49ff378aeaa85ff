"""How the report prints tables: few columns, what rows have in common said once, numbers as precise as they are."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf, log10

import polars as pl

FIELD = re.compile(r"\{(\w+):?([^}]*)\}")  # as in str.format: a column, and how its numbers are written


@dataclass(frozen=True)
class Printed:
    """Rows without the columns that are the same in all of them (`common`) or that have no value in any.

    `numbers` says which columns hold numbers, and so are set flush right.
    """

    rows: pl.DataFrame
    numbers: list[bool]
    common: Mapping[str, str]


def printed(frame: pl.DataFrame, numbers: Sequence[bool] | None = None) -> Printed:
    """A table for print; `numbers` where the types of its columns do not say which hold some."""
    known = numbers if numbers is not None else [dtype.is_numeric() for dtype in frame.dtypes]
    several = frame.height > 1
    common = [name for name in frame.columns if several and frame[name].n_unique() == 1]
    empty = [name for name in frame.columns if frame[name].null_count() == frame.height]
    kept = {
        name: number for name, number in zip(frame.columns, known, strict=True) if name not in common + empty
    }
    said = {name: cell(frame[name][0]) for name in common if name not in empty}
    return Printed(frame.select(list(kept)), list(kept.values()), said)


def compose(table: pl.DataFrame, columns: Mapping[str, str]) -> Printed:
    """A table whose columns in print are each made of one or several of its own: heading -> pattern of `write`."""
    rows = [[write(pattern, row) for pattern in columns.values()] for row in table.iter_rows(named=True)]
    numbers = [table.schema[FIELD.search(pattern)[1]].is_numeric() for pattern in columns.values()]
    return printed(pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row"), numbers)


def write(pattern: str, row: Mapping[str, object]) -> str | None:
    """A row's values in the fields of a pattern: the first alone where another is missing, None where the first is.

    "{value} ± {error}" are written together: see `with_error`.
    """
    fields = FIELD.findall(pattern)
    values = [row[name] for name, _ in fields]
    if values[0] is None:
        return None
    if None in values:
        pattern, fields, values = FIELD.search(pattern)[0], fields[:1], values[:1]
    if "±" in pattern:
        return " ± ".join(with_error(*values))
    cells = (
        format(value, spec) if spec else cell(value) for value, (_, spec) in zip(values, fields, strict=True)
    )
    return FIELD.sub(lambda _: next(cells), pattern)


def with_error(value: float, error: float) -> tuple[str, str]:
    """A value and its standard error, both to the error's second digit: what follows it in the value is noise."""
    if not 0 < error < inf:
        return cell(value), cell(error)
    places = max(0, 1 - floor(log10(error)))
    return f"{value:,.{places}f}", f"{error:,.{places}f}"


def cell(value: object) -> str:
    """A value as a reader wants it: four significant digits, thousands apart, a dash where there is none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)
