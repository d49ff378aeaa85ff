from inspect import signature

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmshape.numerics import ablation as ablations
from lmshape.numerics.ablation import AblationError, apply, principal
from lmshape.study.ablation_names import KINDS, Ablation

RNG = np.random.default_rng(0)
TABLE = (RNG.standard_normal((60, 8)) * np.arange(1, 9) + 3).astype(np.float32)
VOCABULARY = 50  # of 60 rows


def panels(name, seed=None, table=TABLE):
    return apply(Ablation.parse(name), table, VOCABULARY, seed)


def centered(table):
    return ablations.centered(table, VOCABULARY)[0]


def cosines(table):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return unit @ unit.T


@pytest.mark.parametrize("name", KINDS)
def test_the_function_of_an_ablation_asks_for_what_its_name_gives(name):
    asked = signature(getattr(ablations, name)).parameters
    assert ("size" in asked, "seed" in asked) == (KINDS[name].numbered, KINDS[name].draws)


def test_original_is_the_table():
    assert panels("original") == [TABLE]


def test_crop_is_the_first_columns_and_a_full_crop_the_original():
    assert np.array_equal(panels("crop-3")[0], TABLE[:, :3])
    assert np.array_equal(panels("crop-8")[0], TABLE)


def test_random_knows_only_the_shape():
    (first,), (second,) = panels("random", 1), panels("random", 1, table=-TABLE)
    assert first == second
    assert first.shape == TABLE.shape


def test_padding_keeps_the_table_and_a_full_pad_is_the_original():
    first, padding = panels("pad-20", 1)
    assert np.array_equal(first, TABLE)
    assert padding.shape == (60, 12)
    assert panels("pad-8", 1) == [TABLE]


def test_centered_tokens_have_mean_zero():
    np.testing.assert_allclose(panels("centered")[0][:VOCABULARY].mean(axis=0), 0, atol=1e-5)


def test_pca_finds_the_plane_that_the_tokens_lie_in():
    plane = (RNG.standard_normal((60, 2)) @ RNG.standard_normal((2, 8))).astype(np.float32)
    (table,) = panels("pca-2", table=plane)
    expected = cosines(centered(plane)[:VOCABULARY])
    np.testing.assert_allclose(cosines(table[:VOCABULARY]), expected, atol=1e-4)


def test_pca_directions_have_falling_and_largest_variance():
    variances = principal(TABLE, 3, VOCABULARY)[:VOCABULARY].var(axis=0)
    expected = np.linalg.eigvalsh(np.cov(TABLE[:VOCABULARY].T, bias=True))[::-1][:3]
    np.testing.assert_allclose(variances, expected, rtol=1e-4)


def test_all_directions_are_a_rotation_of_the_centered_table():
    table = centered(TABLE)
    np.testing.assert_allclose(cosines(principal(TABLE, 8, VOCABULARY)), cosines(table), atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 200), block=st.integers(1, 64))
def test_pca_does_not_depend_on_its_blocks(rows, block):
    table = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
    whole = np.abs(principal(table, 2, rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ablations, "BLOCK", block)
        blocks = np.abs(principal(table, 2, rows))
    # in terms of what is kept: the norms of the projected rows
    np.testing.assert_allclose(np.linalg.norm(blocks, axis=1), np.linalg.norm(whole, axis=1), atol=1e-2)


def test_shuffled_has_the_same_rows_elsewhere():
    (table,) = panels("shuffled", 3)
    assert not np.array_equal(table, TABLE)
    assert sorted(map(tuple, table)) == sorted(map(tuple, TABLE))
    assert np.array_equal(table, panels("shuffled", 3)[0])
    assert not np.array_equal(table, panels("shuffled", 4)[0])


@pytest.mark.parametrize("name", ["centered", "pca-4", "shuffled", "crop-4", "original"])
def test_trap_14_padding_rows_change_nothing(name):
    wild = TABLE.copy()
    wild[VOCABULARY:] = 1e6
    seed = 0 if name == "shuffled" else None
    (calm,), (with_wild_padding,) = panels(name, seed), panels(name, seed, table=wild)
    assert np.array_equal(calm[:VOCABULARY], with_wild_padding[:VOCABULARY])


@pytest.mark.parametrize(
    ("name", "seed", "error", "message"),
    [
        ("crop-9", None, AblationError, "crop-9 is wider than the table"),
        ("pad-7", 0, AblationError, "pad-7 is narrower than the table"),
        ("random", None, ValueError, "random draws numbers and needs a seed"),
    ],
)
def test_what_cannot_be_is_refused(name, seed, error, message):
    with pytest.raises(error, match=message):
        panels(name, seed)


@pytest.mark.parametrize("name", ["pca-3", "centered", "shuffled"])
def test_more_tokens_than_rows_are_refused_where_all_tokens_matter(name):
    with pytest.raises(AblationError, match=f"{name}: 61 tokens do not fit in a table of 60 rows"):
        apply(Ablation.parse(name), TABLE, 61, 0)


@pytest.mark.parametrize("name", ["original", "crop-3", "pad-20", "random"])
def test_a_token_without_a_row_that_no_text_may_use_is_no_matter_elsewhere(name):
    found = apply(Ablation.parse(name), TABLE, 61, 0)
    assert [str(panel) for panel in found] == [str(panel) for panel in panels(name, 0)]


def test_pca_of_a_table_that_is_not_finite_is_refused():
    with pytest.raises(AblationError, match="not finite"):
        panels("pca-3", table=np.where(TABLE[3, 3] == TABLE, np.nan, TABLE).astype(np.float32))
