"""Figures show the numbers of their tables, say so where there are none, and are saved the same every time."""

import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
import synthetic_tables
from cycler import cycler
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.container import ErrorbarContainer

from lmshape.report import figure_data, figure_list, figure_style, figures
from lmshape.report.figure_list import FIGURES, QUESTIONS
from lmshape.study import ablation_names, grid
from lmshape.study.config import Study
from lmshape.study.suites import load_suites

ROOT = Path(__file__).parents[2]
TABLES = synthetic_tables.all_tables()


USUAL = Study(study="usual", title="Usual")


def draw(name, table=None, study=USUAL):
    table = TABLES[FIGURES[name].table] if table is None else table
    return getattr(figures, name)(table, **FIGURES[name].choices(study))


def rows_of(name, table, study=USUAL):
    return getattr(figure_data, name)(table, **FIGURES[name].choices(study))


@pytest.fixture(scope="module")
def drawn():
    return {name: draw(name) for name in FIGURES}


def lines(ax):
    """Label -> (xs, ys) of the named lines of a panel."""
    named = [bars for bars in ax.containers if not bars.get_label().startswith("_")]
    return {bars.get_label(): bars.lines[0].get_data(orig=True) for bars in named}


def panel(figure, title):
    return next(ax for ax in figure.axes if ax.get_title(loc="left") == title)


def texts(figure):
    return [text.get_text() for text in figure.texts]


# --- the list


def test_figure_list_is_light_enough_to_be_read_while_the_workflow_is_parsed():
    heavy = "{'polars', 'matplotlib', 'seaborn', 'numpy', 'pandas', 'jinja2'}"
    code = f"import sys, lmshape.report.figure_list; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_rows_a_drawing_a_question_and_a_complete_caption(name):
    entry = FIGURES[name]
    assert callable(getattr(figures, name))
    assert entry.question in QUESTIONS
    caption = entry.caption.format(**figure_data.facts(rows_of(name, TABLES[entry.table])))
    assert "unrecorded" not in caption
    assert caption.strip().endswith(".")


STUDY = {
    "study": "some",
    "title": "Some",
    "text": {"corpus": {"source": "wikipedia-extract"}, "held_out": 0.5},
    "retrieval": {
        "models": {"minilm": {}},
        "datasets": {"docs": {"source": "package-documentation", "packages": ["numpy"]}},
    },
    "word_similarity": {"models": {"minilm": {}}, "datasets": {"pairs": "simlex999.txt"}},
    "hidden_states": {"models": {"minilm": {}}},
}
BASELINE = {"widths": [64], "seeds": [0]}
FINAL = {
    "retrieval_by_width", "retrieval_all_suites", "word_similarity", "anisotropy_by_depth", "largest_norms",
    "anisotropy_measures", "intrinsic_dimension_by_depth", "cost_by_rule",
}  # fmt: skip
OVER_TRAINING = {
    "anisotropy_by_checkpoint", "intrinsic_dimension_by_step", "intrinsic_dimension_estimators",
}  # fmt: skip
TRAINED = {"pretraining_loss", "cost_by_size"}


def names_of(**changes):
    """The figures of a study, given the keys in which it differs from STUDY."""
    study = Study.model_validate(
        {key: value for key, value in (STUDY | changes).items() if value is not None}
    )
    return drawn_by(grid.build(study, load_suites(ROOT / "suites")))


def drawn_by(built):
    names = figure_list.drawn(built)
    assert names == [name for name in FIGURES if name in names]
    return set(names)


def retrieval_of(**changes):
    return {"retrieval": STUDY["retrieval"] | changes}


def states_of(**selection):
    return {"hidden_states": {"models": {"minilm": {}, "neox-small": {"sizes": ["0.8m"], **selection}}}}


