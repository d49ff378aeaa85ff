"""Published numbers beside measured ones: which agree, which differ, which cannot be met."""

from pathlib import Path

import documented
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmshape.numerics import trec_measures
from lmshape.report import published
from lmshape.study import grid
from lmshape.study.config import load_study
from lmshape.study.suites import load_suites

ROOT = Path(__file__).parents[2]
PRINTED = published.read()
SUITES = load_suites(ROOT / "suites")


def scored(suite="pythia", size="14m", ablation="original", value=0.01797, seed=None, width=128, **more):
    """A row of the retrieval table, with what `published` reads."""
    row = {
        "suite": suite, "size": size, "checkpoint": "main", "final": True, "side": "input", "ablation": ablation,
        "seed": seed, "tokenizer": "gpt-neox", "embedding_width": width, "width": 9, "metric": "ndcg_at_10",
        "value": value, "precision": "published", "reason": None, "queries": 1000, "vocabulary_rows": 50304,
    }  # fmt: skip
    return row | more


def drawn(value, seed=42, width=128, tokenizer="gpt-neox", rows=50304):
    """A row of the random baseline."""
    return {
        "tokenizer": tokenizer, "width": width, "seed": seed, "metric": "ndcg_at_10", "value": value,
        "precision": "published", "reason": None, "queries": 1000, "vocabulary_rows": rows,
    }  # fmt: skip


def compare(*rows, baseline=()):
    baseline = pl.DataFrame(list(baseline)) if baseline else None
    return published.compare(pl.DataFrame(list(rows), infer_schema_length=None), baseline)


def only(frame, **wanted):
    return frame.filter(**wanted).row(0, named=True)


# --- what was printed


def test_every_number_of_the_study_is_there():
    assert PRINTED["suite"].value_counts().sort("suite").rows() == [
        (None, 300),  # tokenizers x widths x seeds
        ("bloom", 24),
        ("cerebras-gpt", 28),
        ("opt", 36),
        ("pythia", 40),
        ("t5-v1_1", 20),
    ]
    assert PRINTED["published"].is_between(0.6, 8.1).all()


def test_its_suites_and_widths_are_ours():
    models = PRINTED.filter(pl.col("suite").is_not_null())
    assert tuple(models["suite"].unique(maintain_order=True)) == grid.PUBLISHED_SUITES
    for suite, size, tokenizer, width in (
        models.select("suite", "size", "tokenizer", "width").unique().iter_rows()
    ):
        assert SUITES[suite].tokenizer == tokenizer
        if size != "175b":  # of OPT, which is not on the hub
            assert SUITES[suite].sizes[size].width == width


def test_trap_33_numbers_that_are_the_same_for_every_size_are_suspect_and_no_others():
    groups = PRINTED.group_by("suite", "ablation").agg(pl.n_unique("published"), pl.col("suspect").unique())
    for suite, _, numbers, suspect in groups.iter_rows():
        assert suspect == [numbers == 1 and suite is not None]
    pythia = PRINTED.filter(suite="pythia", size="14m")
    assert only(pythia, ablation="crop-128")["published"] != only(pythia, ablation="original")["published"]


def test_a_random_table_printed_with_two_numbers_has_a_note():
    opt = PRINTED.filter(tokenizer="opt", width=512, seed=42, ablation="random")
    assert opt["published"].to_list() == [2.985, 2.635]
    assert opt["note"].to_list() == ["printed as 2.985 and as 2.635"] * 2
    bloom = PRINTED.filter(tokenizer="bloom", ablation="random")  # both files have the same there
    assert bloom["note"].null_count() == bloom.height


# --- beside what was measured


@pytest.mark.parametrize(
    ("value", "status"),
    [(0.01797, "agrees"), (0.01760, "agrees"), (0.01837, "differs"), (0.01757, "differs")],
)
def test_a_number_agrees_within_the_tolerance(value, status):
    """With a thousand queries: half of the digit 0.001, and 0.0369."""
    row = only(compare(scored(value=value)), size="14m", ablation="original")
    assert (row["published"], row["measured"], row["status"]) == (1.797, pytest.approx(100 * value), status)
    assert row["difference"] == pytest.approx(100 * value - 1.797)
    assert row["quantity"] == "nDCG@10 of pythia 14m original"
    assert row["tolerance"] == pytest.approx(0.0374, abs=1e-4)
    assert row["reason"] is None


