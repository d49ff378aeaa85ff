from dataclasses import replace

import numpy as np
import pytest
from counted import counts, random_counts
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from lmshape.numerics import random_tables, ranking
from lmshape.numerics.random_tables import DrawnRows, RandomColumns
from lmshape.numerics.ranking import RetrievalError, bfloat16, largest, search
from lmshape.numerics.threads import allowed

RNG = np.random.default_rng(0)


def exact(found_counts, table):
    """Cosines in float64, (queries, documents), texts of zeros 0."""
    vectors = [
        side.toarray() @ table.astype(np.float64) for side in (found_counts.queries, found_counts.documents)
    ]
    units = [v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300) for v in vectors]
    return units[0] @ units[1].T


def nearest(some, panels, depth=10, **settings):
    panels = panels if isinstance(panels, list) else [panels]
    width = sum(panel.shape[1] for panel in panels)
    return search(some, some.query_ids, panels, [width], depth, **settings)[width]


def test_what_is_found_has_the_largest_cosines():
    some, table = random_counts(300, 20, 80, 30), RNG.standard_normal((80, 16)).astype(np.float32)
    runs = nearest(some, table).run
    for query, row in zip(some.query_ids, exact(some, table), strict=True):
        run = runs[query]
        expected = np.array(some.document_ids)[np.argsort(-row)[:10]]
        assert list(run) == expected.tolist()
        np.testing.assert_allclose(list(run.values()), np.sort(row)[::-1][:10], atol=1e-6)


@pytest.mark.parametrize("memory", [1, 4 * 60 * 50, 2**30])
def test_blocks_of_documents_do_not_show(memory, monkeypatch):
    some, table = random_counts(200, 10, 40, 8), RNG.standard_normal((40, 12)).astype(np.float32)
    whole = nearest(some, table).run
    monkeypatch.setattr(ranking, "MEMORY", memory)
    assert nearest(some, table).run == whole


def test_a_cosine_is_the_same_whichever_other_texts_are_there():
    some, table = random_counts(200, 10, 40, 8), RNG.standard_normal((40, 12)).astype(np.float32)
    whole = nearest(some, table, 1000).run
    for query in some.query_ids[:3]:
        for document in range(0, 200, 31):
            few = replace(
                some, documents=some.documents[[document]], document_ids=[some.document_ids[document]]
            )
            run = search(few, [query], [table], [12], 1)[12].run
            assert run[query] == {f"d{document}": whole[query][f"d{document}"]}


def test_panels_side_by_side_are_one_table(monkeypatch):
    some, table = random_counts(200, 10, 40, 8), RNG.standard_normal((40, 12)).astype(np.float32)
    monkeypatch.setattr(ranking, "TILE", 4)
    whole, at_a_tile, within_one = (
        nearest(some, panels).run
        for panels in (table, [table[:, :8], table[:, 8:]], [table[:, :5], table[:, 5:]])
    )
    assert at_a_tile == whole
    for query in whole:
        assert within_one[query] == pytest.approx(whole[query], abs=1e-6)


def test_each_width_of_one_pass_is_that_of_the_first_columns_alone(monkeypatch):
    monkeypatch.setattr(random_tables, "BLOCK", 32)
    monkeypatch.setattr(ranking, "TILE", 32)
    some = random_counts(100, 8, 90, 20)
    table = RandomColumns(90, 256, 5, 0, 128)
    at_once = search(some, some.query_ids, [table], [16, 40, 47, 64, 128], 10)
    for width, found in at_once.items():
        assert found.run == nearest(some, replace(table, stop=width)).run
        alone = nearest(some, table.array()[:, :width]).run  # rows added up in another order
        for query in alone:
            assert found.run[query] == pytest.approx(alone[query], abs=1e-6)