def test_a_study_of_final_models_has_no_figure_of_training_nor_of_sizes():
    assert names_of() == FINAL


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (states_of(), FINAL | TRAINED),  # its final model is a training step, but one alone
        (states_of(checkpoints=[4]), FINAL | TRAINED | OVER_TRAINING),
        (retrieval_of(ablations=["random"]), FINAL - {"retrieval_all_suites"}),
        (
            {"intrinsic_dimension": {"estimators": ["mada"]}, **states_of(checkpoints="all")},
            (FINAL | TRAINED | OVER_TRAINING) - {"intrinsic_dimension_by_depth", "intrinsic_dimension_by_step"},
        ),
        (
            retrieval_of(models={"bert-small": {"checkpoints": "all"}}, random_baseline=BASELINE),
            FINAL | TRAINED | {"retrieval_by_step", "comparisons", "random_baseline"},
        ),
        (
            retrieval_of(models={"bert-small": {"checkpoints": "all"}}, checkpoint_ablations=["random"]),
            FINAL | TRAINED | {"comparisons"},
        ),
        ({"hidden_states": None, "retrieval": None}, {"word_similarity", "cost_by_rule"}),
    ],
)  # fmt: skip
def test_a_study_has_the_figures_that_its_keys_give_and_no_empty_one(changes, wanted):
    assert names_of(**changes) == wanted


def test_a_study_of_tasks_of_mteb_alone_is_told_that_figures_of_retrieval_come_with_data_sets():
    assert names_of(**retrieval_of(datasets={}, tasks=["STS12"])) == FINAL - {
        "retrieval_by_width",
        "retrieval_all_suites",
    }
    assert FIGURES["retrieval_by_width"].needs.keys == "retrieval.datasets"


def test_the_study_over_training_has_a_summary_only_where_a_model_has_several_steps():
    suites = load_suites(ROOT / "suites")
    for selection, summed in ((states_of(), False), (states_of(checkpoints=[4]), True)):
        built = grid.build(Study.model_validate(STUDY | selection), suites)
        assert ("dimension_over_training" in built.tables) == summed


def test_caption_numbers_are_those_of_the_plotted_rows():
    rows = pl.DataFrame({"queries": [240, 240], "batches": [3, 4], "batch_size": [4096, None]})
    facts = figure_data.facts(rows)
    assert (facts["queries"], facts["batches"], facts["batch_size"]) == ("240", "3 to 4", "4,096")
    assert facts["seeds"] == "an unrecorded number of"


def test_the_caption_says_how_many_models_training_has_made_worse():
    values = {"a": {0: 0.12, 4: 0.13, 128: 0.04}, "b": {0: 0.11, 4: 0.05, 128: 0.12}, "c": {4: 0.2, 128: 0.1}}
    rows = [
        {"dataset": "d", "suite": "s", "side": "input", "size": size, "step": step, "value": value}
        for size, steps in values.items()
        for step, value in steps.items()
    ]
    said = figure_data.facts(pl.DataFrame(rows))["below"]
    assert said.startswith(" Lower at the last step than at step 0: 1 of 2 lines.")
    assert figure_data.facts(pl.DataFrame(rows).filter(size="b"))["below"] == ""
    assert figure_data.facts(pl.DataFrame({"queries": [1]}))["below"] == ""


# --- rows


def test_final_rows_are_main_where_there_is_one_and_the_last_step_where_there_is_none():
    table = synthetic_tables.retrieval().filter(suite="bert-small", ablation="original", metric="ndcg_at_10")
    rows = figure_data.retrieval_by_width(table)
    assert rows["step"].to_list() == [1024, 1024, 1024]
    main = table.filter(step=64).with_columns(step=None, checkpoint=pl.lit("main"), value=pl.lit(0.5))
    rows = figure_data.retrieval_by_width(pl.concat([table, main], how="vertical_relaxed"))
    assert rows["step"].to_list() == [None, None, None]
    assert rows["value"].to_list() == [0.5, 0.5, 0.5]


