"""Tokenizers as people have them: what else a folder holds changes no count and hides no fault."""

import json
import logging
import shutil

import gguf
import numpy as np
import pytest
import sentencepiece
import word_tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

from lmshape.errors import LmshapeError
from lmshape.inputs import tokens
from lmshape.inputs.tokenizer_loading import TokenizerError, copy_tokenizer, load_tokenizer

WORDS = ["cold", "coffee", "hot", "mountain", "river", "stone", "tea", "water", "winter", "wool"]
TEXT = " ".join(WORDS)


def ids_of(text, tokenizer):
    return tokens.token_ids([text], tokenizer, special=False)[0].tolist()


def edit(path, **changes):
    """Change some keys of a JSON file."""
    found = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(found | changes))


@pytest.fixture
def words(tmp_path):
    """A tokenizer of whole words."""
    (tmp_path / "words").mkdir()
    return word_tokenizer.save(tmp_path / "words", WORDS)


@pytest.fixture
def pieces(tmp_path):
    """A byte-pair encoding whose words are single tokens."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.train_from_iterator([TEXT] * 2, trainers.BpeTrainer(vocab_size=200, show_progress=False))
    (tmp_path / "pieces").mkdir()
    backend.save(str(tmp_path / "pieces/tokenizer.json"))
    edit(tmp_path / "pieces/tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    return tmp_path / "pieces"


@pytest.fixture(scope="session")
def spm(tmp_path_factory):
    """Name of a normalisation -> a SentencePiece model of the words, trained with it."""

    def train(normalization="nmt_nfkc", **options):
        stem = tmp_path_factory.mktemp("spm") / "model"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([TEXT, *WORDS] * 20), model_prefix=str(stem), vocab_size=30, minloglevel=2,
            normalization_rule_name=normalization, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, **options,
        )  # fmt: skip
        return stem.with_suffix(".model")

    return {name: train(name) for name in ("nmt_nfkc", "identity")}


def spm_folder(folder, model, name, tokenizer_class, **config):
    """A folder that has a SentencePiece model, and no tokenizer.json."""
    folder.mkdir()
    shutil.copy(model, folder / name)
    edit(folder / "tokenizer_config.json", tokenizer_class=tokenizer_class, **config)
    return folder


# --- the same tokens each time, from the beginning of a text -------------------------------------------


@pytest.mark.parametrize("where", ["tokenizer_config.json", "tokenizer.json"])
def test_a_long_text_keeps_its_beginning_whatever_the_folder_says(words, where):
    if where == "tokenizer.json":
        cut = {"direction": "Left", "max_length": 2, "strategy": "OnlySecond", "stride": 1}
        edit(words / where, truncation=cut)
    else:
        edit(words / where, truncation_side="left", padding_side="left", model_max_length=2)
    counts = tokens.count_texts([TEXT], load_tokenizer(words), max_length=3)
    assert counts.toarray()[0].nonzero()[0].tolist() == [1, 2, 3]


def test_dropout_is_off_and_the_log_says_so(pieces, caplog):
    edit(
        pieces / "tokenizer.json",
        model=json.loads((pieces / "tokenizer.json").read_text())["model"] | {"dropout": 0.9},
    )
    dropping = AutoTokenizer.from_pretrained(pieces)
    assert len({len(ids_of(word, dropping)) for word in WORDS}) > 1
    with caplog.at_level(logging.INFO):
        tokenizer = load_tokenizer(pieces)
    assert "dropout 0.9 is switched off" in caplog.text
    assert [len(ids_of(word, tokenizer)) for word in WORDS] == [1] * len(WORDS)


def test_sampling_of_sentencepiece_is_off_and_the_log_says_so(tmp_path, spm, caplog):
    sampling = {"enable_sampling": True, "nbest_size": -1, "alpha": 0.1}
    folder = spm_folder(
        tmp_path / "s", spm["nmt_nfkc"], "spiece.model", "BertGenerationTokenizer", sp_model_kwargs=sampling
    )
    with caplog.at_level(logging.INFO):
        tokenizer = load_tokenizer(folder)
    assert "sampling is switched off" in caplog.text
    assert ids_of(TEXT, tokenizer) == sentencepiece.SentencePieceProcessor(str(spm["nmt_nfkc"])).encode(TEXT)


def test_a_tokenizer_that_gives_a_word_other_tokens_each_time_is_refused(words, monkeypatch):
    random = np.random.default_rng(0)
    called = type(load_tokenizer(words)).__call__

    def forgetful(self, texts, **options):
        found = called(self, texts, **options)
        return (
            found
            if isinstance(texts, str)
            else {"input_ids": random.permutation(found["input_ids"]).tolist()}
        )

    monkeypatch.setattr(type(load_tokenizer(words)), "__call__", forgetful)
    with pytest.raises(TokenizerError, match="words: the tokenizer gives '.*' other tokens each time"):
        load_tokenizer(words)


# --- vocabularies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["nmt_nfkc", "identity"])
def test_a_sentencepiece_model_alone_is_read_as_its_own_library_reads_it(tmp_path, spm, normalization):
    folder = spm_folder(tmp_path / "t5", spm[normalization], "spiece.model", "T5Tokenizer", extra_ids=0)
    own = sentencepiece.SentencePieceProcessor(str(spm[normalization]))
    tokenizer = load_tokenizer(folder)
    assert ids_of(TEXT, tokenizer) == own.encode(TEXT)
    assert (ids_of("ｈｏｔ", tokenizer) == own.encode("hot")) == (normalization == "nmt_nfkc")


@pytest.mark.parametrize(
    "tokenizer_class",
    [
        "DebertaV2Tokenizer",
        "BertTokenizer",
        "MBartTokenizer",
        "SplinterTokenizer",
        "GPT2Tokenizer",
        "MPNetTokenizer",
    ],
)
def test_trap_19_a_folder_without_its_vocabulary_is_refused(tmp_path, tokenizer_class):
    """transformers makes a tokenizer of it, to which every word is unknown or nothing."""
    edit(tmp_path / "tokenizer_config.json", tokenizer_class=tokenizer_class)
    with pytest.raises(
        TokenizerError, match="no vocabulary beyond its special tokens; there is no vocabulary, such"
    ):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("names", "lacking"),
    [
        (["tokenizer_config.json"], "there is no vocabulary, such as tokenizer.json. Copy the files"),
        (["tokenizer_config.json", "vocab.json"], "vocab.json has no merges.txt beside it. Copy the files"),
    ],
)
def test_a_file_that_was_left_behind_is_named_with_what_to_do(tmp_path, names, lacking):
    edit(tmp_path / "tokenizer_config.json", tokenizer_class="LlamaTokenizer")
    edit(tmp_path / "config.json", model_type="gpt2")
    if "vocab.json" in names:
        edit(tmp_path / "tokenizer_config.json", tokenizer_class="GPT2Tokenizer")
        edit(tmp_path / "vocab.json", **{word: number for number, word in enumerate(WORDS)})
    with pytest.raises(TokenizerError) as refused:
        load_tokenizer(tmp_path)
    assert str(tmp_path) in str(refused.value) and lacking in str(refused.value)


def test_a_vocabulary_whose_merges_are_lost_is_refused(pieces):
    model = json.loads((pieces / "tokenizer.json").read_text())["model"]
    edit(pieces / "tokenizer.json", model=model | {"merges": model["merges"][:3]})
    with pytest.raises(TokenizerError, match="does not know its own vocabulary: of .* words in it, "):
        load_tokenizer(pieces)


def test_a_normaliser_that_makes_every_word_unknown_is_refused(words):
    edit(
        words / "tokenizer.json",
        normalizer={"type": "Replace", "pattern": {"Regex": "[a-z]"}, "content": "x"},
    )
    with pytest.raises(
        TokenizerError, match=r"of 10 words in it, 0 come out as tokens, and 'cold' as \['<unk>'\]"
    ):
        load_tokenizer(words)


def test_bytes_need_no_vocabulary(tmp_path):
    edit(tmp_path / "tokenizer_config.json", tokenizer_class="ByT5Tokenizer")
    assert ids_of("hot", load_tokenizer(tmp_path)) == [byte + 3 for byte in b"hot"]


def test_a_vocabulary_that_numbers_tokens_otherwise_than_tokenizer_json_is_named_and_not_read(words, caplog):
    (words / "vocab.json").write_text(json.dumps({"hot": 1, "cold": 3, "tea": 7}))
    (words / "vocab.txt").write_text("<unk>\n" + "\n".join(WORDS))
    tokenizer = load_tokenizer(words)
    assert ids_of("cold hot", tokenizer) == [1, 3]
    assert "vocab.json: 2 of its 3 tokens, the first 'hot', have other ids in tokenizer.json" in caplog.text
    assert "vocab.txt" not in caplog.text


# --- files that cannot be read -------------------------------------------------------------------------


def newer(text):
    return json.dumps(json.loads(text) | {"normalizer": {"type": "NotInventedYet"}})


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("tokenizer.json", lambda text: text[:100], "not JSON: "),
        ("tokenizer.json", lambda text: "[]", "expected an object of keys and values"),
        ("tokenizer.json", newer, "tokenizers .* cannot read it: .*; a newer version may have written it"),
        ("tokenizer_config.json", lambda text: text[:20], "not JSON: "),
        ("tokenizer_config.json", lambda text: "null", "expected an object of keys and values"),
        ("tokenizer_config.json", lambda text: "\ufeff{}", "begins with a byte order mark"),
        (
            "tokenizer_config.json",
            lambda text: '{"model_max_length": "512"}',
            "`model_max_length` must be a number",
        ),
        ("added_tokens.json", lambda text: "[1]", "expected an object of keys and values"),
        ("special_tokens_map.json", lambda text: "{", "not JSON: "),
        ("config.json", lambda text: "{", "not JSON: "),
    ],
)
def test_a_damaged_file_is_named_by_its_own_path(words, tmp_path, name, damage, said):
    for other in ("added_tokens.json", "special_tokens_map.json", "config.json"):
        (words / other).write_text("{}")
    (words / name).write_text(damage((words / name).read_text()))
    (tmp_path / "linked").mkdir()
    for file in words.iterdir():
        (tmp_path / "linked" / file.name).symlink_to(file)
    with pytest.raises(LmshapeError, match=f"^{words / name}: {said}") as refusal:
        load_tokenizer(tmp_path / "linked")
    assert "\n" not in str(refusal.value)


def test_a_sentencepiece_model_that_is_cut_short_is_named_and_not_taken_for_one_of_tiktoken(tmp_path, spm):
    folder = spm_folder(tmp_path / "t5", spm["nmt_nfkc"], "spiece.model", "T5Tokenizer")
    (folder / "spiece.model").write_bytes((folder / "spiece.model").read_bytes()[:1000])
    with pytest.raises(TokenizerError, match=f"^{folder}/spiece.model: not a SentencePiece model: "):
        load_tokenizer(folder)


def test_what_transformers_says_of_a_class_it_lacks_a_package_for_is_one_message(tmp_path):
    edit(tmp_path / "tokenizer_config.json", tokenizer_class="FlaubertTokenizer")
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    with pytest.raises(TokenizerError, match="cannot load a tokenizer from here: ImportError: .*sacremoses"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("auto_map", [{"AutoTokenizer": ["own.OwnTokenizer", None]}, ["own.OwnTokenizer", 3]])
def test_code_that_comes_with_a_tokenizer_is_refused_by_name(words, auto_map):
    edit(words / "tokenizer_config.json", auto_map=auto_map)
    with pytest.raises(
        TokenizerError,
        match=r"needs code of its own \(own.OwnTokenizer\), which lmshape does not run; save it",
    ):
        load_tokenizer(words)


def test_code_that_transformers_has_itself_is_no_obstacle(words):
    edit(
        words / "tokenizer_config.json",
        auto_map={"AutoTokenizer": [None, "tokenization.CohereTokenizerFast"]},
    )
    assert ids_of("hot tea", load_tokenizer(words)) == [3, 7]


# --- texts ---------------------------------------------------------------------------------------------


def test_a_text_that_a_tokenizer_cannot_read_is_one_message(words):
    model = json.loads((words / "tokenizer.json").read_text())["model"]
    edit(words / "tokenizer.json", model=model | {"unk_token": "[UNK]"})
    tokenizer = load_tokenizer(words)
    with pytest.raises(TokenizerError, match=r"words: the tokenizer cannot read a text: .*Missing \[UNK\]"):
        tokens.count_texts(["hot zebra"], tokenizer)


def test_a_text_of_unknown_words_is_refused_and_one_of_a_few_is_not(words):
    tokenizer = load_tokenizer(words)
    few, many = (
        tokens.count_texts([text], tokenizer).sum(axis=0) for text in ("hot tea zebra", "hot zebra lion")
    )
    tokens.require_known(few, tokenizer, "few")
    with pytest.raises(TokenizerError, match="^many: 2 of 3 tokens are unknown"):
        tokens.require_known(many, tokenizer, "many")


def test_the_frame_is_found_whatever_a_tokenizer_makes_of_the_letter_a(tmp_path):
    folder = word_tokenizer.save(tmp_path, ["[CLS]", *WORDS], begin="[CLS]")
    edit(folder / "tokenizer.json", normalizer={"type": "Replace", "pattern": {"String": "a"}, "content": ""})
    assert tokens.frame(load_tokenizer(folder)) == ([1], [])


# --- the tokenizer of a model --------------------------------------------------------------------------


def test_a_copy_has_the_files_of_the_tokenizer_and_reads_texts_as_it_does(tmp_path, spm):
    model = spm_folder(tmp_path / "m", spm["nmt_nfkc"], "sentencepiece.model", "RemBertTokenizer")
    edit(model / "config.json", model_type="rembert")
    (model / "model.safetensors").write_bytes(b"weights")
    copy_tokenizer(model, tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == [
        "config.json", "sentencepiece.model", "tokenizer_config.json",
    ]  # fmt: skip
    own, copied = (load_tokenizer(tmp_path / name)(TEXT)["input_ids"] for name in ("m", "copy"))
    assert own == copied


def test_the_copy_of_a_gguf_files_tokenizer_reads_texts_as_the_file_says(tmp_path):
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters = {"special_tokens": ["<s>"], "initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
    trainer = trainers.BpeTrainer(vocab_size=320, show_progress=False, **letters)
    backend.train_from_iterator([TEXT] * 2, trainer)
    writer, vocabulary = gguf.GGUFWriter(tmp_path / "model.gguf", "llama"), backend.get_vocab()
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(vocabulary, key=vocabulary.get))
    writer.add_token_merges([" ".join(pair) for pair in json.loads(backend.to_str())["model"]["merges"]])
    writer.add_bos_token_id(vocabulary["<s>"])
    writer.add_add_bos_token(True)
    for add in (writer.add_block_count, writer.add_head_count, writer.add_context_length):
        add(1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    copy_tokenizer(tmp_path, tmp_path / "copy")
    own, copied = (load_tokenizer(folder)(TEXT)["input_ids"] for folder in (tmp_path, tmp_path / "copy"))
    assert own == copied == [vocabulary["<s>"], *backend.encode(TEXT).ids]


def test_a_copy_reads_texts_as_the_original_does_without_its_dropout(pieces, tmp_path):
    model = json.loads((pieces / "tokenizer.json").read_text())["model"]
    edit(pieces / "tokenizer.json", model=model | {"dropout": 0.9})
    copy_tokenizer(pieces, tmp_path / "copy")
    assert [len(ids_of(word, load_tokenizer(tmp_path / "copy"))) for word in WORDS] == [1] * len(WORDS)
