"""The names of the files that a tokenizer can come in, as transformers' classes know them.

One list for whoever fetches, links or copies a model. A test compares it with transformers itself, which the workflow
cannot import each time that it is read.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

# Of a folder with none of these, transformers can make a tokenizer of a token or two, or of bytes.
VOCABULARIES = (
    "tokenizer.json",
    "tokenizer.*.json",  # for some version of transformers, as tokenizer_config.json says
    "vocab.json",
    "vocab.txt",
    "vocab-src.json",
    "vocab-tgt.json",
    "target_vocab.json",
    "byte_maps.json",
    "prophetnet.tokenizer",
    "tokenizer.model",
    "tokenizer.model.*",
    "tekken.json",
    "tiktoken.model",
    "spiece.model",
    "spm.model",
    "spm_char.model",
    "sentencepiece.model",
    "sentencepiece.bpe.model",
    "source.spm",
    "target.spm",
)
COMPLEMENTS = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    "bpe.codes",
    "dict.txt",
    "emoji.json",
    "normalizer.json",
    "entity_vocab.json",
    "word_shape.json",
    "word_pronunciation.json",
)
NAMES = VOCABULARIES + COMPLEMENTS
ADVICE = (
    "Copy the files of its tokenizer there, or name in the suite's file the tokenizer of a suite that has the same "
    "tokens (`tokenizer` and `tokenizer_from`)"
)


def lacking(names: Iterable[str]) -> str:
    """What a folder with files of these names lacks of a tokenizer, and what to do; "" where that is not plain."""
    names = set(names)
    if not among(names, VOCABULARIES):
        return f"there is no vocabulary, such as {VOCABULARIES[0]}. {ADVICE}"
    if among(names, VOCABULARIES) == ["vocab.json"] and "merges.txt" not in names:
        return f"vocab.json has no merges.txt beside it. {ADVICE}"
    return ""


def among(names: Iterable[str], patterns: tuple[str, ...] = NAMES) -> list[str]:
    """Those of the names of a folder's files that a tokenizer can have, sorted."""
    return sorted(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))