def test_a_random_table_scored_once_is_shown_for_every_suite_that_shares_tokenizer_and_shape():
    table = synthetic_tables.retrieval().filter(suite="bert-small", step=1024)
    twin = table.filter(pl.col("ablation") != "random").with_columns(suite=pl.lit("twin"))
    rows = figure_data.retrieval_by_width(pl.concat([table, twin])).filter(ablation="random")
    own, borrowed = (rows.filter(suite=suite).drop("suite") for suite in ("bert-small", "twin"))
    assert own.height == 3
    assert own.equals(borrowed)


def test_two_random_tables_of_one_tokenizer_and_width_are_each_shown_by_their_own_score():
    table = synthetic_tables.retrieval().filter(suite="bert-small", size="64x3", step=1024)
    taller = table.with_columns(
        suite=pl.lit("taller"), vocabulary_rows=2 * pl.col("vocabulary_rows"), value=pl.col("value") + 0.25
    )
    rows = figure_data.retrieval_by_width(pl.concat([table, taller])).filter(ablation="random")
    low, high = rows.sort("suite")["value"]
    assert high == pytest.approx(low + 0.25)


def test_seeds_are_averaged_and_their_range_kept():
    rows = figure_data.random_baseline(TABLES["random_baseline"]).filter(
        tokenizer="minilm-tokenizer", width=64
    )
    values = TABLES["random_baseline"].filter(tokenizer="minilm-tokenizer", width=64)["value"]
    assert rows["value"].item() == pytest.approx(values.mean())
    assert (rows["lowest"].item(), rows["highest"].item(), rows["seeds"].item()) == (
        values.min(),
        values.max(),
        3,
    )


def without(table, *missing):
    """The table with the values of these (layer, step) missing."""
    cells = [(pl.col("layer") == layer) & (pl.col("step") == step) for layer, step in missing]
    return synthetic_tables.missing(table, pl.any_horizontal(cells))


def test_average_over_layers_is_of_those_with_a_value_at_every_step_and_says_how_many():
    table = TABLES["intrinsic_dimension"].filter(
        suite="neox-small", size="64x3", fraction=0.2, positions="all"
    )
    rows = rows_of("intrinsic_dimension_by_step", without(table, (0, 64)))
    assert rows["layers"].to_list() == [3] * rows.height
    for step in (64, 256):
        found = rows.filter(step=step).row(0, named=True)
        layers = table.filter((pl.col("step") == step) & (pl.col("layer") > 0))
        values, batches = layers["mean"].to_numpy(), np.array(layers["by_batch"].to_list())
        assert found["mean"] == pytest.approx(values.mean())
        assert (found["lowest"], found["highest"]) == (values.min(), values.max())
        assert found["stderr"] == pytest.approx(batches.mean(axis=0).std(ddof=1) / 2)


def test_a_step_without_any_layer_is_a_gap_in_the_average_and_no_layer_at_every_step_no_data():
    table = TABLES["intrinsic_dimension"].filter(
        suite="neox-small", size="64x3", fraction=0.2, positions="all"
    )
    rows = rows_of("intrinsic_dimension_by_step", without(table, *((layer, 64) for layer in range(4))))
    assert rows.filter(pl.col("mean").is_null())["step"].to_list() == [64]
    assert rows.filter(step=256)["layers"].item() == 4
    with pytest.raises(figure_data.NoData, match="fewer than half of the layers have a value"):
        rows_of("intrinsic_dimension_by_step", without(table, (0, 0), (1, 1), (2, 4), (3, 16)))


def doubted(**where):
    """The table of dimensions, where the values of TwoNN at 0.9 that `where` names are in doubt."""
    cells = pl.all_horizontal(pl.col(name) == value for name, value in (where | {"fraction": 0.9}).items())
    return TABLES["intrinsic_dimension"].with_columns(doubt=pl.when(cells).then(pl.lit("near twins")))


FACCO = Study(study="facco", title="Facco", intrinsic_dimension={"figure_fraction": "facco"})


