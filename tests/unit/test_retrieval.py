import copy
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from counted import counts, random_counts, random_qrels
from scipy.sparse import csr_array

from lmshape import retrieval
from lmshape.inputs import tokens
from lmshape.jobs import memory
from lmshape.numerics import ablation, ranking
from lmshape.numerics.random_tables import RandomColumns
from lmshape.retrieval import METRICS, RetrievalError, score
from lmshape.study.ablation_names import Ablation

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((80, 16)).astype(np.float32)
SOME = random_counts(300, 25, 80, 30)
QRELS = random_qrels(SOME, 12)
EYE = np.eye(3, dtype=np.float32)


def means(scores):
    return {metric: values.mean() for metric, values in scores.values.items()}


def equal(first, second):
    return first.query_ids == second.query_ids and all(
        np.array_equal(first.values[metric], second.values[metric]) for metric in METRICS
    )


def test_the_measures_are_what_they_are_by_hand():
    some = counts({"a": [0], "b": [1], "c": [2]}, {"q": [0]}, 3)  # found in the order a, c, b
    found = means(score(some, [EYE], {"q": {"a": 1}}))
    assert found["ndcg_at_1"] == found["map_at_10"] == found["mrr_at_1"] == found["recall_at_1"] == 1
    assert found["precision_at_3"] == pytest.approx(1 / 3)
    found = means(score(some, [EYE], {"q": {"b": 1}}))
    assert found["mrr_at_1"] == found["recall_at_1"] == 0
    assert found["mrr_at_3"] == found["map_at_3"] == pytest.approx(1 / 3)
    assert found["ndcg_at_3"] == pytest.approx(np.log(2) / np.log(4))


def test_every_measure_of_every_judged_query_is_kept():
    scores = score(SOME, [TABLE], QRELS)
    assert tuple(scores.values) == METRICS
    assert scores.query_ids == sorted(QRELS)
    for values in scores.values.values():
        assert values.shape == (25,)
        assert 0 <= values.min() <= values.max() <= 1


@pytest.mark.parametrize(
    "given",
    [
        lambda: TABLE,
        lambda: torch.from_numpy(TABLE),
        lambda: [torch.from_numpy(TABLE).double().requires_grad_()],
        lambda: (TABLE[:, :10], torch.from_numpy(TABLE[:, 10:])),
        lambda: pl.DataFrame(TABLE),
        lambda: [TABLE.tolist()],
    ],
    ids=["array", "tensor", "tensor that is trained", "panels of two libraries", "data frame", "lists"],
)
def test_a_table_is_any_array_with_a_row_for_each_token(given):
    assert equal(score(SOME, given(), QRELS), score(SOME, [TABLE], QRELS))


@pytest.mark.parametrize("given", [TABLE[0], TABLE.tolist(), [TABLE[None]]])
def test_what_is_no_table_is_refused(given):
    with pytest.raises(RetrievalError, match=r"is no table, which has a row for each token: \(rows, width\)"):
        score(SOME, given, QRELS)


def test_two_runs_are_identical():
    first, second = score(SOME, [TABLE], QRELS), score(SOME, [TABLE], QRELS)
    assert equal(first, second)
    assert retrieval.rows(first, 100) == retrieval.rows(second, 100)


def test_queries_are_searched_in_parts_whose_number_does_not_show(monkeypatch):
    kept = (np.arange(25) != 3)[:, None]  # one query has no tokens
    some = replace(SOME, queries=csr_array(SOME.queries.toarray() * kept))
    widths = {"rows": 90, "widths": [16, 128], "seed": 3, "qrels": QRELS}
    whole = retrieval.random_baseline(some, **widths)
    monkeypatch.setattr(retrieval, "SEARCHED", 7)
    parts = retrieval.random_baseline(some, **widths)
    for width, scores in parts.items():
        assert scores.query_ids == sorted(QRELS)
        assert (scores.zero_documents, scores.zero_queries) == (whole[width].zero_documents, 1)
        assert equal(scores, whole[width])


def test_memory_does_not_grow_with_the_number_of_queries(monkeypatch):
    monkeypatch.setattr(retrieval, "SEARCHED", 50)
    peaks = []
    for queries in (50, 1000):
        some = random_counts(200, queries, 80, 30)
        qrels = random_qrels(some, 3)
        tracemalloc.start()
        score(some, [np.ones((80, 2000), np.float32)], qrels)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_trap_27_permuting_documents_queries_and_judgements_changes_nothing():
    documents, queries = RNG.permutation(300), RNG.permutation(25)
    permuted = replace(
        SOME,
        documents=SOME.documents[documents],
        document_ids=[SOME.document_ids[i] for i in documents],
        queries=SOME.queries[queries],
        query_ids=[SOME.query_ids[i] for i in queries],
    )
    qrels = {query: dict(reversed(QRELS[query].items())) for query in reversed(QRELS)}
    assert equal(score(SOME, [TABLE], QRELS), score(permuted, [TABLE], qrels))