def test_a_random_table_is_drawn_once_and_a_query_pooled_once_for_any_blocks_of_documents(monkeypatch):
    monkeypatch.setattr(random_tables, "BLOCK", 32)
    some, table = random_counts(100, 8, 90, 20), RandomColumns(90, 64, 5, 0, 64)
    whole = nearest(some, table).run
    drawn, pooled = [], []
    draw, pool = RandomColumns.blocks, DrawnRows.sums
    monkeypatch.setattr(RandomColumns, "blocks", lambda table: drawn.append(table) or draw(table))
    monkeypatch.setattr(
        DrawnRows, "sums", lambda rows, texts: pooled.append(texts.shape[0]) or pool(rows, texts)
    )
    monkeypatch.setattr(ranking, "MEMORY", 4 * (64 + 2 * ranking.TILE + 7 * 8) * 30)
    blocks = nearest(some, table).run
    assert drawn == [table]
    assert pooled == [8, 30, 30, 30, 9]  # two documents are equal
    assert blocks == whole


def test_trap_27_equal_scores_are_in_trec_order_whatever_the_order_of_the_documents():
    texts = {"a": [0], "b": [0], "é": [0], "B": [0], "10": [0], "9": [0], "other": [1]}
    table = np.eye(2, 4, dtype=np.float32)
    for order in (list(texts), sorted(texts), list(reversed(texts))):
        some = counts({id: texts[id] for id in order}, {"q": [0]}, 2)
        assert list(nearest(some, table, depth=3).run["q"]) == ["é", "b", "a"]
        assert list(nearest(some, table, depth=9).run["q"]) == ["é", "b", "a", "B", "9", "10", "other"]


def test_trap_27_equal_documents_score_equally_in_any_block(monkeypatch):
    table = RNG.standard_normal((50, 33)).astype(np.float32)
    text = RNG.integers(0, 50, 40).tolist()
    others = {f"x{i}": RNG.integers(0, 50, 40).tolist() for i in range(60)}
    some = counts({"a": text, **others, "z": text}, {"q": text}, 50)
    monkeypatch.setattr(ranking, "MEMORY", 1)
    run = nearest(some, table, depth=2).run["q"]
    assert list(run) == ["z", "a"]
    assert run["z"] == run["a"]


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=25),
    st.randoms(),
    st.integers(1, 30),
)
def test_order_of_documents_and_of_equal_ones_never_shows(texts, random, depth):
    table = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=np.float32)
    documents = {f"d{i}": text for i, text in enumerate(texts)}
    mixed = dict(random.sample(list(documents.items()), len(documents)))
    runs = [
        list(nearest(counts(d, {"q": [0, 2]}, 4), table, depth).run["q"].items()) for d in (documents, mixed)
    ]
    assert runs[0] == runs[1]
    cosines = exact(counts(documents, {"q": [0, 2]}, 4), table)[0].astype(np.float32)
    ranked = sorted(
        zip(np.round(cosines, 5), documents, strict=True), key=lambda pair: pair[1].encode(), reverse=True
    )
    expected = [score for score, _ in sorted(ranked, key=lambda pair: -pair[0])][:depth]
    assert [score for _, score in runs[0]] == pytest.approx(expected, abs=2e-5)


def test_trap_28_an_empty_document_scores_zero_and_is_counted():
    table = np.array([[1, 0], [-1, 0], [0, 0]], dtype=np.float32)
    some = counts({"with": [0], "against": [1], "empty": [], "nothing": [2, 2]}, {"q": [0], "": []}, 3)
    found = nearest(some, table)
    assert found.run["q"] == {"with": 1, "nothing": 0, "empty": 0, "against": -1}
    assert set(found.run[""].values()) == {0}
    assert (found.zero_documents, found.zero_queries) == (2, 1)


def test_trap_28_fewer_documents_than_asked_for_are_all_found():
    some = counts({"a": [0], "b": [1]}, {"q": [0]}, 2)
    assert list(nearest(some, np.eye(2, dtype=np.float32), depth=1000).run["q"]) == ["a", "b"]


def test_trap_30_a_querys_own_document_is_left_out_only_where_asked():
    some = counts({"1": [0], "2": [0, 1], "3": [1]}, {"1": [0], "x": [0]}, 2)
    table = np.eye(2, dtype=np.float32)
    assert list(nearest(some, table, 2).run["1"]) == ["1", "2"]
    dropped = nearest(some, table, 2, drop_self=True).run
    assert list(dropped["1"]) == ["2", "3"]
    assert list(dropped["x"]) == ["1", "2"]