def test_a_value_in_doubt_is_a_gap_that_the_caption_counts():
    table = doubted(suite="smollm2", layer=12, positions="all")
    rows = rows_of("intrinsic_dimension_by_depth", table, FACCO)
    empty = rows.filter(pl.col("mean").is_null())
    assert empty.select("suite", "positions", "layer").rows() == [("smollm2", "all", 12)]
    caption = FIGURES["intrinsic_dimension_by_depth"].caption.format(**figure_data.facts(rows))
    assert caption.endswith(
        " Left out: 1 value of a layer is in doubt, as too many vectors have a near twin."
    )
    clean = figure_data.facts(rows_of("intrinsic_dimension_by_depth", table))
    assert clean["doubts"] == "" and clean["fraction"] == "0.2"


def test_a_layer_in_doubt_at_any_step_is_in_no_average():
    table = doubted(suite="bert-small", layer=1, step=16)
    rows = rows_of("intrinsic_dimension_by_step", table, FACCO).filter(size="64x3")
    assert dict(rows.group_by("suite").agg(pl.col("layers").unique()).iter_rows()) == {
        "bert-small": [3],
        "neox-small": [4],
    }
    assert (
        "Left out: 3 values of layers are in doubt"
        in figure_data.facts(rows_of("intrinsic_dimension_by_step", table, FACCO))["doubts"]
    )


def test_where_all_is_in_doubt_the_figure_says_why():
    for name in ("intrinsic_dimension_by_depth", "intrinsic_dimension_by_step"):
        assert texts(draw(name, doubted(), FACCO)) == ["no data: near twins"]
        assert texts(draw(name, doubted())) != ["no data: near twins"]


@pytest.mark.parametrize(
    ("settings", "drawn"),
    [
        ({}, 0.2),  # the fraction of the authors of "The shape of learning"
        ({"fractions": ["facco", "llm-microscope"]}, 0.2),
        ({"fractions": ["facco"]}, 0.9),
        ({"fractions": [0.5, 0.3]}, 0.3),
        ({"fractions": ["facco", "llm-microscope"], "figure_fraction": "facco"}, 0.9),
    ],
)
def test_figures_show_one_fraction_unless_they_compare(settings, drawn):
    study = Study(study="some", title="Some", intrinsic_dimension=settings)
    table = TABLES["intrinsic_dimension"]
    table = table.with_columns(fraction=pl.col("fraction").replace({0.2: drawn, 0.9: 0.7}))
    for name in ("intrinsic_dimension_by_depth", "intrinsic_dimension_by_step"):
        assert rows_of(name, table, study)["fraction"].unique().to_list() == [drawn]
    assert rows_of("intrinsic_dimension_estimators", table, study)["fraction"].n_unique() == 3