def test_a_tables_scale_and_padding_rows_change_nothing():
    scaled = np.concatenate([TABLE * 4, np.full((5, 16), 1e6, np.float32)])
    assert equal(score(SOME, [TABLE], QRELS), score(SOME, [scaled], QRELS))


def test_trap_26_float32_sees_what_bfloat16_rounds_away():
    # the second row is the query's direction, the first a quarter of a bfloat16 step away from it
    table = np.array([[1, 1 + 2**-9], [1, 1], [1, 1]], dtype=np.float32)
    some = counts({"z": [0], "a": [1]}, {"q": [2]}, 3)
    exact, rounded = (
        score(some, [table], {"q": {"a": 1}}, precision) for precision in ("float32", "published")
    )
    assert means(exact)["ndcg_at_1"] == 1
    assert means(rounded)["ndcg_at_1"] == 0  # a tie, in which z comes first


def test_trap_28_one_query_has_no_standard_error():
    some = counts({"a": [0], "b": [1]}, {"q": [0]}, 2)
    rows = retrieval.rows(score(some, [EYE[:2]], {"q": {"a": 1}}), 100)
    assert {row["queries"] for row in rows} == {1}
    assert {row["stderr"] for row in rows} == {None}
    assert rows[0]["value"] == 1


def test_trap_28_zero_and_negative_grades_are_not_relevant_and_gain_nothing():
    some = counts({"a": [0], "b": [1], "c": [0, 1]}, {"q": [0], "p": [1]}, 3)
    graded = score(some, [EYE], {"q": {"a": 1, "b": 0, "c": -2}, "p": {"b": 0, "c": -1}})
    only = score(some, [EYE], {"q": {"a": 1}, "p": {}})
    assert graded.query_ids == ["p", "q"]
    for metric in METRICS:
        assert graded.values[metric].tolist() == [0, only.values[metric][0]]


def test_trap_28_queries_without_judgements_do_not_count():
    some = counts({"a": [0], "b": [1]}, {"q": [0], "unjudged": [1], "empty": [1]}, 3)
    scores = score(some, [EYE], {"q": {"a": 1}, "empty": {}})
    assert scores.query_ids == ["q"]
    assert means(scores)["ndcg_at_10"] == 1


def test_trap_28_a_judged_document_that_is_absent_counts_as_missed():
    some = counts({"a": [0], "b": [1]}, {"q": [0]}, 3)
    found = means(score(some, [EYE], {"q": {"a": 1, "gone": 1}}))
    assert found["recall_at_1000"] == 0.5
    assert found["ndcg_at_10"] == pytest.approx(1 / (1 + np.log(2) / np.log(3)))


def test_trap_29_a_judged_query_that_finds_nothing_counts_as_zero():
    some = counts({"a": [0]}, {"q": [0]}, 3)
    scores = score(some, [EYE], {"q": {"a": 1}, "textless": {"a": 1}})
    assert dict(zip(scores.query_ids, scores.values["ndcg_at_10"], strict=True)) == {"q": 1, "textless": 0}
    own = counts({"q": [0]}, {"q": [0]}, 3)
    assert means(score(own, [EYE], {"q": {"q": 1}}, drop_self=True))["ndcg_at_10"] == 0


def test_trap_29_judgements_of_absent_queries_alone_score_zero():
    scores = score(counts({"a": [0]}, {"q": [0]}, 3), [EYE], {"textless": {"a": 1}})
    assert means(scores)["recall_at_1000"] == 0


def test_trap_29_the_judgements_are_left_as_they_were():
    qrels = copy.deepcopy(QRELS)
    score(SOME, [TABLE], qrels, drop_self=True)
    assert qrels == QRELS


def test_trap_29_values_are_not_rounded():
    row = next(
        row for row in retrieval.rows(score(SOME, [TABLE], QRELS), 10) if row["metric"] == "ndcg_at_10"
    )
    assert row["value"] != round(row["value"], 5)


def test_trap_30_the_self_match_policy_decides():
    some = counts({"1": [0], "2": [0, 1]}, {"1": [0]}, 3)
    qrels = {"1": {"2": 1}}
    assert means(score(some, [EYE], qrels))["ndcg_at_1"] == 0
    assert means(score(some, [EYE], qrels, drop_self=True))["ndcg_at_1"] == 1


def test_rows_have_the_mean_and_the_error_over_queries():
    scores = score(SOME, [TABLE], QRELS)
    rows = retrieval.rows(scores, 2000)
    assert [row["metric"] for row in rows] == list(METRICS)
    for row in rows:
        values = scores.values[row["metric"]]
        assert row["value"] == values.mean()
        assert row["stderr"] == pytest.approx(values.std() / 5, rel=0.15, abs=1e-12)
        assert (row["queries"], row["zero_documents"], row["zero_queries"], row["reason"]) == (25, 0, 0, None)


