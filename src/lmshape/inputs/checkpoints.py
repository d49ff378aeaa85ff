"""The embedding tables of a checkpoint: found by architecture, read without the model, kept bit for bit.

What is read are the checkpoint's own bytes. Loading the model instead could tie the output embedding to the
input, or leave it at random, without a word.
"""

import hashlib
import logging
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from lmshape.errors import reported_as
from lmshape.files import writing
from lmshape.inputs import json_files, model_files, safetensors_files
from lmshape.inputs.tensor_files import is_stream, tensors, write
from lmshape.inputs.tensors import CheckpointError, Opener, Tensor, float32

log = logging.getLogger(__name__)

Side = Literal["input", "output"]


@dataclass(frozen=True)
class Family:
    """Where an architecture keeps its embeddings: the end of the tensors' names, whatever prefix they have.

    `tied` is what the architecture does where its config.json does not say `tie_word_embeddings`.
    """

    input: tuple[str, ...]
    output: tuple[str, ...]
    tied: bool


_LM_HEAD = ("lm_head.weight",)
_BERT_INPUT = ("embeddings.word_embeddings.weight",)
_LLAMA = Family(("embed_tokens.weight",), _LM_HEAD, tied=False)
_GPT2 = Family(("wte.weight",), _LM_HEAD, tied=True)
_ROBERTA = Family(_BERT_INPUT, ("lm_head.decoder.weight",), tied=True)
_T5 = Family(("shared.weight", "encoder.embed_tokens.weight"), _LM_HEAD, tied=True)

FAMILIES = {
    "albert": Family(_BERT_INPUT, ("predictions.decoder.weight",), tied=True),
    "bert": Family(_BERT_INPUT, ("cls.predictions.decoder.weight",), tied=True),
    "bloom": Family(("word_embeddings.weight",), _LM_HEAD, tied=True),
    "distilbert": Family(_BERT_INPUT, ("vocab_projector.weight",), tied=True),
    "electra": Family(_BERT_INPUT, ("generator_lm_head.weight",), tied=True),
    "falcon": Family(("word_embeddings.weight",), _LM_HEAD, tied=True),
    "gpt2": _GPT2,
    "gpt_neo": _GPT2,
    "gpt_neox": Family(("embed_in.weight",), ("embed_out.weight",), tied=False),
    "gptj": Family(("wte.weight",), _LM_HEAD, tied=False),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mt5": _T5,
    "olmo": _LLAMA,
    "opt": Family(("decoder.embed_tokens.weight",), _LM_HEAD, tied=True),
    "qwen2": _LLAMA,
    "rembert": Family(_BERT_INPUT, ("cls.predictions.decoder.weight",), tied=False),
    "roberta": _ROBERTA,
    "t5": _T5,
    "xlm-roberta": _ROBERTA,
}
# a GGUF file has one set of names for every architecture; where it has no output tensor, it is tied
_GGUF = Family(("token_embd.weight",), ("output.weight",), tied=True)


@dataclass(frozen=True)
class Embedding:
    """An embedding table, (vocabulary rows, width), in the checkpoint's own type.

    `dtype` is that type by torch's name; numpy lacks bfloat16, so there `table` holds its bit patterns in
    uint16 and `float32()` gives the values. `stored` is the weight file's own name of the type: `BF16`, or
    `Q8_0` of a quantised file, of which `table` has the values. `source` names the tensor. `tied` says that
    input and output are one table.
    """

    table: np.ndarray
    dtype: str
    stored: str
    source: str
    tied: bool

    def float32(self) -> np.ndarray:
        """The values, (vocabulary rows, width) float32."""
        return float32(self.table, self.dtype)

    def sha256(self) -> str:
        """Of the table's bytes, row by row: equal for equal tables, whichever file they came in."""
        return hashlib.sha256(np.ascontiguousarray(self.table)).hexdigest()


def embedding(path: str | Path, side: Side = "input") -> Embedding:
    """One embedding table of a model folder (config.json and weights) or of a GGUF file.

    The output side of a tied model is its input table, with `tied` set. Raises CheckpointError where the
    architecture is unknown, the tensor missing (naming what might be it) or a file unreadable.
    """
    family, tied, weights = _open(Path(path))
    name = locate(weights, family, tied, side, path)
    stored = find(weights, family.input, path), find(weights, family.output, path)
    if all(stored):  # believe their bytes
        tied = _equal(path, weights, *stored, tied)
    table = _table(weights, name, path)
    return Embedding(table.read(), table.dtype, table.stored, name, tied)


