"""Nearest neighbours against distances measured one by one."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from lmshape.jobs.memory import distances_mb
from lmshape.numerics import neighbors
from lmshape.numerics.neighbors import distinct, nearest_distances, nearest_within, pooled
from lmshape.numerics.vectors import Unmeasurable

BOTH = pytest.mark.parametrize("convert", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
BLOCKS = pytest.mark.parametrize("block", [1000, 2**20])
KEPT = pytest.mark.parametrize("kept", [0, 2**26], ids=["block by block", "all pairs kept"])


def cut(monkeypatch, block, kept):
    monkeypatch.setattr(neighbors, "BLOCK", block)
    monkeypatch.setattr(neighbors, "KEPT", kept)


def one_by_one(X, k):
    """Distances by subtraction in float64."""
    distances = cdist(X, X)
    np.fill_diagonal(distances, np.inf)
    return np.sort(distances, axis=1)[:, :k]


@BOTH
@BLOCKS
@KEPT
def test_distances_are_those_measured_one_by_one_however_blocks_are_cut(convert, block, kept, monkeypatch):
    cut(monkeypatch, block, kept)
    X = np.random.default_rng(0).standard_normal((150, 12))
    np.testing.assert_allclose(nearest_distances(convert(X), 20), one_by_one(X, 20), rtol=1e-9)


@BOTH
def test_trap_23_near_duplicates_beside_an_outlier_dimension_keep_their_distances(convert):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 32))
    X[:, 7] += np.where(np.arange(200) % 2, 3000, -3000)  # no mean takes these away
    X[100:120] = X[80:100] + 1e-7 * rng.standard_normal((20, 32))
    want = one_by_one(X, 5)
    assert want[100:120, 0].max() < 2e-6
    np.testing.assert_allclose(nearest_distances(convert(X), 5), want, rtol=1e-9)


def test_trap_23_a_matrix_product_alone_would_lose_them():
    """The trap is real: the same distances without measuring close pairs again are wrong."""
    X = np.random.default_rng(0).standard_normal((50, 32)) + 3000
    X[1] = X[0] + 1e-7
    squares = (X**2).sum(1)
    by_product = squares[0] + squares[1] - 2 * X[0] @ X[1]
    truth = ((X[0] - X[1]) ** 2).sum()
    assert abs(by_product - truth) > truth
    assert nearest_distances(X, 1)[0, 0] == pytest.approx(truth**0.5, rel=1e-9)


def test_two_tight_clusters_far_apart():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.standard_normal((60, 3)) * 1e-6 + 1000, rng.standard_normal((60, 3)) * 1e-6 - 1000]
    )
    np.testing.assert_allclose(nearest_distances(X, 10), one_by_one(X, 10), rtol=1e-9)


@BOTH
def test_distinct_keeps_first_occurrences_in_order_and_counts_the_rest(convert):
    X = np.array([[3, 0.0], [1, 2], [3, -0.0], [0, 1], [1, 2], [3, 0]])
    rows, dropped = distinct(convert(X))
    assert np.asarray(rows).tolist() == [[3, 0], [1, 2], [0, 1]]
    assert dropped == 3


def test_as_many_neighbours_as_vectors_is_an_error():
    with pytest.raises(Unmeasurable, match="10 neighbours asked for, but 10 different vectors have 9 each"):
        nearest_distances(np.random.default_rng(0).random((10, 2)), 10)


def test_every_vector_has_the_others_as_neighbours_and_never_itself():
    X = np.arange(5.0)[:, None]
    assert nearest_distances(X, 4)[0].tolist() == [1, 2, 3, 4]
    assert nearest_distances(X, 4)[2].tolist() == [1, 1, 2, 2]


def test_torch_sets_no_lower_precision_for_distances():
    X = np.random.default_rng(0).standard_normal((300, 64))
    torch.testing.assert_close(
        nearest_distances(torch.from_numpy(X), 3), nearest_distances(X, 3), rtol=1e-12, atol=0
    )


def hard(name):
    """Vectors on which a product alone goes wrong, or a set's neighbours are not those of the whole."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((240, 24))
    match name:
        case "a large mean":
            X += 1e6
        case "massive rows":
            X[:4, 3] += 1e7
        case "twins in different sets":
            X[120:] = X[:120] + 1e-9 * X[120:]
        case "equal distances":
            X = np.eye(240)
        case "tiny":
            X *= 1e-30
    return X


@BOTH
@BLOCKS
@KEPT
@pytest.mark.parametrize(
    "name", ["a large mean", "massive rows", "twins in different sets", "equal distances", "tiny"]
)
def test_one_search_gives_several_sets_the_neighbours_that_each_has_alone(
    name, block, kept, convert, monkeypatch
):
    cut(monkeypatch, block, kept)
    X = hard(name)
    whole, late, even = np.arange(240), np.arange(3, 240), np.arange(0, 240, 2)
    few = np.array([0, 17, 200, 239])
    for sets in ([whole, late], [whole, late, even, few], [even, even + 1], [few]):
        for members, found in zip(sets, nearest_within(convert(X), 9, sets), strict=True):
            want = one_by_one(X[members], min(9, len(members) - 1))
            np.testing.assert_allclose(found, want, rtol=1e-9)


def test_pooled_sets_share_the_rows_that_they_have_in_common():
    X = np.array([[1.0, 0], [2, 0], [1, -0.0], [3, 0], [2, 0]])
    rows, places = pooled(X, [np.array([0, 1, 2]), np.array([3, 4])])
    assert rows.tolist() == [[1, 0], [2, 0], [3, 0]]
    assert [each.tolist() for each in places] == [[0, 1], [1, 2]]


def test_memory_is_asked_for_as_many_distances_as_are_kept():
    kept = int(neighbors.KEPT**0.5)
    assert distances_mb(kept - 1) < distances_mb(kept) == distances_mb(2 * kept) == 8 * neighbors.KEPT / 1e6