def test_a_cell_is_the_probability_that_the_larger_model_is_better(drawn):
    ax = panel(drawn["comparisons"], "bert-small")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["64x3", "96x4"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["96x4", "128x6"]
    table = TABLES["comparisons"].filter(suite="bert-small")
    cells = ax.collections[0].get_array()
    for first, second, probability in table.select("first", "second", "probability").iter_rows():
        place = ["96x4", "128x6"].index(first), ["64x3", "96x4"].index(second)
        assert cells[place] == pytest.approx(probability)
    assert cells.mask.tolist() == [[False, True], [False, False]]
    assert [text.get_text() for text in ax.texts] == ["-1.0", "+0.0", "+1.0"]


def test_depth_runs_from_zero_to_one_in_every_model():
    rows = figure_data.anisotropy_by_depth(TABLES["anisotropy"])
    ends = rows.group_by("suite", "size").agg(low=pl.col("depth").min(), high=pl.col("depth").max())
    assert set(ends["low"]) == {0} and set(ends["high"]) == {1}


# --- drawings


def test_lines_of_retrieval_by_width_are_the_means_over_seeds_at_the_stored_width(drawn):
    table = TABLES["retrieval"].filter(suite="neox-small", side="input", step=1024, metric="ndcg_at_10")
    found = lines(panel(drawn["retrieval_by_width"], "neox-small · input"))
    assert list(found) == ["original", "crop-32", "crop-64", "pad-512", "random"]
    for ablation, (xs, ys) in found.items():
        wanted = table.filter(ablation=ablation).group_by("embedding_width").agg(pl.mean("value"))
        assert dict(zip(xs, ys, strict=True)) == pytest.approx(dict(wanted.iter_rows()))


def test_lines_of_anisotropy_by_depth_are_the_layers_of_the_final_model(drawn):
    keys = {"suite": "neox-small", "size": "128x6", "step": 1024, "measure": "svd", "centered": True}
    for positions, words in figures.POSITIONS.items():
        wanted = TABLES["anisotropy"].filter(**keys, positions=positions).sort("layer")
        xs, ys = lines(panel(drawn["anisotropy_by_depth"], f"Decoders, {words}"))["neox-small 128x6"]
        assert xs == pytest.approx(wanted["layer"] / 6)
        assert ys == pytest.approx(wanted["mean"])


def test_encoders_stand_beside_decoders(drawn):
    titles = [ax.get_title(loc="left") for ax in drawn["anisotropy_by_depth"].axes]
    assert [title.split(",")[0] for title in titles] == ["Encoders", "Decoders", "Encoders", "Decoders"]
    assert set(lines(drawn["anisotropy_by_depth"].axes[0])) == {
        "minilm l6", "bert-small 64x3", "bert-small 96x4", "bert-small 128x6"
    }  # fmt: skip


def test_checkpoints_are_one_line_each_and_darker_with_training(drawn):
    ax = panel(drawn["anisotropy_by_checkpoint"], "neox-small · 64x3")
    table = TABLES["anisotropy"].filter(
        suite="neox-small", size="64x3", measure="svd", centered=True, positions="all"
    )
    assert len(ax.lines) == len(synthetic_tables.STEPS)
    for line, step in zip(ax.lines, synthetic_tables.STEPS, strict=True):
        assert line.get_ydata() == pytest.approx(table.filter(step=step).sort("layer")["mean"])
    brightness = [sum(mpl.colors.to_rgb(line.get_color())) for line in ax.lines]
    assert brightness == sorted(brightness, reverse=True)


def test_estimators_without_a_fraction_are_drawn_beside_both_fractions_of_twonn(drawn):
    found = lines(panel(drawn["intrinsic_dimension_estimators"], "bert-small · 96x4"))
    assert set(found) == {"TwoNN, 0.9", "TwoNN, 0.2", "MADA", "MoM"}
    table = TABLES["intrinsic_dimension"].filter(suite="bert-small", size="96x4", positions="all", step=16)
    wanted = table.filter(estimator="mom")["mean"].mean()
    assert found["MoM"][1][synthetic_tables.STEPS.index(16)] == pytest.approx(wanted)


def test_loss_is_averaged_over_the_steps_since_the_point_before(drawn):
    loss = dict(TABLES["pretraining"].filter(suite="bert-small", size="96x4")["step", "loss"].iter_rows())
    xs, ys = lines(panel(drawn["pretraining_loss"], "bert-small"))["96x4"]
    assert xs[0] == 0 and xs[-1] == 1024
    for before, step, value in zip([-1, *xs], xs, ys, strict=False):
        since = [number for at, number in loss.items() if before < at <= step]
        assert value == pytest.approx(sum(since) / len(since))
    doublings = np.log2(xs[1:])
    assert max(np.histogram(doublings, bins=np.arange(11.01))[0]) <= 4


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_drawn_outside_its_panel(drawn, name):
    for ax in drawn[name].axes:
        for bars in (found for found in ax.containers if isinstance(found, ErrorbarContainer)):
            xs, ys = bars.lines[0].get_data()
            assert ax.get_xlim()[0] <= min(xs) and max(xs) <= ax.get_xlim()[1]
            assert ax.get_ylim()[0] <= min(ys) and max(ys) <= ax.get_ylim()[1]


@pytest.mark.parametrize("name", FIGURES)
def test_no_name_or_legend_sticks_out_of_the_figure(drawn, name):
    figure = drawn[name]
    figure.draw_without_rendering()  # settles the layout
    box = figure.get_tightbbox()  # inches
    assert min(box.x0, box.y0) >= -0.02
    assert box.x1 <= figure.get_figwidth() + 0.02 and box.y1 <= figure.get_figheight() + 0.02


@pytest.mark.parametrize(
    "name", ["retrieval_by_width", "anisotropy_measures", "intrinsic_dimension_estimators"]
)
def test_the_name_of_the_axis_ends_below_the_legend_where_there_is_one_row_of_panels(name):
    table = TABLES[FIGURES[name].table]
    few = table.filter(pl.col("suite").is_in(["neox-small", "bert-small"]), size="64x3")
    figure = draw(name, few)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert figure.get_figheight() < 3 and len(figure.axes) <= 4
    assert figure._supylabel.get_window_extent().y1 <= legend.get_window_extent().y0


def bands(ax):
    """(lowest, highest) of each shade of a panel."""
    shades = [found for found in ax.collections if isinstance(found, FillBetweenPolyCollection)]
    return [(min(ys), max(ys)) for found in shades for ys in [found.get_paths()[0].vertices[:, 1]]]


def test_a_band_of_deviations_is_never_cut_on_one_side():
    """Two batches that differ much have a deviation larger than their mean."""
    wide = TABLES["anisotropy"].with_columns(std=pl.lit(1.5))
    for name in ("anisotropy_by_depth", "largest_norms", "anisotropy_measures"):
        for ax in draw(name, wide).axes:
            low, high = ax.get_ylim()
            assert bands(ax) and all(
                low <= lowest < 0 and 1 < highest <= high for lowest, highest in bands(ax)
            )


def test_a_share_is_drawn_on_an_axis_from_0_to_1_at_least(drawn):
    for name in ("anisotropy_by_depth", "largest_norms"):
        low, high = drawn[name].axes[0].get_ylim()
        assert low <= 0 and high >= 1


def test_the_band_around_an_average_over_layers_holds_every_layer_and_no_dimension_below_them():
    """One layer far above the others: a deviation on each side would reach below zero."""
    layer = pl.when(pl.col("layer") == 0).then(60.0).otherwise(pl.lit(2.0) + pl.col("layer") / 10)
    ax = draw("intrinsic_dimension_by_step", TABLES["intrinsic_dimension"].with_columns(mean=layer)).axes[0]
    assert {lowest for lowest, _ in bands(ax)} == {2.1} and {highest for _, highest in bands(ax)} == {60.0}
    assert ax.get_ylim()[0] <= 2.1 and ax.get_ylim()[1] >= 60


SPANS = [(70.0, 470.0), (105.0, 180.0), (0.18, 60.0), (95.0, 96.0), (1.0, 250_000.0), (0.02, 90_000.0)]


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("name", ["cost_by_rule", "cost_by_size"])
def test_labels_of_a_log_axis_are_plain_numbers_that_stand_apart(name, span):
    table = TABLES["benchmarks"]
    between = pl.Series(np.geomspace(*span, table.height))
    figure = draw(name, table.with_columns(seconds=between, peak_memory_mib=between))
    figure.draw_without_rendering()
    for ax in figure.axes:
        for axis, side in ((ax.xaxis, "x"), (ax.yaxis, "y")):
            if axis.get_scale() == "log":
                ticks = [label for label in axis.get_ticklabels(which="both") if label.get_text()]
                low, high = axis.get_view_interval()
                shown = [t for t in ticks if low <= t.get_position()[side == "y"] <= high]
                ends = sorted(getattr(t.get_window_extent(), f"interval{side}").tolist() for t in shown)
                assert len(shown) >= 2 and not any("10^" in t.get_text() for t in shown)
                assert all(before[1] < after[0] for before, after in zip(ends, ends[1:], strict=False))


def test_numbers_of_parameters_are_written_as_models_are_named(drawn):
    numbers = (512, 578_880, 22_713_216, 134_515_008, 2_000_000_000)
    assert [figure_style.short(number) for number in numbers] == ["512", "578.9k", "22.7M", "134.5M", "2B"]
    labels = [label.get_text() for label in drawn["cost_by_size"].axes[0].get_xticklabels()]
    assert labels[0] == "262.1k" and labels[-1] == "134.5M"


def test_step_zero_is_drawn_left_of_a_break_and_only_where_it_was_measured():
    table = TABLES["retrieval"]
    ax = draw("retrieval_by_step", table).axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "4", "16", "64", "256", "1024"]
    assert "//" in [text.get_text() for text in ax.texts]
    zero, one, four = (ax.transScale.transform((step, 1))[0] for step in (0, 1, 4))
    assert zero < one < four
    ax = draw("retrieval_by_step", table.filter(pl.col("step") >= 4)).axes[0]
    assert "//" not in [text.get_text() for text in ax.texts]
    assert ax.get_xlim()[0] > 0