def test_a_failed_combination_has_a_null_for_every_metric_and_the_same_columns():
    failed = retrieval.failed_rows("the table holds NaN")
    good = retrieval.rows(score(SOME, [TABLE], QRELS), 10)
    assert [(row["metric"], row["value"], row["reason"]) for row in failed] == [
        (metric, None, "the table holds NaN") for metric in METRICS
    ]
    assert failed[0].keys() == good[0].keys()


def test_the_random_baseline_is_the_random_table_cut_at_each_width():
    at_once = retrieval.random_baseline(SOME, 90, [128, 16, 64], 3, QRELS)
    assert list(at_once) == [128, 16, 64]
    for width, scores in at_once.items():
        assert equal(scores, score(SOME, [RandomColumns(90, 14336, 3, 0, width)], QRELS))


@pytest.mark.parametrize("width", [14337, 0, -3])
def test_a_random_table_of_a_width_that_there_is_not_is_refused(width):
    with pytest.raises(RetrievalError, match=f"1 to 14336 wide, not {width}"):
        retrieval.random_baseline(SOME, 80, [128, width], 0, QRELS)


@pytest.mark.parametrize("qrels", [{}, {"q0": {}}])
def test_trap_28_no_judged_query_at_all_is_refused(qrels):
    with pytest.raises(RetrievalError, match="no query of the data set has a judgement"):
        score(SOME, [TABLE], qrels)
    with pytest.raises(RetrievalError, match="no query of the data set has a judgement"):
        retrieval.random_baseline(SOME, 80, [16], 0, qrels)


def test_scoring_a_table_imports_no_model_libraries():
    heavy = "{'torch', 'transformers', 'mteb', 'sentence_transformers', 'beir', 'datasets'}"
    code = f"import sys, lmshape.retrieval, lmshape.numerics.ablation; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("precision", ["float32", "published"])
@pytest.mark.parametrize("name", ["original", "crop-8", "pca-8", "centered", "shuffled"])
def test_no_ablation_holds_a_table_more_than_twice(name, precision, monkeypatch):
    """What the workflow asks for in `mem_mb` is two tables and what documents take."""
    monkeypatch.setattr(ablation, "BLOCK", 500)
    monkeypatch.setattr(ranking, "ROUNDED", 500)
    some = random_counts(30, 5, 20_000, 10)
    chosen = Ablation.parse(name)
    tracemalloc.start()
    panels = ablation.apply(
        chosen, np.ones((20_000, 256), np.float32), some.vocabulary, 0 if chosen.random else None
    )
    score(some, panels, random_qrels(some, 5), precision)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.2 * 20_000 * 256 * 4 + 4e6


TAKEN = """
import resource, sys
import numpy as np
import torch  # which drawing numbers needs
from lmshape import retrieval
from lmshape.inputs import tokens
from lmshape.numerics.ablation import apply
from lmshape.study.ablation_names import Ablation

table, ablation = np.ones((12_000, 128), np.float32), Ablation.parse(sys.argv[2])
peaks = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]
counts = tokens.load(sys.argv[1])
panels = apply(ablation, table, counts.vocabulary, 0)
retrieval.score(counts, panels, {query: {"d0": 1} for query in counts.query_ids}, "published")
peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(*(kib * 1024 / 1e6 for kib in peaks))
"""


def frequent(texts, length, rng):
    """Counts of texts of `length` tokens of 12,000, as frequent as words are: files of them are small."""
    frequency = 1 / np.arange(1, 12_001)
    ids = rng.choice(12_000, texts * length, p=frequency / frequency.sum())
    bounds = np.arange(0, len(ids) + 1, length)
    matrix = csr_array((np.ones(len(ids), np.int32), ids.astype(np.int32), bounds), shape=(texts, 12_000))
    matrix.sum_duplicates()
    return matrix


@pytest.mark.parametrize(
    ("name", "queries", "documents", "length"),
    [("original", 1000, 64_000, 100), ("pad-2048", 100, 64_000, 9)],
    ids=["scores and counts", "vectors"],
)
def test_texts_take_no_more_than_is_asked_for_them_where_blocks_are_full(
    name, queries, documents, length, tmp_path
):
    rng = np.random.default_rng(0)
    some = replace(
        SOME,
        documents=frequent(documents, length, rng),
        queries=frequent(queries, 9, rng),
        document_ids=[f"d{i}" for i in range(documents)],
        query_ids=[f"q{i}" for i in range(queries)],
    )
    tokens.save(some, tmp_path / "counts.npz")
    command = [sys.executable, "-c", TAKEN, str(tmp_path / "counts.npz"), name]
    before, peak = map(float, subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.split())
    assert peak - before < memory.texts_mb(tmp_path / "counts.npz")
    assert peak < memory.table_mb(12_000, 128) + memory.texts_mb(tmp_path / "counts.npz")
