"""Draws the figures of `lmshape.report.figure_list`: one function each, the whole table in, a matplotlib figure out.

The rows behind a figure are chosen by the function of the same name in `lmshape.report.figure_data`; what all
figures share is in `lmshape.report.figure_style`.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from lmshape.files import writing
from lmshape.report import figure_data
from lmshape.report import figure_style as style
from lmshape.report.figure_data import NoData

ESTIMATORS = {"twonn": "TwoNN", "mada": "MADA", "mom": "MoM"}
MEASURES = {"svd": "strongest direction", "average_cosine": "average cosine"}
POSITIONS = {"all": "all positions", "without_first": "without first positions"}
SCORE_LABEL = "Retrieval (nDCG@10)"
WIDTH_LABEL = "Width of the model's embedding table (dimensions)"
DEPTH_LABEL = "Relative depth (0: input of the first block, 1: last layer)"
STEP_LABEL = "Training step (optimiser updates)"
DIMENSION_LABEL = "Intrinsic dimension"
AVERAGE_LABEL = "Intrinsic dimension\n(average over layers)"

Drawing = Callable[[pl.DataFrame], Figure]


def _figure(select: figure_data.Select) -> Callable[[Drawing], Callable[..., Figure]]:
    """Let a function that draws rows take the whole table, in the shared style, and say so where there is no data.

    It takes the choices of the figure, too, as `select` does.
    """

    def decorate(draw: Drawing) -> Callable[..., Figure]:
        @wraps(draw)
        def drawn(table: pl.DataFrame, **choices: Any) -> Figure:
            with style.styled():
                try:
                    return draw(figure_data.plotted(select, table, **choices))
                except NoData as reason:
                    return style.blank(str(reason))

        return drawn

    return decorate


@_figure(figure_data.retrieval_by_width)
def retrieval_by_width(rows: pl.DataFrame) -> Figure:
    """nDCG@10 against the width of the stored table: a panel per suite, a line per ablation."""
    facets = style.facets(rows, "suite", "dataset", "side")
    figure, axes = style.panels(len(facets), columns=4)
    looks = style.ablation_styles(rows["ablation"].unique())
    for ax, (title, part) in zip(axes, facets, strict=True):
        for ablation, look in looks.items():
            line = part.filter(ablation=ablation)
            style.curve(ax, line, "embedding_width", "value", error="stderr", label=ablation, **look)
            ax.vlines(
                line["embedding_width"],
                line["lowest"],
                line["highest"],
                color=look["color"],
                lw=5,
                alpha=0.25,
            )
        style.measured_axis(ax, part["embedding_width"], labels=6)
        _tell_apart(ax, part.filter(ablation="original"))
        ax.set_title(title)
    return style.finish(figure, WIDTH_LABEL, SCORE_LABEL, legend=True)


@_figure(figure_data.retrieval_all_suites)
def retrieval_all_suites(rows: pl.DataFrame) -> Figure:
    """nDCG@10 of the unchanged tables against width: a line per suite, dashed for output embeddings."""
    return _by_suite(rows, "value", SCORE_LABEL)


@_figure(figure_data.word_similarity)
def word_similarity(rows: pl.DataFrame) -> Figure:
    """Spearman's correlation against width: a panel per data set, a line per suite."""
    return _by_suite(rows, "spearman", "Correlation with people (Spearman)")


@_figure(figure_data.comparisons)
def comparisons(rows: pl.DataFrame) -> Figure:
    """How probably the larger of two models has the better table: a panel per suite, a cell per pair of sizes."""
    facets = style.facets(rows, "suite", "dataset", "side")
    most = max(part["first"].n_unique() for _, part in facets)
    layout = {"columns": 3 if most < 6 else 2, "height": 0.8 + 0.22 * most, "one_y_axis": False}
    figure, axes = style.panels(len(facets), **layout)
    for ax, (title, part) in zip(axes, facets, strict=True):
        probability, difference = (
            part.pivot("second", index="first", values=column) for column in ("probability", "difference")
        )
        larger, smaller = probability["first"].to_list(), probability.columns[1:]
        words = np.vectorize("{:+.1f}".format)(100 * difference.drop("first").to_numpy())
        style.heat(ax, probability.drop("first").to_numpy(), words, larger, smaller)
        ax.set_title(title)
    colors = ScalarMappable(Normalize(0, 1), style.diverging())
    figure.colorbar(colors, ax=axes, aspect=40, label="Probability that\nthe larger is better")
    return style.finish(figure, "Smaller model", "Larger model")