def test_many_steps_are_labelled_by_powers_of_ten():
    steps = pl.Series([0, 1, 2, 4, 8, *range(1000, 144000, 1000)])
    labels = ["0", "1", "10", "100", "1k", "10k", "100k"]
    assert list(figure_style.step_ticks(steps, 8).values()) == labels


def test_the_rule_that_took_longest_is_on_top_with_its_jobs_counted(drawn):
    time, memory = drawn["cost_by_rule"].axes
    names = [label.get_text() for label in time.get_yticklabels()]
    assert names[0] == "hidden states" and set(names[1:]) == {"measure anisotropy", "embedding table", "text"}
    assert time.get_ylim()[0] > time.get_ylim()[1]  # the first on top
    widths = [bar.get_width() for bar in time.containers[0]]
    hidden = TABLES["benchmarks"].filter(rule="hidden_states")
    assert widths[0] == pytest.approx(hidden["seconds"].sum() / 60)
    assert f"{hidden.height} jobs" in [text.get_text() for text in time.texts]
    assert memory.lines[0].get_xdata()[0] == pytest.approx(hidden["peak_memory_mib"].max())


def test_rules_that_know_no_model_have_no_line_against_size():
    rows = figure_data.cost_by_size(TABLES["benchmarks"])
    assert "text" not in rows["rule"] and rows["parameters"].null_count() == 0
    only = TABLES["benchmarks"].filter(suite="minilm")
    assert texts(draw("cost_by_size", only)) == ["no data: no rule ran on models of several sizes"]


