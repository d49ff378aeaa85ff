"""What retrieval scores equals what independent code makes of the same table."""

import copy
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
import torch
import word_tokenizer
from hypothesis import assume, given
from hypothesis import strategies as st
from peers import by_mteb, published_transformer, sentence_transformer
from sentence_transformers.util import cos_sim

from lmshape import mteb_bridge, retrieval
from lmshape.inputs import checkpoints, datasets, tokens
from lmshape.inputs.datasets import Dataset, Document
from lmshape.numerics import bootstrap, ranking
from lmshape.numerics.ablation import apply
from lmshape.numerics.ranking import Found, search
from lmshape.retrieval import METRICS
from lmshape.study.ablation_names import RANDOM_WIDTH, Ablation

SHARED = Path(__file__).parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason=f"needs {SHARED}")

WORDS = [f"w{i}" for i in range(200)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return word_tokenizer.save(tmp_path_factory.mktemp("tokenizer"), WORDS)


@pytest.fixture(scope="module")
def small():
    """400 documents about words, among them equal ones, and 40 graded queries, one without relevant documents."""
    rng = np.random.default_rng(0)

    def text(topic, length):
        return " ".join(WORDS[i] for i in np.minimum((rng.normal(topic, 6, length) % 200).astype(int), 199))

    topics = rng.integers(0, 200, 400)
    documents = [Document(f"d{i}", text(t, 3), text(t, rng.integers(5, 60))) for i, t in enumerate(topics)]
    documents += [Document(f"copy{i}", *documents[i][1:]) for i in range(10)]
    queries = {f"q{i}": text(topics[i], 6) for i in range(40)}
    qrels = {
        f"q{i}": {
            f"d{j}": int(3 - abs(topics[i] - topics[j]) // 2)
            for j in np.flatnonzero(abs(topics[i] - topics) < 8)
        }
        for i in range(39)
    }
    return Dataset(documents, queries, {**qrels, "q39": {"d0": 0}})


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(1).standard_normal((210, 24)).astype(np.float32)


@pytest.fixture(scope="module")
def counts(small, tokenizer):
    return tokens.count(small, tokenizer, "words")


def test_every_measure_equals_beirs_to_its_five_places(counts, small, table):
    from beir.retrieval.evaluation import EvaluateRetrieval

    scores = retrieval.score(counts, [table], small.qrels)
    run = search(counts, small.qrels, [table], [24], 1000)[24].run
    cuts = list(retrieval.CUTS)
    kinds = EvaluateRetrieval.evaluate(small.qrels, copy.deepcopy(run), cuts, ignore_identical_ids=False)
    kinds += (EvaluateRetrieval.evaluate_custom(small.qrels, run, cuts, "mrr"),)
    for name, theirs in zip(("ndcg", "map", "recall", "precision", "mrr"), kinds, strict=True):
        for cut, value in zip(cuts, theirs.values(), strict=True):
            assert scores.values[f"{name}_at_{cut}"].mean() == pytest.approx(value, abs=5.1e-6)


def by_trec_eval(run, qrels):
    """Every measure of every judged query by pytrec_eval, under our names; a query that found nothing has 0."""
    names = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P"}
    cuts = ",".join(map(str, retrieval.CUTS))
    measures = {f"{name}.{cuts}" for name in names.values()} | {"recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator(
        {query: dict(grades) for query, grades in qrels.items()}, measures
    )
    rows = evaluator.evaluate(dict.fromkeys(qrels, {}) | run)
    values = {
        f"{name}_at_{cut}": [rows[query][f"{trec}_{cut}"] for query in sorted(qrels)]
        for name, trec in names.items()
        for cut in retrieval.CUTS
    }
    ranks = np.array([rows[query]["recip_rank"] for query in sorted(qrels)])
    return values | {f"mrr_at_{cut}": np.where(ranks >= 1 / cut, ranks, 0) for cut in retrieval.CUTS}


def assert_equals_trec_evals(found, qrels):
    ours, theirs = retrieval.evaluate(found, qrels).values, by_trec_eval(found.run, qrels)
    assert tuple(ours) == METRICS
    for metric in METRICS:
        np.testing.assert_allclose(ours[metric], theirs[metric], rtol=1e-13, atol=0, err_msg=metric)


def test_every_measure_of_every_query_is_trec_evals(counts, small, table, monkeypatch):
    monkeypatch.setattr(retrieval, "EVALUATED", 7)
    assert_equals_trec_evals(search(counts, small.qrels, [table], [24], 1000)[24], small.qrels)


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 5)), max_size=40), min_size=1, max_size=4
    ),
    st.integers(0, 1300),
    st.randoms(use_true_random=False),
)
def test_measures_are_trec_evals_for_any_judgements_and_rankings_of_any_length(judgements, length, random):
    """Judged documents that were not found, not in the corpus, beyond a thousand. (Grades below 0 may crash it.)"""
    ids = np.array([f"d{i}" for i in range(1400)], dtype=object)
    qrels = {f"q{i}": {f"d{id}": grade for id, grade in some} for i, some in enumerate(judgements) if some}
    assume(qrels)
    places = {query: np.array(random.sample(range(1400), length), int) for query in list(qrels)[:3]}
    scores = {query: np.arange(length, 0, -1, dtype=np.float32) for query in places}
    assert_equals_trec_evals(Found(ids, places, scores, 0, 0), qrels)


