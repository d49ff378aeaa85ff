import numpy as np
import pytest
from scipy.sparse import random_array

from lmshape.numerics import random_tables
from lmshape.numerics.random_tables import RandomColumns


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(random_tables, "BLOCK", 32)
    monkeypatch.setattr(random_tables, "TILE", 24)


def test_a_column_does_not_depend_on_how_many_are_taken():
    wide = RandomColumns(100, 64, 7, 0, 64).array()
    assert np.array_equal(RandomColumns(100, 64, 7, 0, 16).array(), wide[:, :16])
    assert np.array_equal(RandomColumns(100, 64, 7, 24, 41).array(), wide[:, 24:41])


def test_seeds_differ_and_repeat():
    first, again, other = (RandomColumns(50, 32, seed, 0, 32).array() for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_spread_is_xaviers():
    table = RandomColumns(2000, 512, 0, 0, 512).array()
    assert table.std() == pytest.approx(np.sqrt(2 / 2512), rel=0.01)
    assert abs(table.mean()) < 1e-4


def test_sums_are_counts_times_the_table():
    table = RandomColumns(100, 64, 3, 8, 60)
    counts = random_array(
        (20, 100), density=0.2, format="csr", dtype=np.float32, rng=np.random.default_rng(0)
    )
    with table.drawn(np.unique(counts.indices)) as drawn:
        for some in (counts, counts[:7]):  # as often as one likes
            np.testing.assert_allclose(drawn.sums(some), some @ table.array(), atol=1e-6)


def test_of_a_drawn_table_the_rows_that_texts_use_are_kept_and_only_until_the_end():
    table = RandomColumns(100, 64, 3, 8, 60)
    with table.drawn(np.array([0, 31, 32, 99])) as drawn:
        assert [tokens.tolist() for tokens in drawn.tokens] == [[0, 31], [32], [], [99]]
        assert drawn.file.seek(0, 2) == 4 * 52 * 2
    assert drawn.file.closed


def test_no_more_than_a_block_is_drawn_at_once():
    sizes = [block.shape for _, block in RandomColumns(100, 64, 3, 0, 64).blocks()]
    assert sizes == [(32, 64), (32, 64), (32, 64), (4, 64)]
