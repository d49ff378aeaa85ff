"""Which random tables are drawn, how much of each, and which scores are taken from the baseline."""

import pytest
from test_study import study, suite

from lmshape.study import grid as grids
from lmshape.study import random_streams
from lmshape.study.random_streams import Stream

SUITES = {
    "a": suite("a", {"small": 64, "large": 128}),
    "b": suite("b", {"small": 96}, tokenizer="other"),
}


def built(widths=None, **settings):
    more = {"ablations": ["original", "random", "pad-256", "shuffled"], "seeds": [0, 3]} | settings
    if widths:
        more["random_baseline"] = {"widths": widths, "seeds": [3]}
    return grids.build(study({"a": {}, "b": {}}, **more), SUITES)


def test_a_stream_has_the_columns_of_its_widest_reader():
    wide = {Stream(100, 14336, seed): 128 for seed in ("0", "3")}
    padded = {Stream(100, 256, seed): 256 for seed in ("0", "3")}
    assert random_streams.columns(built()) == wide | padded
    assert random_streams.columns(built([16, 300])) == wide | padded | {Stream(100, 14336, "3"): 300}
    assert random_streams.columns(built(ablations=["original", "shuffled"])) == {}


def test_what_is_padded_to_the_row_length_of_random_tables_takes_columns_of_them():
    assert random_streams.columns(built(ablations=["pad-14336"], seeds=[0])) == {
        Stream(100, 14336, "0"): 14336
    }


def test_a_random_row_is_the_baselines_where_that_has_its_rows_width_seed_and_tokenizer():
    grid = built([64, 96])
    taken = {str(c): path for c in grid.retrieval if (path := random_streams.baseline(grid, c))}
    assert taken == {
        "retrieval/d/a/small/main/input/random/3": "d/tok/3",
        "retrieval/d/b/small/main/input/random/3": "d/other/3",
    }
    assert random_streams.columns(grid)[Stream(100, 14336, "3")] == 128  # of the one that is not


@pytest.mark.parametrize("widths", [None, [64, 128]])
def test_a_baseline_of_other_rows_or_none_has_nothing_to_take(widths):
    rows = {"random_baseline": {"widths": widths, "seeds": [0, 3], "rows": {"tok": 104, "other": 96}}}
    grid = built(**rows) if widths else built()
    assert not any(random_streams.baseline(grid, c) for c in grid.retrieval)