def test_equal_scores_are_evaluated_in_trec_evals_order(counts, small):
    """It orders equal scores itself, whatever the order of a run; a cut ranking keeps those that it puts first."""
    constant = np.ones((210, 1), np.float32)  # every score is 1
    whole, cut = (search(counts, small.qrels, [constant], [1], depth)[1] for depth in (1000, 10))
    assert_equals_trec_evals(whole, small.qrels)
    first, second = (retrieval.evaluate(found, small.qrels).values["ndcg_at_10"] for found in (whole, cut))
    assert np.array_equal(first, second)
    assert first.mean() > 0


@pytest.mark.parametrize("id", ["é", "Z", "a", "10", "9", "日本"])
def test_equal_scores_are_in_trec_evals_order_for_any_id(id, counts):
    """The rank that trec_eval gives a document among equals is its place in our ranking."""
    ids = sorted({id, "é", "z", "B", "2", *(f"x{i}" for i in range(50))})
    some = replace(counts, document_ids=ids, documents=counts.documents[: len(ids)])
    run = search(some, ["q0"], [np.ones((210, 1), np.float32)], [1], 1000)[1].run
    rank = list(run["q0"]).index(id) + 1
    assert 1 / rank == by_trec_eval(run, {"q0": {id: 1}})["mrr_at_1000"][0]


def test_sentence_transformers_and_mteb_score_the_same(small, counts, table, tokenizer):
    theirs = by_mteb(sentence_transformer(table, tokenizer), small)
    ours = retrieval.score(counts, [table], small.qrels)
    for metric in ("ndcg_at_10", "map_at_100", "recall_at_10", "precision_at_3", "mrr_at_10"):
        assert ours.values[metric].mean() == pytest.approx(theirs[metric], abs=1e-4)


@pytest.mark.parametrize(
    ("ablation", "seed", "settings"),
    [
        ("original", None, {}),
        ("original", None, {"precision": "published", "max_length": 9}),
        ("random", 3, {}),
        ("crop-7", None, {}),
        ("pad-40", 3, {}),
        ("pca-5", None, {}),
        ("centered", None, {}),
        ("shuffled", 3, {}),
    ],
)
def test_the_bridge_gives_mteb_exactly_what_the_rule_scores(
    small, table, tokenizer, ablation, seed, settings, tmp_path
):
    stored = checkpoints.Embedding(table, "float32", "F32", "embed", False)
    checkpoints.save(stored, tmp_path / "input.safetensors", "r1")
    model = mteb_bridge.model(tmp_path / "input.safetensors", tokenizer, ablation, seed, **settings)
    theirs = by_mteb(model, small)
    counts = tokens.count(small, tokenizer, "words", settings.get("max_length", 2048))
    panels = apply(Ablation.parse(ablation), table, 201, seed)
    ours = retrieval.score(counts, panels, small.qrels, settings.get("precision", "float32"))
    for metric in METRICS:  # mteb rounds to five places
        assert theirs[metric] == pytest.approx(ours.values[metric].mean(), abs=5.1e-6)