# --- missing values


def test_a_missing_layer_is_a_gap():
    failed = (pl.col("layer") == 12) & (pl.col("suite") == "smollm2")
    table = TABLES["anisotropy"].with_columns(mean=pl.when(failed).then(None).otherwise("mean"))
    _, ys = lines(panel(draw("anisotropy_by_depth", table), "Decoders, all positions"))["smollm2 135m"]
    assert np.flatnonzero(np.isnan(ys)).tolist() == [12]


def test_a_line_without_any_value_is_named_in_its_panel():
    figure = draw("intrinsic_dimension_by_step", doubted(suite="bert-small", size="64x3"), FACCO)
    named = {ax.get_title(loc="left"): texts(ax) for ax in figure.axes}
    assert "64x3: no value" in named["bert-small"] and "64x3: no value" not in named["neox-small"]
    estimators = draw("intrinsic_dimension_estimators", doubted(suite="bert-small"))
    assert "TwoNN, 0.9: no value" in texts(panel(estimators, "bert-small · 96x4"))
    everything = draw("anisotropy_by_depth", TABLES["anisotropy"])
    assert not [text for ax in everything.axes for text in texts(ax) if "no value" in text]


@pytest.mark.parametrize("name", [name for name in FIGURES if FIGURES[name].table != "benchmarks"])
def test_a_table_without_values_gives_the_reason(name):
    table = TABLES[FIGURES[name].table]
    value = next(
        column for column in ("value", "mean", "loss", "spearman", "difference") if column in table.columns
    )
    nothing = table.with_columns(pl.lit(None).alias(value), pl.lit("too few tokens").alias("reason"))
    assert texts(draw(name, nothing)) == ["no data: too few tokens"]


