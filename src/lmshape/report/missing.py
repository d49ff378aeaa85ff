"""What a study has no value of, or one in doubt, and why: cells of tables, whole tables, files that were not made."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from lmshape.report.printing import cell

NAMED = 20  # missing values of one reason that are named
VALUES = {  # the column that each table is about
    "retrieval": "value",
    "random_baseline": "value",
    "mteb_tasks": "value",
    "word_similarity": "spearman",
    "anisotropy": "mean",
    "intrinsic_dimension": "mean",
    "pretraining": "loss",
    "comparisons": "difference",
    "published": "difference",
}
# What tells one row from another, in the order a reader looks for it.
KEYS = (
    "quantity", "dataset", "task", "split", "subset", "tokenizer", "suite", "size", "first", "second", "checkpoint",
    "stack", "layer", "side", "vocabulary_rows", "width", "ablation", "seed", "metric", "measure", "centered",
    "estimator", "fraction", "positions",
)  # fmt: skip
# The keys of a study to look at where a table has no value at all.
STUDY_KEYS = {
    "retrieval": "retrieval.models, retrieval.datasets, retrieval.ablations",
    "random_baseline": "retrieval.datasets, retrieval.random_baseline",
    "mteb_tasks": "retrieval.models, retrieval.tasks",
    "word_similarity": "word_similarity.models, word_similarity.datasets",
    "anisotropy": "hidden_states.models, hidden_states.tokens, hidden_states.batch_size, text",
    "intrinsic_dimension": "hidden_states.models, hidden_states.tokens, hidden_states.batch_size, text, "
    "intrinsic_dimension.estimators, intrinsic_dimension.neighbors",
}


def gaps(name: str, table: pl.DataFrame) -> list[dict[str, Any]]:
    """The missing values of a table by reason: how many, and which (the first few)."""
    value = value_column(table)
    if value is None:
        return []
    return by_reason(
        name, table.filter(pl.col(value).is_null()).with_columns(reason=_reason(table)), "reason"
    )


def doubts(name: str, table: pl.DataFrame) -> list[dict[str, Any]]:
    """The values of a table that are no plain numbers, as its `doubt` says, like `gaps`."""
    return by_reason(name, table.drop_nulls("doubt"), "doubt") if "doubt" in table.columns else []


def shortened(name: str, table: pl.DataFrame) -> list[dict[str, Any]]:
    """The values of a table that are of fewer batches than asked for, as their `reason` says, like `gaps`."""
    if not {"batches", "mean", "reason"} <= set(table.columns):
        return []
    return by_reason(name, table.drop_nulls(["mean", "reason"]), "reason")


def by_reason(name: str, table: pl.DataFrame, column: str) -> list[dict[str, Any]]:
    """The rows of a table by what a column says of them: how many, and which (the first few)."""
    keys = [key for key in KEYS if key in table.columns]
    found = []
    for (why,), rows in table.group_by(column, maintain_order=True):
        cells = [", ".join(f"{key} {cell(x)}" for key, x in zip(keys, row, strict=True) if x is not None)
                 for row in rows.select(keys).head(NAMED).iter_rows()]  # fmt: skip
        found.append({"table": name, "reason": why, "count": rows.height, "cells": cells})
    return found


def lost_files(lost: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tables and figures that could not be made, as `gaps` tells missing values; each has a path and a reason."""
    return [
        {"table": f"{Path(each['path']).stem} as a whole", "reason": each["reason"], "count": 1, "cells": []}
        for each in lost
    ]


def valueless(tables: Mapping[str, pl.DataFrame]) -> dict[str, str]:
    """The measured tables without a single value: name -> what to say, with the reasons and the keys to look at."""
    return {
        name: _said(tables[name], keys)
        for name, keys in STUDY_KEYS.items()
        if name in tables and is_empty(tables[name])
    }


def is_empty(table: pl.DataFrame) -> bool:
    """Whether a table has rows, and not one of them a value."""
    value = value_column(table)
    return value is not None and 0 < table.height == table[value].null_count()


def reasons(table: pl.DataFrame) -> list[str]:
    """Why values are missing, the most frequent reason first."""
    counts = table.select(reason=_reason(table)).group_by("reason", maintain_order=True).len()
    return counts.sort("len", descending=True, maintain_order=True)["reason"].to_list()


def value_column(table: pl.DataFrame) -> str | None:
    """The column that a table is about, if it has one: summaries and costs have several."""
    return next((column for column in VALUES.values() if column in table.columns), None)


def _reason(table: pl.DataFrame) -> pl.Expr:
    reason = pl.col("reason") if "reason" in table.columns else pl.lit(None, pl.String)
    return reason.cast(pl.String).fill_null("no reason recorded")


def _said(table: pl.DataFrame, keys: str) -> str:
    first, *others = reasons(table)
    more = f" (and {len(others)} other reasons)" if others else ""
    return f"all {table.height:,} values are missing: {first}{more}. Keys of the study to look at: {keys}"
