"""The files of a tokenizer are known by name: all that transformers' own classes look for."""

import re
from pathlib import Path

import pytest
import transformers

from lmshape.inputs import tokenizer_files

PACKAGE = Path(transformers.__file__).parent


def names_in_transformers():
    """File names in the dictionaries by which tokenizer classes say what they are read from."""
    for path in [*PACKAGE.glob("models/*/tokenization_*.py"), *PACKAGE.glob("tokenization_*.py")]:
        for names in re.findall(r"(?is)\bvocab_files_names = \{(.*?)\}", path.read_text()):
            yield from re.findall(r': "([^"]+)"', names)


def test_every_file_that_a_class_of_transformers_is_read_from_is_known():
    known = set(names_in_transformers())
    assert {"tokenizer.json", "spm.model", "sentencepiece.model", "source.spm", "bpe.codes"} <= known
    assert tokenizer_files.among(known) == sorted(known)


@pytest.mark.parametrize(
    "name", ["tokenizer.4.0.0.json", "tokenizer.model.v3", "tekken.json", "tokenizer.model"]
)
def test_names_that_transformers_finds_by_a_pattern_are_known(name):
    assert tokenizer_files.among([name], tokenizer_files.VOCABULARIES) == [name]


def test_other_files_of_a_model_are_none_of_a_tokenizer():
    others = ["config.json", "model.safetensors", "onnx/tokenizer.json", "README.md", "tokenizer", "1.model"]
    assert tokenizer_files.among(others) == []