def test_trap_30_twins_of_a_querys_own_document_stay():
    some = counts({"1": [0], "2": [0], "3": [0], "4": [1]}, {"2": [0]}, 2)
    assert list(nearest(some, np.eye(2, dtype=np.float32), 3, drop_self=True).run["2"]) == ["3", "1", "4"]


def test_trap_14_a_token_without_a_row_is_refused():
    some = counts({"d": [0, 7]}, {"q": [0]}, 10)
    with pytest.raises(RetrievalError, match="token 7 has no row in a table of 7"):
        nearest(some, np.ones((7, 2), np.float32))
    assert nearest(some, np.ones((8, 2), np.float32)).run[
        "q"
    ]  # its vocabulary is larger than the table; its ids not


def test_only_wanted_queries_are_searched():
    some = counts({"d": [0]}, {"q1": [0], "q2": [0]}, 1)
    assert list(search(some, ["q2", "elsewhere"], [np.ones((1, 1), np.float32)], [1], 5)[1].run) == ["q2"]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
def test_a_table_that_is_not_finite_or_overflows_where_rows_add_up_is_refused(bad):
    table = np.array([[1, 0], [bad, 0]], dtype=np.float32)
    with pytest.raises(RetrievalError, match="not finite"):
        nearest(counts({"d": [1, 1]}, {"q": [0]}, 2), table)


@pytest.mark.parametrize("precision", ["float32", "published"])
@pytest.mark.parametrize("power", [-100, -80, -10, 10, 66, 100])
def test_a_power_of_two_changes_no_digit_where_squares_would_vanish_or_overflow(power, precision):
    some, table = random_counts(50, 5, 40, 300), RNG.standard_normal((40, 12)).astype(np.float32)
    scaled = np.concatenate([np.ldexp(table, power), np.full((1, 12), 1e38, np.float32)])  # a row of no text
    runs = [nearest(some, rows, precision=precision).run for rows in (scaled, table)]
    assert runs[0] == runs[1]
    assert len(runs[0]) == 5


@pytest.mark.parametrize("factor", [1e-24, 1e20])
def test_means_have_the_tables_own_scale(factor):
    some, table = random_counts(20, 1, 40, 9), (RNG.random((40, 3)) * factor).astype(np.float32)
    lengths = some.documents.sum(axis=1)[:, None]
    expected = some.documents @ table.astype(np.float64) / lengths
    found = ranking.means(ranking.with_rows(some.documents, 40), table, "float32")
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_another_precision_is_refused():
    some, table = random_counts(5, 2, 9, 4), np.ones((9, 2), np.float32)
    with pytest.raises(ValueError, match="precision is float32 or published, not 'bfloat16'"):
        nearest(some, table, precision="bfloat16")
    with pytest.raises(ValueError, match="precision is float32 or published, not 'bfloat16'"):
        ranking.means(ranking.with_rows(some.documents, 9), table, "bfloat16")


@given(arrays(np.float32, st.integers(1, 30), elements=st.floats(-100, 100, width=32)))
def test_bfloat16_is_torchs(values):
    torch = pytest.importorskip("torch")
    expected = torch.from_numpy(values).bfloat16().float().numpy()
    assert np.array_equal(bfloat16(values), expected)


@given(
    arrays(np.float32, st.integers(1, 40), elements=st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0])),
    st.integers(1, 45),
)
def test_largest_is_a_stable_sort_cut_off(scores, depth):
    assert largest(scores, depth).tolist() == np.argsort(-scores, kind="stable")[:depth].tolist()


def test_equal_rows_are_grouped_by_the_first():
    matrix = csr_array(np.array([[1, 2], [0, 1], [1, 2], [0, 0], [0, 1], [2, 1]]))
    assert ranking.equal_rows(matrix, np.arange(6)) == [[0, 2], [1, 4], [3], [5]]
    assert ranking.equal_rows(matrix, np.array([5, 4, 3, 2, 1, 0])) == [[0], [1, 4], [2], [3, 5]]


@pytest.mark.parametrize(
    ("said", "threads"),
    [("3", 3), ("4,2", 4), (" 2 ", 2), ("", 5), ("0", 5), ("-1", 5), ("all", 5), ("2.5", 5)],
)
def test_what_a_shell_says_of_threads_is_a_number_or_nothing(monkeypatch, said, threads):
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert allowed() == threads