@_figure(figure_data.random_baseline)
def random_baseline(rows: pl.DataFrame) -> Figure:
    """nDCG@10 of random tables against width: a line per tokenizer, a band from lowest to highest seed."""
    facets = style.facets(rows, "dataset")
    figure, axes = style.panels(len(facets), columns=2, height=2.8)
    looks = style.styles(rows["tokenizer"].unique())
    for ax, (title, part) in zip(axes, facets, strict=True):
        for (tokenizer, vocabulary), line in part.group_by(
            "tokenizer", "vocabulary_rows", maintain_order=True
        ):
            look = looks[tokenizer]
            name = f"{tokenizer}\n({vocabulary:,} rows)"
            style.curve(ax, line, "width", "value", between=("lowest", "highest"), label=name, **look)
        style.measured_axis(ax, part["width"], labels=16 // len(facets))
        ax.set_title(title)
    return style.finish(figure, "Width of the random table (dimensions)", SCORE_LABEL)


@_figure(figure_data.anisotropy_by_depth)
def anisotropy_by_depth(rows: pl.DataFrame) -> Figure:
    """Anisotropy against relative depth: encoders beside decoders, with and without first positions."""
    return _profiles(rows, "std", "Anisotropy", share=True)


@_figure(figure_data.largest_norms)
def largest_norms(rows: pl.DataFrame) -> Figure:
    """Variance share of the largest one percent of norms against relative depth: encoders beside decoders."""
    return _profiles(rows, "std", "Share of variance", share=True)


@_figure(figure_data.intrinsic_dimension_by_depth)
def intrinsic_dimension_by_depth(rows: pl.DataFrame) -> Figure:
    """TwoNN against relative depth: encoders beside decoders, with and without first positions."""
    return _profiles(rows, "stderr", DIMENSION_LABEL)


@_figure(figure_data.anisotropy_measures)
def anisotropy_measures(rows: pl.DataFrame) -> Figure:
    """Both measures, centred (solid) or not (dashed), against relative depth: a panel per suite."""
    facets = style.facets(rows, "suite", "size", "stack", always=2)
    figure, axes = style.panels(len(facets), columns=4)
    looks = {"svd": style.BLUE, "average_cosine": style.VERMILION}
    for ax, (title, part) in zip(axes, facets, strict=True):
        for measure, color in looks.items():
            for centered, dashes, words in ((True, "-", "centred"), (False, "--", "not centred")):
                line = part.filter(measure=measure, centered=centered)
                look = {"color": color, "linestyle": dashes, "label": f"{MEASURES[measure]}, {words}"}
                style.curve(ax, line, "depth", "mean", band="std", markersize=1.5, **look)
        ax.set_xticks([0, 0.5, 1])
        ax.set_title(title)
    return style.finish(figure, DEPTH_LABEL, "Anisotropy", legend=True)


@_figure(figure_data.anisotropy_by_checkpoint)
def anisotropy_by_checkpoint(rows: pl.DataFrame) -> Figure:
    """Anisotropy against layer: a panel per model, a line per checkpoint, coloured by the step's logarithm."""
    facets = style.facets(rows, "suite", "size", "stack", always=2)
    figure, axes = style.panels(len(facets), columns=3)
    colors = ScalarMappable(style.step_norm(rows["step"]), style.sequential())
    for ax, (title, part) in zip(axes, facets, strict=True):
        for (step,), line in part.group_by("step", maintain_order=True):
            style.curve(ax, line, "layer", "mean", color=colors.to_rgba(step), markersize=2.5)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_title(title)
    bar = figure.colorbar(colors, ax=axes, aspect=30, label=STEP_LABEL)
    ticks = style.step_ticks(rows["step"], labels=10)
    bar.set_ticks(list(ticks), labels=list(ticks.values()))
    bar.minorticks_off()
    return style.finish(figure, "Layer (0: input of the first block)", "Anisotropy")


@_figure(figure_data.pretraining_loss)
def pretraining_loss(rows: pl.DataFrame) -> Figure:
    """Loss against training step: a panel per suite, a line per size."""
    return _by_step(rows, "loss", "Loss (nats per predicted token)", band="spread")


@_figure(figure_data.retrieval_by_step)
def retrieval_by_step(rows: pl.DataFrame) -> Figure:
    """nDCG@10 against training step: a panel per suite and side, a line per size."""
    return _by_step(rows, "value", SCORE_LABEL, error="stderr")


@_figure(figure_data.intrinsic_dimension_by_step)
def intrinsic_dimension_by_step(rows: pl.DataFrame) -> Figure:
    """TwoNN averaged over layers against training step: a panel per suite, a line per size."""
    return _by_step(rows, "mean", AVERAGE_LABEL, error="stderr", between=("lowest", "highest"))


@_figure(figure_data.intrinsic_dimension_estimators)
def intrinsic_dimension_estimators(rows: pl.DataFrame) -> Figure:
    """The average over layers against training step: a panel per model, a line per estimator."""
    facets = style.facets(rows, "suite", "size", "stack", always=2)
    figure, axes = style.panels(len(facets), columns=3)
    methods = rows.select("estimator", "fraction").unique().sort("estimator", "fraction", descending=True)
    looks = style.styles(range(methods.height)).values()
    for ax, (title, part) in zip(axes, facets, strict=True):
        for (estimator, fraction), look in zip(methods.iter_rows(), looks, strict=True):
            line = part.filter(pl.col("estimator") == estimator, pl.col("fraction").eq_missing(fraction))
            name = ESTIMATORS.get(estimator, estimator) + ("" if fraction is None else f", {fraction:g}")
            style.curve(ax, line, "step", "mean", error="stderr", label=name, **look)
        style.step_axis(ax, rows["step"], labels=6)
        ax.set_title(title)
    return style.finish(figure, STEP_LABEL, AVERAGE_LABEL, legend=True)


@_figure(figure_data.cost_by_rule)
def cost_by_rule(rows: pl.DataFrame) -> Figure:
    """Time of all jobs, as bars, and highest peak memory, as points, of every rule."""
    figure, (time, memory) = style.panels(2, columns=2, height=0.3 + 0.16 * rows.height)
    places = range(rows.height)
    bars = time.barh(places, rows["seconds"] / 60, color=style.BLUE, height=0.7)
    jobs = [f"{count:,} job{'s' * (count > 1)}" for count in rows["jobs"]]
    time.bar_label(bars, jobs, padding=3, fontsize=style.FONT - 2, color="0.3")
    memory.plot(rows["peak_memory_mib"], places, "o", color=style.VERMILION)
    memory.set_xscale("log")
    style.log_ticks(memory.xaxis)
    time.set_yticks(places, labels=[name.replace("_", " ") for name in rows["rule"]])
    time.set_ylim(rows.height - 0.4, -0.6)  # the first on top
    time.margins(x=0.2)  # room for the words at the longest bar
    for ax, title in ((time, "Minutes of all jobs"), (memory, "Peak memory of a job (MiB)")):
        ax.grid(axis="x")
        ax.set_title(title)
    return figure


@_figure(figure_data.cost_by_size)
def cost_by_size(rows: pl.DataFrame) -> Figure:
    """Time of a job and its peak memory against the model's number of parameters: a line per rule."""
    figure, axes = style.panels(2, columns=2, height=2.6, one_y_axis=False)
    looks = style.styles(rows["rule"].unique())
    panels = (
        ("seconds_per_job", "Seconds of a job, mean"),
        ("peak_memory_mib", "Peak memory of a job (MiB)"),
    )
    for ax, (column, title) in zip(axes, panels, strict=True):
        for rule, look in looks.items():
            line = rows.filter(rule=rule).drop_nulls(column)
            style.curve(ax, line, "parameters", column, label=rule.replace("_", " "), **look)
        style.measured_axis(ax, rows["parameters"], labels=8, write=style.short)
        ax.set_yscale("log")
        style.log_ticks(ax.yaxis)
        ax.set_title(title)
    return style.finish(figure, "Parameters of the model", "", legend=True)


def save(figure: Figure, stem: str | Path) -> None:
    """Write `stem`.svg and `stem`.png (200 dots per inch); equal figures give equal bytes."""
    for kind, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
        with style.styled(), writing(f"{stem}.{kind}") as temporary:
            figure.savefig(temporary, format=kind, dpi=200, metadata=metadata)


def _profiles(rows: pl.DataFrame, band: str, label: str, share: bool = False) -> Figure:
    """`mean` against relative depth: a column of panels per stack, a row per choice of positions.

    The axis of a `share` shows all from 0 to 1, and more where a band of deviations reaches further.
    """
    stacks, choices = _ordered(rows["stack"], ("encoder", "decoder")), _ordered(rows["positions"], POSITIONS)
    looks = style.model_styles(rows)
    height = max(1.9, 0.13 * len(looks))  # room for every model's name
    figure, axes = style.panels(len(stacks) * len(choices), columns=len(stacks), height=height)
    for ax, (positions, stack) in zip(axes, product(choices, stacks), strict=True):
        for (suite, size), look in looks.items():
            line = rows.filter(suite=suite, size=size, stack=stack, positions=positions)
            style.curve(ax, line, "depth", "mean", band=band, label=f"{suite} {size}", markersize=2, **look)
        ax.set_xlim(-0.05, 1.05)  # also where few layers have a value
        ax.set_title(f"{stack.capitalize()}s, {POSITIONS.get(positions, positions)}")
    if share:
        low, high = axes[0].get_ylim()  # of all panels: they share the axis
        axes[0].set_ylim(min(low, 0), max(high, 1))
    return style.finish(figure, DEPTH_LABEL, label)


def _by_suite(rows: pl.DataFrame, value: str, label: str) -> Figure:
    """`value` against width: a panel per data set, a line per suite, dashed for output embeddings."""
    facets = style.facets(rows, "dataset")
    figure, axes = style.panels(len(facets), columns=2, height=2.8)
    looks = style.styles(rows["suite"].unique())
    for ax, (title, part) in zip(axes, facets, strict=True):
        for (suite, side), line in part.group_by("suite", "side", maintain_order=True):
            name, dashes = (suite, "-") if side == "input" else (f"{suite} ({side})", "--")
            bars = {"error": "stderr", "label": name, "linestyle": dashes}
            style.curve(ax, line, "embedding_width", value, **bars, **looks[suite])
        style.measured_axis(ax, part["embedding_width"], labels=16 // len(facets))
        ax.set_title(title)
    return style.finish(figure, WIDTH_LABEL, label)


def _by_step(rows: pl.DataFrame, value: str, label: str, **spread: str | tuple[str, str]) -> Figure:
    """`value` against training step: a panel per suite (and side, stack, data set), a line per size."""
    facets = style.facets(
        rows, *(key for key in ("suite", "side", "stack", "dataset") if key in rows.columns)
    )
    figure, axes = style.panels(len(facets), columns=3, height=2.3)
    for ax, (title, part) in zip(axes, facets, strict=True):
        sizes = part["size"].unique(maintain_order=True)
        for size, color in zip(sizes, style.shades(style.BLUE, len(sizes)), strict=True):
            style.curve(ax, part.filter(size=size), "step", value, color=color, label=size, **spread)
        style.step_axis(ax, rows["step"], labels=8 if len(facets) <= 2 else 5)
        ax.set_title(title)
    return style.finish(figure, STEP_LABEL, label)


def _tell_apart(ax: Axes, rows: pl.DataFrame) -> None:
    """Write the sizes beside the points of models that share a width, the better one's above."""
    rows = rows.filter(pl.len().over("embedding_width") > 1).drop_nulls("value")
    rows = rows.with_columns(rank=pl.col("value").rank("ordinal").over("embedding_width"))
    for width, value, size, rank in rows.select("embedding_width", "value", "size", "rank").iter_rows():
        at = {"xytext": (5, 8 * rank - 12), "textcoords": "offset points", "va": "center"}
        ax.annotate(size, (width, value), fontsize=style.FONT - 2, color="0.3", **at)


def _ordered(values: pl.Series, known: Iterable[str]) -> list[str]:
    """The distinct values, those of `known` first and in its order."""
    present = values.unique().sort().to_list()
    return [name for name in known if name in present] + [name for name in present if name not in known]