def test_the_bridge_drops_a_querys_own_document_where_the_task_does(table, tokenizer):
    """Also where that leaves room for another in the thousand that are looked at."""
    documents = [Document(f"{i}", "", f"w{i % 200} w{7 * i % 199} w{i % 3}") for i in range(1200)]
    queries = {d.id: d.text for d in documents[:60]}
    qrels = {query: {str((int(query) + far) % 1200): 1 for far in range(1, 900)} for query in queries}
    own = Dataset(documents, queries, qrels, True)
    counts = tokens.count(own, tokenizer, "words")
    model = mteb_bridge.TableModel([table], tokens.load_tokenizer(tokenizer), "lmshape/x", "r1")
    theirs = by_mteb(model, own)
    kept, dropped = (retrieval.score(counts, [table], own.qrels, drop_self=drop) for drop in (False, True))
    for metric in ("ndcg_at_10", "ndcg_at_1000", "map_at_1000", "recall_at_1000", "precision_at_1000"):
        assert dropped.values[metric].mean() == pytest.approx(theirs[metric], abs=5.1e-6)
    assert kept.values["ndcg_at_10"].mean() < theirs["ndcg_at_10"] - 0.01


@pytest.fixture(scope="module")
def abstracts():
    """As in SciFact: documents of some hundred tokens, short queries, and few answers. No two documents are alike."""
    rng = np.random.default_rng(3)

    def text(topic, length):
        return " ".join(WORDS[i] for i in (rng.normal(topic, 25, length) % 200).astype(int))

    topics = rng.integers(0, 200, 400)
    documents = [Document(f"d{i}", text(t, 9), text(t, rng.integers(90, 500))) for i, t in enumerate(topics)]
    queries = {f"q{i:02}": text(topics[i], rng.integers(5, 25)) for i in range(60)}
    qrels = {
        query: {f"d{j}": 1 for j in np.argsort(abs(topics - topics[i]))[: 1 + i % 5]}
        for i, query in enumerate(queries)
    }
    return Dataset(documents, queries, qrels)


def drawn_by_torch(rows: torch.Tensor, ablation: Ablation) -> torch.Tensor:
    """A bfloat16 table under an ablation, by the published study's steps."""
    if ablation.random:
        torch.manual_seed(42)
        drawn = torch.empty((len(rows), ablation.size or RANDOM_WIDTH), dtype=torch.bfloat16)
        torch.nn.init.xavier_normal_(drawn)
        rows = torch.cat([rows, drawn[:, rows.shape[1] :]], dim=1) if ablation.size else drawn
    return rows[:, : ablation.width(24)]


@pytest.mark.parametrize("ablation", ["original", "crop-7", "pad-40", "random"])
def test_published_precision_is_the_published_librarys_pooling_of_a_bfloat16_table(
    abstracts, table, tokenizer, ablation
):
    chosen = Ablation.parse(ablation)
    peer = published_transformer(drawn_by_torch(torch.from_numpy(table).bfloat16(), chosen), tokenizer)
    texts = [document.content for document in abstracts.documents], list(abstracts.queries.values())
    documents, queries = (
        peer.encode(some, convert_to_tensor=True, show_progress_bar=False) for some in texts
    )
    assert peer[0].rows.weight.dtype == torch.bfloat16 and documents.dtype == torch.float32
    cosines = cos_sim(queries, documents).numpy()

    counts = tokens.count(abstracts, tokenizer, "words")
    panels = apply(chosen, table, counts.vocabulary, 42 if chosen.random else None)
    width = chosen.width(24)
    found = search(counts, counts.query_ids, panels, [width], 400, "published")[width].run
    ours = np.array([[found[query][id] for id in counts.document_ids] for query in counts.query_ids])
    np.testing.assert_allclose(ours, cosines, rtol=0, atol=1e-6)

    run = {
        query: dict(zip(counts.document_ids, row.tolist(), strict=True))
        for query, row in zip(counts.query_ids, cosines, strict=True)
    }
    theirs = np.array(by_trec_eval(run, abstracts.qrels)["ndcg_at_10"])
    scored = retrieval.score(counts, panels, abstracts.qrels, "published").values["ndcg_at_10"]
    # where two of the first eleven are nearer than that, the last bits of either order them
    apart = np.diff(np.sort(cosines)[:, -11:]).min(axis=1) > 2e-6
    assert apart.mean() > 0.9
    np.testing.assert_allclose(scored[apart], theirs[apart], rtol=0, atol=1e-6)
    exact = search(counts, counts.query_ids, panels, [width], 400)[width].run
    assert chosen.kind == "random" or exact != found