def configuration(folder: str | Path) -> dict:
    """The config.json of a model folder, or what transformers makes of the metadata of its GGUF file."""
    if (file := model_files.gguf_model(Path(folder))) is None:
        return json_files.read(Path(folder, model_files.CONFIGURATION))
    from transformers import AutoConfig  # seconds, which a folder with a config.json need not spend

    with reported_as(CheckpointError, f"{file}: transformers makes no configuration of it"):
        return AutoConfig.from_pretrained(folder, gguf_file=file.name).to_dict()


def find(names: Iterable[str], endings: tuple[str, ...], where: str | Path) -> str | None:
    """The tensor named by one of `endings`, bare or prefixed; earlier endings and fewer prefixes first.

    CheckpointError where several are as good: a checkpoint of two models has a table of each.
    """
    for ending in endings:
        matches = [name for name in names if name == ending or name.endswith("." + ending)]
        nearest = min((name.count(".") for name in matches), default=0)
        found = sorted(name for name in matches if name.count(".") == nearest)
        if len(found) > 1:
            raise CheckpointError(
                f"{where}: {' and '.join(found)} may both be the table: save the model alone"
            )
        if found:
            return found[0]
    return None


def locate(names: Iterable[str], family: Family, tied: bool, side: Side, where: str | Path) -> str:
    """The name of the tensor that holds a side's table, among all tensor names of a checkpoint.

    A tied checkpoint keeps one tensor, under either name.
    """
    first, second = (family.input, family.output) if side == "input" else (family.output, family.input)
    name = find(names, first + second if tied else first, where)
    if name is None:
        similar = [name for name in names if any(word in name for word in ("emb", "wte", "head", "shared"))]
        raise CheckpointError(
            f"{where}: no {side} embedding in a model that is {'tied' if tied else 'untied'}: expected "
            f"{' or '.join(first)}; candidates: {', '.join(sorted(similar)) or 'none'}"
        )
    return name


def architecture(config: dict, where: str | Path) -> tuple[Family, bool]:
    """The family of a config.json and whether it is tied, by its own word or else by the family's habit."""
    model_type = json_files.value(config, "model_type", str, where)
    if model_type not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise CheckpointError(f"{where}: no tensor names known for model_type {model_type!r}; known: {known}")
    family = FAMILIES[model_type]
    # transformers 5 writes every T5 as tied, and keeps what it was in `scale_decoder_outputs`
    key = next((key for key in ("scale_decoder_outputs", "tie_word_embeddings") if key in config), None)
    return family, bool(json_files.value(config, key, bool, where)) if key else family.tied


def _open(path: Path) -> tuple[Family, bool, Mapping[str, Tensor]]:
    """The family of a checkpoint, whether it is tied, and its tensors, none of them read yet."""
    if file := _gguf_file(path):
        held = tensors(file)
        return _GGUF, find(held, _GGUF.output, path) is None, held
    names = os.listdir(path)
    model_files.require_configuration(path, names)
    for said in model_files.passed_over(path, names):
        log.warning(said)
    return *architecture(configuration(path), path), weights(path, names)


def _gguf_file(path: Path) -> Path | None:
    return model_files.gguf_model(path) if path.is_dir() else path


def weights(root: str | Path, names: Collection[str], opener: Opener = open) -> Mapping[str, Tensor]:
    """The tensors of a folder of `names`: of its one weight file, or of the shards that its index file lists."""
    chosen = model_files.weights(root, names, opener)
    return Shards(root, chosen, opener) if chosen.shard_of else tensors(f"{root}/{chosen.file}", opener)


def verify(path: Path) -> None:
    """CheckpointError if a model's weights are damaged, could run code or are not as their index says.

    `path` is a folder or a GGUF file. transformers reads all tensors of every shard, whatever the index says: with
    one of another save among them, the table and the hidden states would be of two models. PyTorch's old files are
    left to those who read them whole.
    """
    if file := _gguf_file(path):
        tensors(file)
        return
    chosen = model_files.weights(path, os.listdir(path))
    for file in chosen.holding:
        if is_stream(path / file):
            continue
        held = tensors(path / file).keys()
        others = sorted(name for name in held if chosen.shard_of.get(name) != file)
        if chosen.shard_of and others:
            raise CheckpointError(
                f"{path}: {file} holds {others[0]}, which {chosen.file} does not have there: they are files of "
                "several saves; fetch or save the model again"
            )


