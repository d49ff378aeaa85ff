"""The embedded study end to end: its tables mean what they should."""

import csv
import math
from html.parser import HTMLParser

import polars as pl
import pytest
import yaml

SIZES = {"neox-small": ["0.8m", "1.5m", "2.7m"], "bert-small": ["0.6m", "1.1m", "2.1m"]}
STEPS = [0, 1, 4, 16, 64, 128]
LAYERS = {"neox-small": 6, "bert-small": 6, "minilm": 6, "smollm2": 30}
METRICS = 30
LAYER = (
    "suite size parameters architecture checkpoint step layer layers positions mean std batches batch_size"
)
COLUMNS = {  # what readers of the tables rely on
    "retrieval": "suite size parameters checkpoint step side width embedding_width vocabulary_rows ablation seed "
    "dataset metric value stderr queries tokenizer dtype model_revision dataset_revision",
    "random_baseline": "tokenizer vocabulary_rows width seed dataset metric value stderr",
    "anisotropy": f"{LAYER} measure centered rows_dropped seed dtype",
    "intrinsic_dimension": f"{LAYER} estimator fraction rows_dropped seed dtype",
    "word_similarity": "suite size checkpoint side dataset spearman pairs missing",
}


@pytest.fixture(scope="module")
def table(embedded_study):
    """A finished table by name."""
    return lambda name: pl.read_parquet(embedded_study / "tables" / f"{name}.parquet")


@pytest.fixture(scope="module")
def ndcg(table):
    return table("retrieval").filter(metric="ndcg_at_10")


def test_retrieval_has_every_combination_and_no_gap(table):
    rows = table("retrieval")
    final = 8 * (1 + 2 + 1 + 1 + 2)  # models x (original, random x 2, crop-32, crop-64, pad-768 x 2)
    earlier = 6 * (len(STEPS) - 1)
    assert len(rows) == (final + earlier) * METRICS
    assert rows["value"].null_count() == 0
    assert rows["value"].min() >= 0 and rows["value"].max() <= 1
    assert rows["queries"].unique().to_list() == [400]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_table_has_the_columns_of_the_design(table, name):
    assert set(COLUMNS[name].split()) <= set(table(name).columns)


def test_cropping_to_the_full_width_is_the_original(ndcg):
    rows = ndcg.filter(suite="neox-small", size="0.8m", checkpoint="step128")
    values = dict(zip(rows["ablation"], rows["value"], strict=True))
    assert values["crop-64"] == values["original"] != values["crop-32"]


def test_a_random_table_knows_the_tokenizer_and_the_shape_alone(ndcg, table):
    baseline = table("random_baseline").filter(metric="ndcg_at_10")
    random = ndcg.filter(ablation="random")
    assert len(random) == 16
    keys = ["tokenizer", "vocabulary_rows", "width", "seed"]
    joined = random.join(baseline, on=keys, suffix="_baseline")
    assert len(joined) == len(random)
    assert joined["value"].equals(joined["value_baseline"])
    assert random.filter(suite="minilm")["value"].n_unique() == 2  # by seed


def test_wider_random_tables_tell_more_tokens_apart(table):
    rows = (
        table("random_baseline")
        .filter(metric="ndcg_at_10")
        .group_by("tokenizer", "width")
        .agg(pl.mean("value"))
    )
    for _, curve in rows.group_by("tokenizer"):
        values = curve.sort("width")["value"].to_list()
        assert values[-1] > values[0]


def test_a_table_tuned_for_similarity_beats_noise_and_standard_errors_are_plausible(ndcg):
    minilm = ndcg.filter(suite="minilm")
    original = minilm.filter(ablation="original").row(0, named=True)
    assert original["value"] > minilm.filter(ablation="random")["value"].max() + 2 * original["stderr"]
    assert 0.005 < original["stderr"] < 0.5 / math.sqrt(400)


def test_sizes_are_compared_pair_by_pair_as_their_means_differ(table, ndcg):
    rows = table("comparisons")
    assert rows["suite"].value_counts().sort("suite").rows() == [("bert-small", 3), ("neox-small", 3)]
    final = ndcg.filter("final", ablation="original").select("suite", "size", "value")
    means = {(suite, size): value for suite, size, value in final.iter_rows()}
    for row in rows.iter_rows(named=True):
        first, second = (means[row["suite"], row[place]] for place in ("first", "second"))
        assert row["difference"] == pytest.approx(first - second)
        assert row["low"] <= row["difference"] <= row["high"]
        assert (row["probability"] > 0.5) == (first > second) or abs(first - second) < 1e-3


def test_word_similarity_has_every_table_of_the_final_models_and_every_pair(table):
    rows = table("word_similarity")
    tables = 8 + 3  # the models, and the output tables of neox-small
    assert dict(rows.group_by("dataset").len().iter_rows()) == dict.fromkeys(
        ["wordsim353", "simlex999"], tables
    )
    given = rows.select("dataset", pairs=pl.col("pairs") + pl.col("missing")).unique()
    assert dict(given.iter_rows()) == {"wordsim353": 353, "simlex999": 999}
    assert rows["spearman"].null_count() == 0 and rows["final"].all()


