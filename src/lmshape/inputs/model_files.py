"""Which files of a folder are the model: those that transformers loads of it, and none that lie beside them.

The embedding table, the hidden states, the revision and what is fetched from the hub all go by what is said here, and
so speak of one model. A folder is an address and the names in it, and may be one of the hub. Light imports only: the
workflow asks when it plans.
"""

import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmshape.errors import LmshapeError
from lmshape.inputs import json_files
from lmshape.inputs.json_files import Opener

CONFIGURATION = "config.json"
ADAPTER = "adapter_config.json"  # of peft
MODULES = "modules.json"  # of sentence-transformers
# in the order in which transformers looks for them
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
SHARD = re.compile(r"(pytorch_)?model-\d+-of-\d+\.(safetensors|bin)")
ENDINGS = "safetensors|bin|pt|pth|ckpt|h5|msgpack|onnx|gguf|npz"  # of weights, whoever reads them
ANY_WEIGHTS = re.compile(rf".*\.({ENDINGS})(\.index\.json)?", re.IGNORECASE)
GGUF_PART = re.compile(r"(?P<model>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
NAMED_WEIGHTS = "transformers_weights"  # the key of a configuration that names another file
SHOWN = 10  # names in a message


class CheckpointError(LmshapeError):
    """A weight file, or a folder of them, that does not hold what was asked of it."""


@dataclass(frozen=True)
class Weights:
    """The weights of a folder: one file, or an index and the shards that it lists."""

    file: str
    shard_of: dict[str, str] = field(default_factory=dict)  # tensor -> file, where `file` is an index

    @property
    def files(self) -> list[str]:
        """All of them."""
        return [self.file, *sorted(set(self.shard_of.values()))]

    @property
    def holding(self) -> list[str]:
        """Those that hold tensors."""
        return self.files[1:] or self.files


def model(root: str | Path, names: Collection[str], opener: Opener = open) -> list[str]:
    """The configuration and the weights of a folder; of one without a configuration, the files of its GGUF model.

    CheckpointError says what the folder holds instead, such as an adapter, or what is missing.
    """
    if CONFIGURATION not in names and (found := gguf(root, names)):
        return found
    require_configuration(root, names, opener)
    return [CONFIGURATION, *weights(root, names, opener).files]


def require_configuration(root: str | Path, names: Collection[str], opener: Opener = open) -> None:
    """CheckpointError for a folder without one, which says what it is instead."""
    if CONFIGURATION not in names:
        raise CheckpointError(f"{root}: has no {CONFIGURATION}; {_held(root, names, opener)}")


def weights(root: str | Path, names: Collection[str], opener: Opener = open) -> Weights:
    """The weights that transformers loads of a folder with a configuration. CheckpointError as in `model`."""
    configuration = f"{root}/{CONFIGURATION}"
    named = json_files.value(json_files.read(configuration, opener), NAMED_WEIGHTS, str, configuration)
    order = (named,) if named else WEIGHT_FILES
    file = next((file for file in order if file in names), None)
    if file is None:
        expected = ", ".join(order)
        raise CheckpointError(f"{root}: no weights: expected one of {expected}; {_held(root, names, opener)}")
    if not file.endswith(".index.json"):
        return Weights(file)
    shard_of = json_files.read(f"{root}/{file}", opener).get("weight_map")
    if not isinstance(shard_of, dict) or not shard_of or not all(map(_is_name, shard_of.values())):
        raise CheckpointError(
            f"{root}/{file}: no `weight_map` of tensors to files beside it; save the model again"
        )
    chosen = Weights(file, shard_of)
    if missing := [shard for shard in chosen.files if shard not in names]:
        raise CheckpointError(
            f"{root}: {file} lists {', '.join(missing)}, which is not there; fetch the model again"
        )
    return chosen


def _is_name(shard: Any) -> bool:
    return isinstance(shard, str) and shard == os.path.basename(shard) not in ("", ".", "..")


def passed_over(root: str | Path, names: Collection[str], opener: Opener = open) -> list[str]:
    """What a user may think is read of a folder and is not: a message for each."""
    if CONFIGURATION not in names:
        return []
    read = weights(root, names, opener)
    beside = sorted(name for name in names if name in WEIGHT_FILES or SHARD.fullmatch(name))
    messages = []
    if others := [name for name in beside if name not in read.files]:
        messages.append(
            f"{root}: {read.file} is read, as transformers does, and not {', '.join(others)} beside it"
        )
    if ADAPTER in names:
        messages.append(
            f"{root}: what is read is the model alone; {_adapter(root, opener)} beside it is not applied"
        )
    return messages


def gguf(root: str | Path, names: Collection[str]) -> list[str]:
    """The files of the one GGUF model in a folder, in their order; none where there is none.

    CheckpointError names the files of several.
    """
    first_of: dict[str, str] = {}  # what the names of a model's files share -> the first of them
    for name in sorted(name for name in names if name.endswith(".gguf")):
        first_of.setdefault(GGUF_PART.sub(r"\g<model>-of-\g<count>", name), name)
    if len(first_of) > 1:
        several = " or ".join(sorted(first_of.values()))
        raise CheckpointError(f"{root}: several GGUF models: give the path of {several}")
    return [part.name for name in first_of.values() for part in gguf_parts(Path(root) / name)]


def gguf_model(folder: Path) -> Path | None:
    """The first file of the GGUF model that a folder is; None of a folder in transformers' layout.

    What transformers reads of a GGUF model, but its tensors, is all in its first file.
    """
    names = os.listdir(folder)
    found = [] if CONFIGURATION in names else gguf(folder, names)
    return folder / found[0] if found else None


def loaded(folder: Path) -> Path:
    """What transformers is given to load the model of a folder: the folder, or its GGUF file.

    CheckpointError where that is one of several, which transformers does not read together.
    """
    file = gguf_model(folder)
    if file and len(parts := gguf_parts(file)) > 1:
        raise CheckpointError(
            f"{file}: one of {len(parts)} files, which transformers does not load together: merge them with "
            "`llama-gguf-split --merge` of llama.cpp, and give the file that it makes"
        )
    return file or folder


def gguf_parts(path: str | Path) -> list[Path]:
    """The files, in their order, of the model that a GGUF file is a part of: by itself, where its name says no other.

    llama.cpp splits a model into NAME-00001-of-00003.gguf and so on. CheckpointError where one is missing.
    """
    path = Path(path)
    named = GGUF_PART.fullmatch(path.name)
    count = int(named["count"]) if named else 0
    if not named or not 1 <= int(named["number"]) <= count:
        return [path]
    parts = [
        path.with_name(f"{named['model']}-{part:05d}-of-{count:05d}.gguf") for part in range(1, count + 1)
    ]
    if missing := [part.name for part in parts if not part.exists()]:
        raise CheckpointError(
            f"{path}: one of {count} files of a model, and {', '.join(missing)} is not beside it"
        )
    return parts


def _held(root: str | Path, names: Collection[str], opener: Opener) -> str:
    """What a folder that is no model holds, and what to do."""
    if ADAPTER in names:
        return (
            f"it is {_adapter(root, opener)}, and no model: give that model, or the two merged (peft's "
            "`merge_and_unload`, then `save_pretrained`)"
        )
    if MODULES in names:
        return f"it is laid out by sentence-transformers: give the folder in it of the transformer, see {MODULES}"
    held = sorted(name for name in names if ANY_WEIGHTS.fullmatch(name)) or sorted(names)
    shown = ", ".join(held[:SHOWN]) + (f" and {len(held) - SHOWN} more" if len(held) > SHOWN else "")
    if any(name.endswith(".gguf") for name in held):
        return f"it has {shown}: a GGUF file is a model by itself, on this machine and given by its own path"
    if any(map(SHARD.fullmatch, held)):
        return f"it has {shown}: shards without the index that says what is in them; fetch that too"
    return f"it has {shown or 'no files'}; save the model with transformers' `save_pretrained`"


def _adapter(root: str | Path, opener: Opener) -> str:
    try:
        said = json_files.read(f"{root}/{ADAPTER}", opener)
    except LmshapeError:  # it is not read for anything else
        return "an adapter"
    return f"an adapter ({said.get('peft_type')}) of {said.get('base_model_name_or_path')}"