class Shards(Mapping[str, Tensor]):
    """Tensors spread over files, as an index file says; only the shard of the tensor asked for is opened."""

    def __init__(self, root: str | Path, chosen: model_files.Weights, opener: Opener = open):
        self.root, self.opener = root, opener
        self.index, self.files = chosen.file, chosen.shard_of

    def __getitem__(self, name: str) -> Tensor:
        shard = f"{self.root}/{self.files[name]}"
        held = tensors(shard, self.opener)
        if name not in held:
            raise CheckpointError(f"{self.root}/{self.index}: says {shard} holds {name}, and it does not")
        return held[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def _table(weights: Mapping[str, Tensor], name: str, where: str | Path) -> Tensor:
    """A tensor that must be there and have two axes."""
    tensor = weights.get(name)
    if tensor is None:
        raise CheckpointError(f"{where}: no tensor {name}; it holds {', '.join(weights)}")
    if len(tensor.shape) != 2:
        raise CheckpointError(f"{where}: {name} has shape {tensor.shape}, not (vocabulary rows, width)")
    return tensor


def _equal(where: str | Path, weights: Mapping[str, Tensor], first: str, second: str, tied: bool) -> bool:
    """Whether two tensors are equal bit for bit; a model that says it is `tied` and is not earns a warning."""
    one, other = weights[first], weights[second]
    equal = (one.dtype, one.shape) == (other.dtype, other.shape)
    # row by row: most that differ do so in the first, and no copy of a table is made
    equal = equal and all(a.tobytes() == b.tobytes() for a, b in zip(one.read(), other.read(), strict=True))
    if tied and not equal:
        log.warning("%s: configured as tied, yet %s and %s differ: two tables", where, first, second)
    return equal


@dataclass(frozen=True)
class TableInformation:
    """What an embedding table file says of itself, read from its header alone."""

    rows: int
    width: int
    dtype: str
    stored: str
    source: str
    model_revision: str
    sha256: str
    tied: bool

    @property
    def columns(self) -> dict[str, int | str]:
        """The columns of a table of results that say which embedding table a row is about."""
        return {
            "embedding_width": self.width,
            "vocabulary_rows": self.rows,
            "dtype": self.stored,
            "table_sha256": self.sha256,
            "model_revision": self.model_revision,
        }


def require_described(table: Embedding, model: str, side: Side, untied: bool, rows: int, width: int) -> None:
    """CheckpointError if a table is not what its suite says: (rows, width), and tied to the other side's or not.

    What is run, random tables and requests for memory go by these words. `model` names suite and size.
    """
    own = not table.tied
    if own != untied:
        tables = "tables of their own" if own else "one table"
        raise CheckpointError(
            f"{model}: the checkpoint's input and output embedding are {tables}: write "
            f"`untied: {str(own).lower()}`, under the size where the suite's others differ"
        )
    if table.table.shape != (rows, width):
        keys = ("vocabulary_rows", "width") if side == "input" else ("output_rows", "output_width")
        right = ", ".join(f"`{key}: {number}`" for key, number in zip(keys, table.table.shape, strict=True))
        raise CheckpointError(
            f"{model}: the {side} embedding of the checkpoint has shape {table.table.shape}, and the suite says "
            f"{(rows, width)}: write {right}"
        )


def save(table: Embedding, path: str | Path, model_revision: str) -> None:
    """Write an embedding table file: safetensors, one tensor `embedding`, metadata on where it came from."""
    metadata = {
        "source": table.source,
        "model_revision": model_revision,
        "sha256": table.sha256(),
        "stored": table.stored,
        "tied": str(table.tied).lower(),
    }
    with writing(path) as temporary:
        write(temporary, {"embedding": (table.table, table.dtype)}, metadata)


def load(path: str | Path) -> np.ndarray:
    """The values of an embedding table file, (vocabulary rows, width) float32. Imports no torch."""
    table = _table(tensors(path), "embedding", path)
    return float32(table.read(), table.dtype)


def information(path: str | Path) -> TableInformation:
    """The facts of an embedding table file, without its numbers."""
    table = _table(tensors(path), "embedding", path)
    with open(path, "rb") as file:
        metadata = dict(safetensors_files.header(str(path), file)[1])
    metadata["tied"] = metadata["tied"] == "true"
    return TableInformation(*table.shape, dtype=table.dtype, **metadata)