def test_published_precision_rounds_no_sum_and_no_length(tokenizer):
    """bfloat16 has no 257. Rows are in units of 1/8, so that no sum depends on its order."""
    rng = np.random.default_rng(2)
    table = rng.integers(-300, 300, (210, 24)).astype(np.float32) / 8
    lengths = (1, 2, 100, 255, 256, *range(257, 601, 7))
    texts = [" ".join(rng.choice(WORDS, length)) for length in lengths]
    peer = published_transformer(torch.from_numpy(table).bfloat16(), tokenizer)
    counts = tokens.count_texts(texts, peer.tokenizer)
    assert counts.sum(axis=1).tolist() == list(lengths)
    found = ranking.means(ranking.with_rows(counts, 210), table, "published")
    assert np.array_equal(found, peer.encode(texts, show_progress_bar=False))
    assert not np.array_equal(found, ranking.means(ranking.with_rows(counts, 210), table, "float32"))


@pytest.fixture(scope="module")
def cranfield():
    return datasets.read(SHARED / "cranfield")


@needs_shared
def test_cranfield_scored_by_sentence_transformers_and_mteb(cranfield, tmp_path):
    table = np.random.default_rng(0).standard_normal((50304, 64)).astype(np.float32)
    shutil.copytree(SHARED / "tokenizers" / "gpt2", tmp_path / "gpt2")
    (tmp_path / "gpt2" / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>"}'
    )
    theirs = by_mteb(sentence_transformer(table, tmp_path / "gpt2"), cranfield)
    counts = tokens.count(cranfield, tmp_path / "gpt2", "gpt2")
    ours = retrieval.score(counts, [table], cranfield.qrels)
    assert ours.values["ndcg_at_10"].mean() == pytest.approx(theirs["ndcg_at_10"], abs=1e-4)
    assert (ours.zero_documents, ours.zero_queries) == (2, 0)  # documents 471 and 995 have no text


@needs_shared
def test_trap_32_cranfields_queries_are_numbered_as_its_judgements_are(cranfield):
    counts = tokens.count(cranfield, SHARED / "tokenizers" / "t5-v1_1", "t5")
    table = np.random.default_rng(0).standard_normal((32128, 256)).astype(np.float32)
    right = retrieval.score(counts, [table], cranfield.qrels).values["ndcg_at_10"].mean()
    numbers = sorted(cranfield.qrels, key=int)
    shifted = {str(int(query) % len(numbers) + 1): cranfield.qrels[query] for query in numbers}
    wrong = retrieval.score(counts, [table], shifted).values["ndcg_at_10"].mean()
    assert len(numbers) == 225
    assert right > 4 * wrong


@needs_shared
def test_trap_30_cranfields_equal_ids_are_not_the_same_text(cranfield):
    """Its queries and documents are numbered apart: dropping equal ids, beir's default, would drop answers."""
    assert cranfield.drop_self is False
    assert any(query in grades for query, grades in cranfield.qrels.items())


def test_two_combinations_are_compared_over_the_same_queries(counts, small, table):
    narrow, wide = (retrieval.score(counts, [table[:, :width]], small.qrels) for width in (2, 24))
    found = bootstrap.paired(wide.values["ndcg_at_10"], narrow.values["ndcg_at_10"], 1000)
    assert found.value > 0
    assert found.low > 0
    assert found.probability > 0.99