def test_a_table_tuned_for_similarity_agrees_with_people_most(table):
    rows = table("word_similarity").filter(dataset="wordsim353")
    best = dict(rows.group_by("suite").agg(pl.max("spearman")).iter_rows())
    assert best["minilm"] > 0.6
    assert best["minilm"] > best["smollm2"] + 0.2 > max(best["neox-small"], best["bert-small"]) + 0.2


def test_the_loss_falls_in_every_size_and_starts_at_chance(table):
    losses = table("pretraining")
    for (suite, size), curve in losses.group_by("suite", "size"):
        curve = curve.sort("step")["loss"]
        assert size in SIZES[suite] and len(curve) == STEPS[-1]
        assert curve[0] == pytest.approx(math.log(4096), abs=0.3)
        assert curve[-20:].mean() < curve[:5].mean() - 1


@pytest.mark.parametrize("name", ["anisotropy", "intrinsic_dimension"])
def test_geometry_has_every_layer_of_every_checkpoint(table, name):
    rows = table(name)
    for suite, layers in LAYERS.items():
        mine = rows.filter(suite=suite)
        assert sorted(mine["layer"].unique()) == list(range(layers + 1))
        if suite in SIZES:
            assert sorted(mine["size"].unique()) == SIZES[suite]
            assert sorted(mine["step"].unique()) == STEPS
    assert sorted(rows["positions"].unique()) == ["all", "without_first"]
    each = rows.group_by("suite", "size", "checkpoint", "layer", "positions").len()["len"].unique()
    assert len(each) == 1  # as many values for every layer of every model


def test_anisotropy_is_a_share_and_is_never_below_that_of_a_ball(table):
    rows = table("anisotropy").filter(measure="svd")
    assert rows["mean"].null_count() == 0
    assert rows["mean"].max() <= 1 and rows["mean"].min() >= 1 / 576
    assert set(rows["batches"]) == {4} and set(rows["batch_size"]) == {4096}
    cosines = table("anisotropy").filter(measure="average_cosine")
    assert cosines["mean"].drop_nulls().is_between(-1, 1).all()


def test_intrinsic_dimension_is_positive_and_below_the_width(table):
    rows = table("intrinsic_dimension")
    assert set(rows["estimator"]) == {"twonn", "mada", "mom"}
    assert set(rows.filter(estimator="twonn")["fraction"]) == {0.9, 0.2}
    present = rows.filter(pl.col("mean").is_not_null())
    assert present["mean"].min() > 0 and present["mean"].max() < 576
    missing = rows.filter(pl.col("mean").is_null())
    assert missing["reason"].null_count() == 0


def test_the_first_layer_of_a_rotary_decoder_has_one_vector_for_each_token_type(table):
    rows = table("intrinsic_dimension").filter(suite="smollm2", layer=0, positions="all", estimator="twonn")
    assert rows["rows_dropped"].min() > 500


def test_what_every_job_took_is_known_by_rule_and_by_size(table):
    rows = table("benchmarks")
    scored = ("dataset", "suite", "size", "checkpoint", "side", "ablation", "seed")
    assert rows.filter(rule="retrieve").height >= table("retrieval").select(scored).n_unique()
    assert set(rows["rule"]) >= {"text", "pretrain", "hidden_states", "measure_anisotropy", "table", "figure"}
    assert rows["seconds"].min() > 0 and rows["job"].is_unique().all()
    hidden = rows.filter(rule="hidden_states")
    assert hidden["parameters"].null_count() == 0 and hidden["peak_memory_mib"].min() > 100


def test_every_figure_is_there_in_both_formats_and_csv_equals_parquet(embedded_study, table):
    figures = embedded_study / "figures"
    stems = {path.stem for path in figures.glob("*.svg")}
    assert len(stems) >= 10 and stems == {path.stem for path in figures.glob("*.png")}
    for path in (embedded_study / "tables").glob("*.csv"):
        with path.open(newline="") as file:
            assert sum(1 for _ in csv.reader(file)) == len(table(path.stem)) + 1


def test_the_report_is_one_page_that_loads_nothing(embedded_study):
    loaded = []

    class Page(HTMLParser):
        def handle_starttag(self, tag, attributes):
            values = dict(attributes)
            loaded.extend(values[key] for key in ("src", "data") if values.get(key))
            if tag == "link":
                loaded.append(values.get("href"))

    Page().feed((embedded_study / "report.html").read_text(encoding="utf-8"))
    assert loaded and all(source.startswith("data:") for source in loaded)


def test_the_resolved_study_is_written_and_names_what_was_pruned(embedded_study):
    resolved = yaml.safe_load((embedded_study / "study.yaml").read_text())
    assert resolved["study"]["retrieval"]["max_length"] == 2048  # a default, resolved
    assert set(resolved["suites"]) == set(LAYERS)
    with (embedded_study / "pruned.csv").open(newline="") as file:
        assert next(csv.reader(file)) == ["combination", "reason"]


def test_a_second_run_has_nothing_to_do(embedded_study, snakemake):
    assert "Nothing to be done" in snakemake("--dry-run").stdout