@pytest.mark.parametrize("name", FIGURES)
def test_an_empty_table_is_said_to_be_empty(name):
    (text,) = texts(draw(name, TABLES[FIGURES[name].table].clear()))
    assert text.startswith("no data: ")


def test_a_study_without_checkpoints_says_so():
    table = TABLES["retrieval"].filter(suite="minilm")
    said = ["no data: no model of this study has several training steps"]
    assert texts(draw("retrieval_by_step", table)) == said


def test_a_model_of_a_single_step_is_not_among_those_over_training():
    last = (pl.col("suite") == "bert-small") & (pl.col("step") < 1024)
    figure = draw("retrieval_by_step", TABLES["retrieval"].filter(~last))
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["neox-small · input", "neox-small · output"]


# --- style


@given(st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=12))
def test_names_never_overlap_and_stay_in_their_order_and_panel(heights):
    placed = figure_style.spread(np.array(heights), gap=0.08)
    order = np.argsort(heights, kind="stable")
    assert np.all(np.diff(placed[order]) >= 0.08 - 1e-9)
    assert placed.min() >= -1e-9 and placed.max() <= 1 + 1e-9


def test_names_with_room_are_not_moved():
    heights = np.array([0.9, 0.1, 0.5])
    assert figure_style.spread(heights, gap=0.2) == pytest.approx(heights)


def test_ablations_are_listed_by_kind_then_number():
    names = ["random", "crop-128", "pad-512", "crop-64", "original"]
    styles = figure_style.ablation_styles(names)
    assert list(styles) == ["original", "crop-64", "crop-128", "pad-512", "random"]
    assert len({(str(style["color"]), style["marker"]) for style in styles.values()}) == len(names)


def test_the_original_is_drawn_above_the_ablations_that_agree_with_it(drawn):
    bars = {bars.get_label(): bars for bars in panel(drawn["retrieval_by_width"], "minilm").containers}
    heights = {name: found.lines[0].get_zorder() for name, found in bars.items()}
    assert all(heights["original"] > height for name, height in heights.items() if name != "original")


def test_every_kind_of_ablation_has_a_hue_and_one_that_is_new_is_drawn_too():
    assert set(figure_style.ABLATIONS) == set(ablation_names.KINDS)
    styles = figure_style.ablation_styles(["new-2", "random", "new-16", "crop-2"])
    assert list(styles) == ["crop-2", "random", "new-2", "new-16"]
    assert len({str(style["color"]) for style in styles.values()}) == 4


def test_saved_files_are_the_same_every_time(tmp_path):
    for run in ("first", "second"):
        figures.save(draw("retrieval_all_suites"), tmp_path / run / "plot")
    for kind, start in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        first, second = ((tmp_path / run / f"plot.{kind}").read_bytes() for run in ("first", "second"))
        assert first.startswith(start)
        assert first == second
    assert b"<dc:date>" not in (tmp_path / "first" / "plot.svg").read_bytes()
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == ["plot.png", "plot.svg"]


def test_nothing_of_a_users_matplotlibrc_is_in_a_figure(tmp_path):
    figures.save(draw("retrieval_all_suites"), tmp_path / "as ever")
    settings = {"figure.facecolor": "black", "savefig.transparent": True, "savefig.bbox": "tight"}
    settings |= {"text.usetex": True, "axes.formatter.use_locale": True, "lines.dashed_pattern": [1, 9]}
    settings |= {
        "axes.prop_cycle": cycler(color=["red"]),
        "xtick.direction": "in",
        "path.sketch": (1, 100, 2),
    }
    with mpl.rc_context(settings):
        figures.save(draw("retrieval_all_suites"), tmp_path / "with settings")
    for kind in ("svg", "png"):
        ever, settled = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("as ever", "with settings"))
        assert ever == settled
