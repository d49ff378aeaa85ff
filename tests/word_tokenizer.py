"""Tokenizers of whole words, for tests and benchmarks that know every token."""

import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, processors


def save(folder: Path, words: Sequence[str], begin: str | None = None) -> Path:
    """Make `folder` a tokenizer of `words`, numbered from 1; 0 is <unk>. `begin`, one of them, begins each text."""
    vocabulary = {word: number for number, word in enumerate(["<unk>", *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "pad_token": "<unk>"}
    if begin:
        special = [(begin, vocabulary[begin])]
        backend.post_processor = processors.TemplateProcessing(single=f"{begin} $A", special_tokens=special)
        config["bos_token"] = begin
    backend.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