def swapped(grades: list[int], place: int) -> float:
    """How much nDCG@10 of a query changes when two neighbours in its ranking change places."""
    other = [*grades[:place], grades[place + 1], grades[place], *grades[place + 2 :]]
    one, two = trec_measures.at_cuts([grades, other], [grades] * 2, [10])[
        :, trec_measures.NAMES.index("ndcg")
    ]
    return abs(one - two).item()


@given(st.lists(st.integers(0, 3), min_size=2, max_size=14), st.integers(0, 12))
def test_no_two_neighbours_that_change_places_move_a_query_more_than_is_allowed_for(grades, place):
    assert 100 * swapped(grades, place % (len(grades) - 1)) <= published.SWAPPED * (1 + 1e-12)


def test_what_is_allowed_for_is_a_single_answer_that_changes_places_at_the_top():
    assert 100 * swapped([1, 0, 0], 0) == pytest.approx(published.SWAPPED)


def test_fewer_queries_are_moved_more_by_one_of_them():
    rows = compare(scored(queries=100, value=0.0182))
    row = only(rows, size="14m", ablation="original")
    assert (row["status"], row["tolerance"]) == ("agrees", pytest.approx(0.3696, abs=1e-4))


def test_trap_33_a_suspect_number_is_not_said_to_differ():
    row = only(compare(scored(ablation="crop-128", value=0.01797)), size="14m", ablation="crop-128")
    assert (row["published"], row["status"]) == (1.27, "suspect")
    assert row["measured"] == pytest.approx(1.797) and "1.797" in row["note"]


def test_every_number_of_a_suite_of_the_study_is_a_row_and_of_no_other():
    rows = compare(scored(), scored(suite="minilm", size="22.7m"))
    assert set(rows["suite"]) == {"pythia"} and rows.height == 40
    missing = rows.filter(status="not measured")
    assert missing.height == 40 - 1 - 10  # the original of 14m, and the suspect ones
    assert (
        set(missing["reason"]) == {"not in this study"} and missing["measured"].null_count() == missing.height
    )


def test_every_column_is_explained():
    assert set(compare(scored()).columns) == documented.tables()["published"]


def test_a_score_that_failed_keeps_its_reason():
    row = only(compare(scored(value=None, reason="not finite")), size="14m", ablation="original")
    assert (row["status"], row["reason"]) == ("not measured", "not finite")


def test_one_random_table_stands_for_all_models_of_its_tokenizer_and_width():
    rows = compare(scored(size="1b", width=2048, ablation="random", seed=42, value=0.03592))
    found = rows.filter(ablation="random", width=2048)
    assert sorted(found["size"]) == ["1.4b", "1b"] and set(found["status"]) == {"agrees"}


def test_a_random_table_of_other_rows_is_another_table():
    """Its numbers are on another scale, and so are rounded to other bfloat16 ones."""
    rows = compare(
        scored("pythia", "12b", "random", 0.5, 42, 5120, vocabulary_rows=50688),
        baseline=[drawn(0.5, width=4096, rows=50432), drawn(0.03583, width=5120)],
    )
    assert only(rows, size="12b", ablation="random")["measured"] == pytest.approx(3.583)
    assert only(rows, size="6.9b", ablation="random")["reason"] == "not in this study"
    quantity = "nDCG@10 of random table of gpt-neox, 50304 x 5120, seed 42"
    assert only(rows, size="12b", ablation="random")["quantity"] == quantity


def test_the_published_study_draws_the_rows_that_were_drawn():
    study = load_study({}, ROOT / "config.yaml", [ROOT / "studies/published.yaml"])
    built = grid.build(study, SUITES)
    drawn = {name: built.vocabulary_rows(name) for name in published.DRAWN_ROWS}
    assert drawn == published.DRAWN_ROWS
    assert set(built.tables["random_baseline"]) == set(drawn)


def test_the_random_baseline_is_compared_for_the_tokenizers_and_seeds_it_has():
    rows = compare(scored(), baseline=[drawn(0.01295, seed=43), drawn(0.5, seed=42)])
    baseline = rows.filter(pl.col("suite").is_null())
    assert set(baseline["tokenizer"]) == {"gpt-neox"} and baseline.height == 60
    assert only(baseline, width=128, seed=43)["status"] == "agrees"
    assert only(baseline, width=128, seed=42)["status"] == "differs"
    assert only(rows, size="14m", ablation="random")["measured"] == 50  # the same random table


def test_other_sides_checkpoints_and_metrics_are_left_out():
    others = [{"side": "output"}, {"final": False}, {"metric": "map_at_10"}]
    rows = compare(scored(size="31m"), *(scored(value=0.9, **other) for other in others))
    assert only(rows, size="14m", ablation="original")["measured"] is None
