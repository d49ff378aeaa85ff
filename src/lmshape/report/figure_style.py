"""The shared style of all figures: panels, lines with their spread, axes and names.

One grammar throughout: a bar is a standard error; a band or a pale wide bar is a spread, as the caption says; a gap
is a missing value. Where suites share a panel the hue names the suite; a darker shade is a larger model. Figures are
made without pyplot, so none outlives its caller.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import cycle
from math import ceil, log, log10

import matplotlib as mpl
import matplotlib.style
import numpy as np
import polars as pl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import Colormap, ListedColormap, SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

WIDTH = 7.0  # inches: the text width of a two-column paper
FONT = 8  # points, at that width
STYLE = {
    **sns.axes_style("ticks"),
    **sns.plotting_context("paper"),
    "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine draws the same
    **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize", "figure.labelsize"), FONT),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), FONT - 1),
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "0.92",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.columnspacing": 1.2,
    "legend.handlelength": 1.8,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 3),
    **dict.fromkeys(("xtick.major.width", "ytick.major.width"), 0.7),
    "svg.fonttype": "path",
    "svg.hashsalt": "lmshape",  # element ids are random without it
}

# Okabe and Ito's colours, which colour-blind readers tell apart; their yellow is too pale for lines on white.
BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
GREY = "#707070"
HUES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Kind of ablation -> its hue; in the order of the legend.
ABLATIONS = {
    "original": "#000000",
    "crop": VERMILION,
    "pad": BLUE,
    "pca": ORANGE,
    "centered": PURPLE,
    "shuffled": SKY,
    "random": GREY,
}


def styled() -> AbstractContextManager:
    """Inside it, figures are drawn as matplotlib comes and in our style, whatever a user's matplotlibrc says."""
    return mpl.style.context(["default", STYLE])


