"""The tokens that a word has inside a text, by tokenizers of every kind, read by transformers' classes."""

import json
import string

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from lmshape import word_similarity
from lmshape.inputs import tokens

SPECIAL = ["<unk>", "<s>", "</s>"]
METASPACE = {"decoder": decoders.Metaspace()}


def bpe(words: list[str], *spanning: tuple[str, str], suffix: str = "", **parts) -> Tokenizer:
    """Byte-pair encoding that knows letters and `words`, which are merged from their beginning on, in this order.

    A word is "▁hot" or the like; `spanning` are pairs of words that are merged in turn.
    """
    characters = [[*word[:-1], word[-1] + suffix] for word in words]
    merges = {("".join(one[:i]), one[i]): None for one in characters for i in range(1, len(one))}
    letters = [*string.ascii_lowercase, "▁", "Ġ", *(letter + suffix for letter in string.ascii_lowercase)]
    known = [*SPECIAL, *letters, *map("".join, [*merges, *spanning])]
    vocabulary = {token: id for id, token in enumerate(dict.fromkeys(known))}
    ends = {"end_of_word_suffix": suffix} if suffix else {}
    return assembled(models.BPE(vocabulary, [*merges, *spanning], unk_token="<unk>", **ends), **parts)


def assembled(model: models.Model, **parts) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.add_special_tokens(SPECIAL)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return tokenizer


def framed(template: str) -> processors.PostProcessor:
    special = [(token, SPECIAL.index(token)) for token in SPECIAL]
    return processors.TemplateProcessing(single=template, special_tokens=special)


def byte_level(add_prefix_space: bool) -> Tokenizer:
    pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    return bpe(["Ġhot", "Ġthe", "hot", "the"], pre_tokenizer=pre_tokenizer, decoder=decoders.ByteLevel())


def metaspace(prepend: str) -> Tokenizer:
    pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend)
    return bpe(["▁hot", "▁the", "hot", "the"], pre_tokenizer=pre_tokenizer, **METASPACE)


def prepended() -> Tokenizer:
    """As Llama 1 and 2 are: a normalizer writes a space before every text, and none is a word's end."""
    written = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    words = ["▁hot", "▁the", "hot", "the"]
    return bpe(words, normalizer=written, post_processor=framed("<s> $A"), **METASPACE)


def spanning() -> Tokenizer:
    """`the hot` is one token."""
    parts = {"normalizer": normalizers.Replace(" ", "▁"), **METASPACE}
    return bpe(["▁hot", "▁the", "the"], ("the", "▁hot"), **parts)


def unigram() -> Tokenizer:
    """As T5 is: a text ends in a token of its own."""
    pieces = {**dict.fromkeys(string.ascii_lowercase + "▁", -9.0), "▁hot": -3.0, "hot": -2.9, "▁the": -3.0}
    model = models.Unigram([*((token, 0.0) for token in SPECIAL), *pieces.items()], unk_id=0)
    parts = {"pre_tokenizer": pre_tokenizers.Metaspace(), "post_processor": framed("$A </s>")}
    return assembled(model, **parts, **METASPACE)


def word_pieces() -> Tokenizer:
    """As BERT is: a text is framed."""
    letters = [mark + letter for mark in ("", "##") for letter in string.ascii_lowercase]
    vocabulary = {token: id for id, token in enumerate([*SPECIAL, *letters, "hot", "the"])}
    return assembled(
        models.WordPiece(vocabulary, unk_token="<unk>"),
        normalizer=normalizers.BertNormalizer(),
        pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
        post_processor=framed("<s> $A </s>"),
        decoder=decoders.WordPiece(),
    )


def end_marked() -> Tokenizer:
    """As CLIP and the first GPT are: a mark ends a word."""
    parts = {"pre_tokenizer": pre_tokenizers.WhitespaceSplit(), "decoder": decoders.BPEDecoder("</w>")}
    return bpe(["hot", "the"], suffix="</w>", **parts)


def characters() -> Tokenizer:
    vocabulary = {token: id for id, token in enumerate([*SPECIAL, " ", *string.ascii_lowercase])}
    parts = {"pre_tokenizer": pre_tokenizers.Split(Regex("."), "isolated"), "decoder": decoders.Fuse()}
    return assembled(models.WordLevel(vocabulary, unk_token="<unk>"), **parts)


KINDS = {
    "bytes": (lambda: byte_level(add_prefix_space=False), ["Ġhot"]),
    "bytes, a space added": (lambda: byte_level(add_prefix_space=True), ["Ġhot"]),
    "metaspace, always": (lambda: metaspace("always"), ["▁hot"]),
    "metaspace, first": (lambda: metaspace("first"), ["▁hot"]),
    "metaspace, never": (lambda: metaspace("never"), ["▁hot"]),
    "a space prepended": (prepended, ["▁hot"]),
    "unigram": (unigram, ["▁hot"]),
    "word pieces": (word_pieces, ["hot"]),
    "ends marked": (end_marked, ["hot</w>"]),
    "characters": (characters, [" ", "h", "o", "t"]),
    "a token of two words": (spanning, ["▁hot"]),
}
CLASSES = {kind: ["PreTrainedTokenizerFast"] for kind in KINDS} | {
    "a space prepended": ["PreTrainedTokenizerFast", "LlamaTokenizer"],
    "bytes": ["PreTrainedTokenizerFast", "GPT2Tokenizer"],
    "unigram": ["PreTrainedTokenizerFast", "T5Tokenizer"],
}


@pytest.fixture(params=[(kind, name) for kind in KINDS for name in CLASSES[kind]], ids=", ".join)
def read(request, tmp_path):
    """(tokenizer as a class of transformers reads it from a folder, the tokens of `hot`)"""
    kind, name = request.param
    build, expected = KINDS[kind]
    build().save(str(tmp_path / "tokenizer.json"))
    unknown, begin, end = SPECIAL
    config = {"tokenizer_class": name, "unk_token": unknown, "bos_token": begin, "eos_token": end}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    return tokens.load_tokenizer(tmp_path), expected


def test_a_word_has_the_tokens_that_it_has_inside_a_text(read):
    tokenizer, expected = read
    hot, cold = word_similarity.inside_text(["hot", "cold"], tokenizer)
    assert tokenizer.convert_ids_to_tokens(hot) == expected
    for word, ids in (("hot", hot), ("cold", cold)):
        assert tokenizer.decode(ids).strip() == word
        text = tokenizer(f"a tea so {word} and old")["input_ids"]
        assert any(text[i : i + len(ids)] == ids.tolist() for i in range(len(text)))


def test_a_word_that_is_one_token_with_all_before_it_has_none_of_its_own():
    spanning = [(before, "▁hot") for before in word_similarity.BEFORE]
    backend = bpe(["▁hot", *word_similarity.BEFORE], *spanning, normalizer=normalizers.Replace(" ", "▁"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    hot, cold = word_similarity.inside_text(["hot", "cold"], tokenizer)
    assert (len(hot), tokenizer.convert_ids_to_tokens(cold)) == (0, ["▁", *"cold"])
