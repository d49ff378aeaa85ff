import numpy as np
import polars as pl
import pytest

from lmshape import comparisons
from lmshape.numerics import bootstrap


def scored(*values: float) -> pl.DataFrame:
    return pl.DataFrame({"query": [f"q{i}" for i in range(len(values))], "ndcg_at_10": list(values)})


def test_every_pair_of_sizes_is_compared_on_its_own_data_set_and_side_with_the_larger_first():
    keys = [("d", "input", size) for size in ("s", "m", "l")] + [("d", "output", "s"), ("e", "input", "s")]
    rows = comparisons.compare_sizes({key: scored(0.1, 0.9) for key in keys}, 10)
    assert [(row["dataset"], row["side"], row["first"], row["second"]) for row in rows] == [
        ("d", "input", "m", "s"),
        ("d", "input", "l", "s"),
        ("d", "input", "l", "m"),
    ]


def test_the_probability_is_that_the_larger_size_is_better():
    hard, noise = np.random.default_rng(0).random((2, 200))
    better, worse = scored(*(hard + 0.1 * noise)), scored(*hard)
    for small, large, probability in ((better, worse, 0), (worse, better, 1)):
        scores = {("scidocs", "input", "1b"): small, ("scidocs", "input", "12b"): large}
        (row,) = comparisons.compare_sizes(scores, 200)
        assert (row["first"], row["second"], row["probability"]) == ("12b", "1b", probability)
        assert {row[end] > 0 for end in ("low", "difference", "high")} == {probability == 1}


def test_a_comparison_is_the_paired_bootstrap_of_both_tables_scores():
    first, second = np.random.default_rng(0).random((2, 50))
    row = comparisons.compare(scored(*first), scored(*second), 200)
    found = bootstrap.paired(first, second, 200)
    assert row == {
        "difference": found.value,
        "low": found.low,
        "high": found.high,
        "probability": found.probability,
        "queries": 50,
        "reason": None,
    }


def test_a_single_query_gives_nulls_with_a_reason():
    row = comparisons.compare(scored(0.5), scored(0.1), 10)
    assert (row["difference"], row["probability"], row["queries"]) == (None, None, 1)
    assert row["reason"] == "a single query"


def test_a_table_that_was_not_scored_gives_nulls_with_a_reason():
    row = comparisons.compare(scored(0.5, 0.1), scored().cast({"query": pl.String}), 10)
    assert (row["difference"], row["queries"], row["reason"]) == (None, 0, "one was not scored")


def test_different_queries_are_refused():
    with pytest.raises(ValueError, match="different queries"):
        comparisons.compare(scored(0.5, 0.1), scored(0.1, 0.2).reverse(), 10)
