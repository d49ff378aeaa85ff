import numpy as np
import pytest
from scipy.sparse import random_array

from lmshape.errors import LmshapeError
from lmshape.numerics import random_tables
from lmshape.numerics.random_tables import RandomColumns

COUNTS = random_array((20, 100), density=0.2, format="csr", dtype=np.float32, rng=np.random.default_rng(0))


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
    with table.drawn(np.unique(COUNTS.indices)) as drawn:
        for some in (COUNTS, COUNTS[:7]):  # as often as one likes
            np.testing.assert_allclose(drawn.sums(some), some @ table.array(), atol=1e-6)


@pytest.mark.parametrize("length", [64, 9])
@pytest.mark.parametrize("more", [0, 1, 30])
def test_a_file_of_any_number_of_first_columns_gives_the_sums_of_those_drawn_for_one_reader(
    length, more, tmp_path
):
    """To the last bit: which rows and columns were kept shows nowhere."""
    start, stop = length // 4, length - min(more, length // 2)
    table = RandomColumns(100, length, 3, start, stop)
    random_tables.save(RandomColumns(100, length, 3, 0, length), tmp_path / "drawn")
    (read,) = random_tables.from_file([table], tmp_path / "drawn")
    sums = []
    for each in (table, read):
        with each.drawn(np.unique(COUNTS.indices)) as drawn:
            sums.append(drawn.sums(COUNTS))
    assert np.array_equal(*sums)
    blocks = [rows for _, rows in table.blocks()]
    added = np.zeros_like(sums[0])
    for first, rows in zip(range(0, 100, table.step), blocks, strict=True):
        added += COUNTS.tocsc()[:, first : first + len(rows)] @ rows.float().numpy()
    assert np.array_equal(sums[0], added)


@pytest.mark.parametrize(
    ("rows", "stop", "said"),
    [
        (100, 41, "40 columns of 100 rows, and 0 bytes: the first 41"),
        (90, 40, "44 columns of 90 rows, and 80 bytes"),
    ],
)
def test_a_file_has_two_bytes_a_number_and_one_of_other_rows_or_too_few_columns_is_refused(
    tmp_path, rows, stop, said
):
    random_tables.save(RandomColumns(100, 64, 3, 0, 40), tmp_path / "drawn")
    assert (tmp_path / "drawn").stat().st_size == 2 * 100 * 40
    (table,) = random_tables.from_file([RandomColumns(rows, 64, 3, 8, stop)], tmp_path / "drawn")
    with (
        pytest.raises(LmshapeError, match=f"drawn: {said}"),
        table.drawn(np.arange(3)),
    ):
        pass


def test_without_a_file_the_rows_that_texts_use_are_kept_and_only_until_the_end():
    table = RandomColumns(100, 64, 3, 8, 60)
    with table.drawn(np.array([0, 31, 32, 99])) as drawn:
        assert drawn.file.seek(0, 2) == 4 * 52 * 2
    assert drawn.file.closed


def test_no_more_than_a_block_is_drawn_at_once():
    sizes = [block.shape for _, block in RandomColumns(100, 64, 3, 0, 64).blocks()]
    assert sizes == [(32, 64), (32, 64), (32, 64), (4, 64)]
