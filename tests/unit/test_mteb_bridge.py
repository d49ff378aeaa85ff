import numpy as np
import pytest
import word_tokenizer

mteb = pytest.importorskip("mteb")

from lmshape import mteb_bridge  # noqa: E402
from lmshape.inputs import checkpoints, tokens  # noqa: E402
from lmshape.numerics import ranking  # noqa: E402
from lmshape.numerics.random_tables import RandomColumns  # noqa: E402

TABLE = np.array([[0, 0], [1, 0], [0, 1], [3, 4], [9, 9]], dtype=np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return word_tokenizer.save(tmp_path_factory.mktemp("tokenizer"), ["a", "b", "c"])


@pytest.fixture(scope="module")
def tokenizer(folder):
    return tokens.load_tokenizer(folder)


def bridge(tokenizer, *panels, **settings):
    return mteb_bridge.TableModel(panels, tokenizer, "lmshape/test", "r1", **settings)


def test_it_is_a_model_of_mteb_by_both_protocols(tokenizer):
    model = bridge(tokenizer, TABLE)
    assert isinstance(model, mteb.EncoderProtocol)
    assert isinstance(model, mteb.SearchProtocol)
    assert model.mteb_model_meta.embed_dim == 2


def test_a_text_is_the_mean_of_its_rows_and_one_without_tokens_zeros(tokenizer):
    vectors = bridge(tokenizer, TABLE).encode([{"text": ["a b", "a a b"]}, {"text": ["", "c"]}])
    np.testing.assert_allclose(vectors, [[0.5, 0.5], [2 / 3, 1 / 3], [0, 0], [3, 4]], rtol=1e-6)


def test_random_panels_lie_beside_the_table(tokenizer):
    padding = RandomColumns(5, 32, 0, 2, 32)
    vectors = bridge(tokenizer, TABLE, padding).encode([{"text": ["a c"]}])
    expected = np.hstack([TABLE, padding.array()])[[1, 3]].mean(axis=0)
    np.testing.assert_allclose(vectors[0], expected, rtol=1e-6)


def test_long_texts_are_cut(tokenizer):
    model = bridge(tokenizer, TABLE, max_length=1)
    np.testing.assert_allclose(model.encode([{"text": ["a b b"]}]), [[1, 0]])


def test_a_search_ranks_titles_and_texts(tokenizer):
    model = bridge(tokenizer, TABLE)
    model.index(
        [
            {"id": "x", "title": "a", "text": "b"},
            {"id": "y", "title": None, "text": "a"},
            {"id": "z", "text": "b"},
        ]
    )
    run = model.search([{"id": "q", "text": "a"}], top_k=2)
    assert list(run["q"]) == ["y", "x"]
    assert run["q"]["x"] == pytest.approx(np.sqrt(0.5))


def test_reranking_keeps_to_its_candidates(tokenizer):
    model = bridge(tokenizer, TABLE)
    model.index([{"id": str(i), "text": text} for i, text in enumerate(["a", "a b", "b", "c"])])
    run = model.search([{"id": "q", "text": "a"}], top_k=2, top_ranked={"q": ["2", "1", "3"]})
    assert list(run["q"]) == ["1", "3"]


def test_reranking_compares_no_query_with_all_documents(tokenizer, monkeypatch):
    """A corpus of candidates of thousands of queries: only those of a few queries are looked at together."""
    rng = np.random.default_rng(0)
    words = ["a", "b", "c"]
    texts = [" ".join(rng.choice(words, 9)) for _ in range(60)]
    queries = [{"id": f"q{i}", "text": " ".join(rng.choice(words, 4))} for i in range(10)]
    candidates = {query["id"]: [str(i) for i in rng.choice(60, 5, replace=False)] for query in queries}
    model = bridge(tokenizer, TABLE)
    model.index([{"id": str(i), "text": text} for i, text in enumerate(texts)])
    whole = model.search(queries, top_k=60)
    looked = []
    search = ranking.search
    monkeypatch.setattr(mteb_bridge, "PAIRS", 3 * 3 * 6)  # three queries of up to six candidates
    monkeypatch.setattr(
        ranking,
        "search",
        lambda counts, *rest: looked.append(counts.documents.shape[0]) or search(counts, *rest),
    )
    run = model.search(queries, top_k=4, top_ranked={**candidates, "q0": [*candidates["q0"], "of no corpus"]})
    assert len(looked) == 4
    assert max(looked) <= 3 * 5
    for query, ids in candidates.items():
        expected = [id for id in whole[query] if id in ids][:4]
        assert list(run[query].items()) == [(id, whole[query][id]) for id in expected]


def test_a_query_without_candidates_has_no_results(tokenizer):
    model = bridge(tokenizer, TABLE)
    model.index([{"id": str(i), "text": text} for i, text in enumerate(["a", "a b", "b"])])
    queries = [{"id": "q", "text": "a"}, {"id": "r", "text": "b"}]
    run = model.search(queries, top_k=2, top_ranked={"q": ["2"]})
    assert {query: list(documents) for query, documents in run.items()} == {"q": ["2"], "r": []}
    assert model.search(queries, top_k=2, top_ranked={}) == {"q": {}, "r": {}}


def test_an_unknown_precision_is_refused_before_anything_is_scored(tokenizer):
    with pytest.raises(ValueError, match="precision is float32 or published, not 'float16'"):
        bridge(tokenizer, TABLE, precision="float16")


def test_trap_30_a_querys_own_document_is_found_besides_those_asked_for(tokenizer):
    """mteb takes it out afterwards where a task says so, and the others must then be as many as asked for."""
    model = bridge(tokenizer, TABLE)
    model.index([{"id": str(i), "text": text} for i, text in enumerate(["a", "a b", "b", "c"])])
    run = model.search([{"id": "0", "text": "a"}, {"id": "q", "text": "a"}], top_k=2)
    assert {query: list(documents) for query, documents in run.items()} == {
        "0": ["0", "1", "3"],
        "q": ["0", "1"],
    }


def test_a_table_file_becomes_a_model_under_an_ablation(folder, tmp_path):
    checkpoints.save(
        checkpoints.Embedding(TABLE, "float32", "F32", "embed", False), tmp_path / "input.safetensors", "r7"
    )
    model = mteb_bridge.model(tmp_path / "input.safetensors", folder, ablation="crop-1")
    assert model.encode([{"text": ["a", "c"]}]).tolist() == [[1], [3]]
    padded = mteb_bridge.model(tmp_path / "input.safetensors", folder, ablation="pad-48", seed=3)
    assert padded.encode([{"text": ["a"]}]).shape == (1, 48)
    short = mteb_bridge.model(tmp_path / "input.safetensors", folder, max_length=1)
    assert short.encode([{"text": ["a b b"]}]).tolist() == [[1, 0]]
    assert short.mteb_model_meta.max_tokens == 1


@pytest.mark.slow
def test_trap_31_the_name_and_revision_by_which_mteb_keeps_results_tell_every_combination_apart(
    folder, tmp_path
):
    for name, table in (("one", TABLE), ("two", -TABLE)):
        stored = checkpoints.Embedding(table, "float32", "F32", "embed", False)
        checkpoints.save(stored, tmp_path / name / "input.safetensors", "r7")
    settings = [
        {},
        {"ablation": "crop-1"},
        {"ablation": "pad-48", "seed": 3},
        {"ablation": "pad-48", "seed": 4},
        {"precision": "published"},
        {"max_length": 512},
    ]
    metas = [
        mteb_bridge.model(tmp_path / name / "input.safetensors", folder, **setting).mteb_model_meta
        for name in ("one", "two")
        for setting in settings
    ]
    elsewhere = tmp_path / folder.name
    elsewhere.mkdir()
    reordered = word_tokenizer.save(elsewhere, ["b", "a", "c"])
    metas.append(mteb_bridge.model(tmp_path / "one" / "input.safetensors", reordered).mteb_model_meta)
    assert len({(meta.name, meta.revision) for meta in metas}) == 2 * len(settings) + 1
    assert metas[-1].name == metas[0].name
    assert metas[2].name == f"lmshape/input-{folder.name}-pad-48-seed-3-float32-2048"
    same = mteb_bridge.model(tmp_path / "one" / "input.safetensors", folder, "crop-1", seed=3).mteb_model_meta
    assert (same.name, same.revision) == (metas[1].name, metas[1].revision)  # no number is drawn


def test_mteb_evaluates_it_on_a_similarity_task(tokenizer):
    import datasets as hugging_face
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    class Similarity(AbsTaskSTS):
        metadata = TaskMetadata(
            name="LocalSTS", description="local", reference=None, type="STS", category="t2t", modalities=["text"],
            eval_splits=["test"], eval_langs=["eng-Latn"], main_score="cosine_spearman", date=None, domains=None,
            task_subtypes=None, license=None, annotations_creators=None, dialect=None, sample_creation=None,
            bibtex_citation=None, dataset={"path": "local", "revision": "1"},
        )  # fmt: skip
        min_score, max_score = 0, 5

        def load_data(self, **_):
            pairs = {"sentence1": ["a", "a", "a"], "sentence2": ["b", "c", "a"], "score": [0.0, 3.0, 5.0]}
            self.dataset = {"test": hugging_face.Dataset.from_dict(pairs)}
            self.data_loaded = True

    result = mteb.evaluate(
        bridge(tokenizer, TABLE), Similarity(), cache=None, co2_tracker=False, show_progress_bar=False
    )
    assert result.task_results[0].scores["test"][0]["cosine_spearman"] == pytest.approx(1)
