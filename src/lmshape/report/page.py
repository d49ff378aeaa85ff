"""The report of a study: one HTML page with everything in it, which loads nothing and runs no script.

It lies in `results/<study>/`, beside the folders `tables/` and `figures/` that it links to.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined

from lmshape.report import figure_data
from lmshape.report.figure_data import NoData
from lmshape.report.figure_list import FIGURES, QUESTIONS, SUMMARIES
from lmshape.report.missing import NAMED, doubts, gaps, lost_files, shortened, valueless
from lmshape.report.printing import FIELD, Printed, cell, compose, printed
from lmshape.report.provenance import Provenance

TEMPLATE = "report.html.j2"
ROWS = 200  # of a table that are printed; the rest is in its file
MODEL = ("architecture", "parameters", "embedding_width", "vocabulary_rows", "tokenizer")


@dataclass(frozen=True)
class Plot:
    """A figure as the page shows it."""

    number: int
    name: str
    question: str
    title: str
    caption: str
    table: str
    printed: Printed
    image: str


def render(
    tables: Mapping[str, pl.DataFrame],
    figures: Mapping[str, str | Path],
    provenance: Provenance,
    choices: Mapping[str, Mapping[str, Any]],
    lost: Iterable[Mapping[str, Any]] = (),
) -> str:
    """The page: `tables` by name; `figures` as name -> SVG file, in any order, with their `choices`; returns HTML.

    `lost` are the tables and figures that could not be made: the `path` of each, and the `reason`.
    """
    drawn = [name for name in FIGURES if name in figures]
    frames = [table for name, table in tables.items() if name != "benchmarks"]  # what was measured
    return _environment().get_template(TEMPLATE).render(
        questions=QUESTIONS,
        plots=[
            plot(number, name, tables[FIGURES[name].table], figures[name], choices.get(name, {}))
            for number, name in enumerate(drawn, start=1)
        ],
        summaries={name: summary(name, tables[name]) for name in SUMMARIES if name in tables},
        summary_words=SUMMARIES,
        models=models(frames),
        datasets=distinct(frames, "dataset", "dataset_revision", "queries"),
        revisions=distinct(frames, "suite", "size", "checkpoint", "model_revision"),
        twins=twins(frames),
        tables=tables,
        height=sum(table.height for table in frames),
        valueless=valueless(tables),
        missing=[*lost_files(lost), *(gap for name, table in tables.items() for gap in gaps(name, table))],
        doubtful=[doubt for name, table in tables.items() for doubt in doubts(name, table)],
        short=[each for name, table in tables.items() for each in shortened(name, table)],
        pruned=pl.DataFrame(provenance.pruned, schema=["combination", "reason"], orient="row"),
        absent=absent([*drawn, *(Path(each["path"]).stem for each in lost)]),
        provenance=provenance,
        shown=ROWS,
        named=NAMED,
    )  # fmt: skip


def _environment() -> Environment:
    """Everything a template prints is escaped, and a name it misspells is an error."""
    loader = PackageLoader("lmshape.report", ".")
    page = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page.filters |= {"cell": cell, "numeric": numeric}
    return page


def plot(number: int, name: str, table: pl.DataFrame, svg: str | Path, choices: Mapping[str, Any]) -> Plot:
    """One figure with its caption and the rows it shows; where it shows none, the caption says why."""
    entry = FIGURES[name]
    try:
        rows = figure_data.plotted(getattr(figure_data, name), table, **choices)
        caption = entry.caption.format(**figure_data.facts(rows))
    except NoData as reason:
        rows, caption = pl.DataFrame(), f"No data: {reason}."
    return Plot(number, name, entry.question, entry.title, caption, entry.table, printed(rows), embed(svg))


def absent(drawn: Iterable[str]) -> pl.DataFrame:
    """The figures that are not among the `drawn` ones, and the keys of a study that give them."""
    figures = [(entry.title, entry.needs.keys) for name, entry in FIGURES.items() if name not in drawn]
    return pl.DataFrame(figures, schema=["figure", "comes with"], orient="row")


def summary(name: str, table: pl.DataFrame) -> Printed:
    """A summary in print: its final checkpoints, in the columns that readers see, though all of it be lost."""
    columns = SUMMARIES[name].columns
    fields = [field for pattern in columns.values() for field, _ in FIELD.findall(pattern)]
    table = table.with_columns(pl.lit(None).alias(field) for field in fields if field not in table.columns)
    if {"checkpoint", "step"} <= set(table.columns):
        table = figure_data.final(table)
    return compose(table, columns)


def embed(svg: str | Path) -> str:
    """A data address that holds an SVG file: an image of its own, so that the ids of two figures cannot clash."""
    return "data:image/svg+xml;base64," + base64.b64encode(Path(svg).read_bytes()).decode()


def models(tables: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """One row per (suite, size) that a table measures, with its facts and how many checkpoints of it there are."""
    keys = ("suite", "size", "checkpoint")
    rows = [table.select(name for name in (*keys, *MODEL) if name in table.columns).unique(maintain_order=True)
            for table in tables if set(keys) <= set(table.columns)]  # fmt: skip
    found = pl.concat(rows, how="diagonal_relaxed") if rows else pl.DataFrame(schema=keys)
    facts = [pl.col(name).drop_nulls().first() for name in MODEL if name in found.columns]
    checkpoints = pl.col("checkpoint").n_unique().alias("checkpoints")
    return found.group_by("suite", "size", maintain_order=True).agg(*facts, checkpoints)


def distinct(tables: Iterable[pl.DataFrame], *columns: str) -> pl.DataFrame:
    """The distinct rows of `columns` in those tables that have them all; no rows if none has."""
    parts = [
        table.select(columns).unique(maintain_order=True)
        for table in tables
        if set(columns) <= set(table.columns)
    ]
    found = pl.concat(parts, how="vertical_relaxed") if parts else pl.DataFrame(schema=columns)
    return found.unique(maintain_order=True)


def twins(tables: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Checkpoints of one model that serve one embedding table, by `same_table_as`: (suite, size, side, checkpoints).

    Some published steps serve the weights of others; a flat line through them is no finding. Tables of whole models
    have no `side`: what they compare is the input table.
    """
    model = ("suite", "size", "side")
    sided = (t if "side" in t.columns else t.with_columns(side=pl.lit("input")) for t in tables)
    found = distinct(sided, *model, "same_table_as", "checkpoint").drop_nulls("same_table_as")
    groups = found.group_by(*model, "same_table_as", maintain_order=True)
    shared = [(*key[:3], ", ".join([key[3], *rows["checkpoint"]])) for key, rows in groups]
    return pl.DataFrame(shared, schema=[*model, "checkpoints"], orient="row")


def numeric(frame: pl.DataFrame) -> list[bool]:
    """Which columns hold numbers, and so are set flush right."""
    return [dtype.is_numeric() for dtype in frame.dtypes]