def panels(
    count: int, columns: int, height: float = 1.9, one_y_axis: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure of paper width with `count` panels of `height` inches, at most `columns` in a row."""
    rows = ceil(count / columns)
    columns = ceil(count / rows)
    figure = Figure(figsize=(WIDTH, height * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, sharey=one_y_axis, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.remove()
    return figure, list(axes[:count])


def facets(rows: pl.DataFrame, *keys: str, always: int = 1) -> list[tuple[str, pl.DataFrame]]:
    """(title, rows) of each panel: the first `always` keys name it, and those others that its namesakes differ in."""
    titles = []
    for group, part in rows.group_by(keys, maintain_order=True):
        namesakes = rows.filter(
            pl.col(key) == value for key, value in zip(keys[:always], group, strict=False)
        )
        shown = [key for key in keys[always:] if namesakes[key].n_unique() > 1]
        titles.append((" · ".join(str(part[key][0]) for key in (*keys[:always], *shown)), part))
    return titles


def curve(
    ax: Axes,
    rows: pl.DataFrame,
    x: str,
    y: str,
    error: str | None = None,
    band: str | None = None,
    between: tuple[str, str] | None = None,
    **style,
) -> None:
    """One line through (x, y), nulls as gaps; `error` (bars) and `band` (a shade) are columns, y plus and minus.

    `between` are the two columns that a shade reaches from and to. Points are marked unless they are so many that
    the marks would hide the line. A line whose rows have no value at all is named.
    """
    if rows[y].null_count() == rows.height:
        if rows.height and "label" in style:
            name_absent(ax, style["label"])
        return
    xs, ys = rows[x].to_numpy(), rows[y].to_numpy()
    bars = rows[error].to_numpy() if error else None
    ax.errorbar(xs, ys, yerr=bars, elinewidth=0.9, **{"marker": "o" if rows.height <= 40 else "", **style})
    if band:
        half = rows[band].to_numpy()
        shade(ax, xs, ys - half, ys + half, style["color"])
    if between:
        shade(ax, xs, *(rows[end].to_numpy() for end in between), style["color"])


def name_absent(ax: Axes, name: str) -> None:
    """Name a line that has no point, in a corner of its panel, below those named before."""
    line = sum(text.get_gid() == "absent" for text in ax.texts)
    place = {"xy": (1, 1), "xytext": (-2, -2 - 1.2 * (FONT - 2) * line), "textcoords": "offset points"}
    look = {"ha": "right", "va": "top", "color": "0.4", "fontsize": FONT - 2, "gid": "absent"}
    ax.annotate(f"{name}: no value", xycoords="axes fraction", **place, **look)


def shade(ax: Axes, xs: Sequence[float], low: Sequence[float], high: Sequence[float], color: str) -> None:
    """A band with a thin edge, so that overlapping ones stay apart."""
    ax.fill_between(xs, low, high, facecolor=(color, 0.12), edgecolor=(color, 0.4), lw=0.4)


def heat(
    ax: Axes, values: np.ndarray, words: np.ndarray, rows: Sequence[str], columns: Sequence[str]
) -> None:
    """Cells (rows, columns) coloured by values in 0 to 1, with words in them; NaN is an empty cell."""
    names = {"yticklabels": rows, "xticklabels": columns}
    ends = {"cmap": diverging(), "vmin": 0, "vmax": 1, "cbar": False}
    look = {"linewidths": 1, "linecolor": "white", "annot_kws": {"fontsize": FONT - 2}}
    sns.heatmap(values, mask=np.isnan(values), annot=words, fmt="", ax=ax, **names, **ends, **look)
    ax.grid(False)
    ax.tick_params(length=0, rotation=0, labelsize=FONT - 2)
    sns.despine(ax=ax, left=True, bottom=True)


def finish(figure: Figure, x: str, y: str, legend: bool = False) -> Figure:
    """Name the axes once, and the lines: in one legend where all panels share them, else each at its end."""
    figure.supxlabel(x)
    figure.supylabel(y)
    named = [ax for ax in figure.axes if ax.containers]
    if legend:
        handles = {
            label: handle
            for ax in named
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        }
        columns = min(
            6, 140 // (8 + max(map(len, handles), default=0))
        )  # characters across a page, and a name's
        figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=columns)
    else:
        for ax in named:
            _label_ends(ax)
    return figure


def _label_ends(ax: Axes) -> None:
    """Write each line's name right of its last point, moved up or down just enough that no two overlap."""
    lines = {
        bars.get_label(): bars.lines[0] for bars in ax.containers if not bars.get_label().startswith("_")
    }
    if not lines:
        return
    ax.get_xlim(), ax.get_ylim()  # settles automatic limits, on which the transform below depends
    ends = [line.get_xydata()[np.isfinite(line.get_ydata())][-1] for line in lines.values()]
    heights = (ax.transScale + ax.transLimits).transform(ends)[:, 1]
    panel = 72 * ax.figure.get_figheight() * ax.get_position().height
    gap = 1.3 * (FONT - 1) * max(1 + name.count("\n") for name in lines) / panel
    for (name, line), end, height in zip(lines.items(), ends, spread(heights, gap), strict=True):
        at = {"xy": end, "xytext": (14, height), "textcoords": ("offset points", "axes fraction")}
        pointer = {"arrowstyle": "-", "color": line.get_color(), "lw": 0.5, "shrinkB": 3, "relpos": (0, 0.5)}
        back = {"fc": "white", "ec": "none", "alpha": 0.7, "pad": 0.5}
        look = {
            "va": "center",
            "color": line.get_color(),
            "fontsize": FONT - 1,
            "bbox": back,
            "arrowprops": pointer,
        }
        ax.annotate(name, **at, **look, annotation_clip=False)


def spread(heights: np.ndarray, gap: float) -> np.ndarray:
    """Move `heights` (n,) until neighbours are `gap` apart, within 0 and 1 if there is room for n of them.

    The mean of pushing them upwards and of pushing them downwards, so that a cluster stays where it was.
    """
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    up = np.maximum.accumulate(heights[order] - steps) + steps
    down = np.minimum.accumulate((heights[order] - steps)[::-1])[::-1] + steps
    placed = np.empty_like(up)
    placed[order] = np.clip((up + down) / 2, steps, 1 - steps[::-1])
    return placed


def measured_axis(ax: Axes, numbers: pl.Series, labels: int, write: Callable[[int], str] = str) -> None:
    """A log axis whose ticks are the numbers (widths, parameters) that were measured, as many as fit."""
    ax.set_xscale("log")
    ticks = _spaced(sorted(numbers.unique()), labels)
    ax.set_xticks(ticks, labels=map(write, ticks))
    ax.set_xticks([], minor=True)
    ax.set_xlim(numbers.min() / 1.3, numbers.max() * 1.3)


def short(number: int) -> str:
    """A number of parameters as the names of models have it: 135M, 2.7B."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + unit
    return str(number)


def log_ticks(axis: Axis) -> None:
    """Label a log axis, when all is plotted, with plain numbers that are few enough to stand apart.

    Matplotlib alone labels every digit of a narrow range, one over the other.
    """
    low, high = axis.get_view_interval()
    decades = log10(high / low)
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1, 3) if decades < 4 else (1,)))
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.set_minor_locator(NullLocator())


def step_axis(ax: Axes, steps: pl.Series, labels: int) -> None:
    """A log axis from the first positive step on; step 0, where measured, stands left of a visible break."""
    first = step_norm(steps).linthresh
    ax.set_xscale("symlog", linthresh=first, linscale=0.5)
    ticks = step_ticks(steps, labels)
    ax.set_xticks(list(ticks), labels=list(ticks.values()))
    ax.set_xticks([], minor=True)
    if steps.min() == 0:
        where = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "center"}
        ax.text(first / 2, 0, "//", bbox={"fc": "white", "ec": "none", "pad": 0.3}, **where)


def step_norm(steps: pl.Series) -> SymLogNorm:
    """Step -> [0, 1]: logarithmic from the first positive step on, with a short linear stretch down to 0."""
    first = steps.filter(steps > 0).min() or 1
    return SymLogNorm(first, linscale=0.5, vmin=steps.min(), vmax=max(steps.max(), first), base=10)


def step_ticks(steps: pl.Series, labels: int) -> dict[int, str]:
    """Step -> tick label: the measured steps where they are few, else powers of ten among them."""
    zero, positive = (steps == 0).any(), sorted(steps.filter(steps > 0).unique())
    if len(positive) > 2 * labels:
        positive = [10**power for power in range(ceil(log10(positive[0])), int(log10(positive[-1])) + 1)]
    ticks = [0] * zero + _spaced(positive, labels)
    return {step: f"{step // 1000}k" if step and step % 1000 == 0 else str(step) for step in ticks}


def _spaced(values: Sequence[int], count: int) -> list[int]:
    """Drop those of the sorted `values` that lie within the `count`-th part of the log range from one kept before."""
    kept = list(values[:1])
    for value in values[1:]:
        if log(value / kept[-1]) >= log(values[-1] / values[0]) / count:
            kept.append(value)
    return kept


def ablation_styles(names: Iterable[str]) -> dict[str, dict]:
    """Ablation -> its look, in the legend's order: one hue a kind, darker for a larger N.

    Kinds that ABLATIONS does not know come last, in green. Those named first are drawn above the others: where values
    agree, `original` stays in sight.
    """
    kinds, colors = {name: name.partition("-")[0] for name in names}, {}
    for kind in dict.fromkeys([*ABLATIONS, *sorted(kinds.values())]):
        members = sorted((n for n in kinds if kinds[n] == kind), key=lambda name: (len(name), name))
        colors |= zip(members, shades(ABLATIONS.get(kind, GREEN), len(members)), strict=True)
    heights = np.linspace(3, 2, len(colors))  # drawing order; matplotlib's own lines are at 2
    looks = zip(colors.items(), cycle(MARKERS), heights, strict=False)
    return {name: {"color": color, "marker": marker, "zorder": z} for (name, color), marker, z in looks}


def styles(names: Iterable[str]) -> dict[str, dict]:
    """Name -> hue and marker, in alphabetical order."""
    triples = zip(sorted(names), cycle(HUES), cycle(MARKERS), strict=False)
    return {name: {"color": hue, "marker": marker} for name, hue, marker in triples}


def model_styles(rows: pl.DataFrame) -> dict[tuple[str, str], dict]:
    """(suite, size) -> colour: one hue a suite, darker for a larger model."""
    colors = {}
    for suite, hue in zip(rows["suite"].unique().sort(), cycle(HUES), strict=False):
        sizes = rows.filter(suite=suite).sort("parameters")["size"].unique(maintain_order=True)
        for size, color in zip(sizes, shades(hue, len(sizes)), strict=True):
            colors[suite, size] = {"color": color}
    return colors


def shades(hue: str, count: int) -> list:
    """`count` colours of one hue, from light to dark; the hue itself where one is enough."""
    if count <= 1:
        return [hue] * count
    rgb = np.array(mpl.colors.to_rgb(hue))
    return sns.blend_palette([0.4 + 0.6 * rgb, rgb, 0.45 * rgb], count)


def sequential() -> Colormap:
    """Light to dark without the palest tenth, which white paper swallows."""
    return ListedColormap(mpl.colormaps["viridis_r"](np.linspace(0.1, 1, 256)))


def diverging() -> Colormap:
    """From one hue over a pale grey to another: for what has a middle."""
    return sns.blend_palette([VERMILION, "0.94", BLUE], as_cmap=True)


def blank(reason: str) -> Figure:
    """A figure that says why there is nothing to see."""
    figure = Figure(figsize=(WIDTH, 1.2), layout="constrained")
    figure.text(
        0.5, 0.5, f"no data: {reason}", ha="center", va="center", color="0.3", wrap=True, fontsize=FONT + 1
    )
    return figure
