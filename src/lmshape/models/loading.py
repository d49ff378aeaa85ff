"""transformers models without their heads, loaded as their checkpoints are or refused: nothing in them is random."""

import gc
import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModel, PretrainedConfig

from lmshape.errors import LmshapeError, reported_as
from lmshape.inputs import json_files, model_files, own_code

log = logging.getLogger(__name__)

SPREAD = "auto"  # transformers' word for: over all devices and the host, with a part of each left free
# How errors that torch does not raise as OutOfMemoryError say it: of cuBLAS and its kin, of CUDA itself, of the host.
OUT_OF_MEMORY = (
    "_STATUS_ALLOC_FAILED",
    "CUDA error: out of memory",
    "DefaultCPUAllocator: can't allocate memory",
)

GENERATION = "generation_config.json"
START = "decoder_start_token_id"
STARTED_BY_PADDING = ("t5", "mt5", "umt5", "longt5", "switch_transformers")  # as their authors trained them

# the ends of the names that scales of quantised weights have, whoever wrote them
SCALES = re.compile(r"[._](weight_scale|weight_scale_inv|scales|SCB|qzeros|absmax)$")


class ModelError(LmshapeError):
    """A model that cannot be loaded, read or run; the message names it."""


class Shortage(ModelError):
    """Memory that ran out in one attempt, which a smaller one may not need."""

    short = True


class NoRoom(ModelError):
    """No memory for one sequence beside the model; the message says how long the sequence is."""

    short = True


def load(path: str | Path, name: str, dtype: str, device: str) -> nn.Module:
    """The model without its head, in `dtype`, ready to run; over several devices if one is too small.

    `device` is as torch names it, or SPREAD: over several from the start. `path` is a folder in transformers' layout,
    or a GGUF file. No code that comes with a model is run, nothing is downloaded, and a weight that the checkpoint
    lacks is an error: it would be random without a word. So is a block that the configuration lacks.
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    path = Path(path)
    gguf = {"gguf_file": path.name} if path.is_file() else {}
    options = {"dtype": getattr(torch, dtype), "local_files_only": True, "trust_remote_code": False, **gguf}
    options |= {
        "output_loading_info": True,
        "ignore_mismatched_sizes": True,
    }  # which are refused by name below
    source = path.parent if gguf else path
    if not gguf:
        _refuse_code(path)
    with reported_as(ModelError, f"{name}: transformers cannot load a model from {path}"):
        model, report = _on_device(source, options, device)
    _require_shapes(report["mismatched_keys"], f"{name}: {path}")
    missing = [key for key in report["missing_keys"] if "pooler" not in key]  # no hidden state depends on it
    if missing:
        raise ModelError(
            f"{name}: {path} lacks weights that the model needs: {', '.join(sorted(missing)[:5])}"
        )
    _require_use(model, report["unexpected_keys"], f"{name}: {path}")
    if model.config.is_encoder_decoder:
        model.config.decoder_start_token_id = _start_token(model.config, source, f"{name}: {path}")
    model.config.use_cache = False
    return model.eval()


def _refuse_code(folder: Path) -> None:
    """Raise ModelError for a configuration that names a class of the model's own."""
    name = model_files.CONFIGURATION
    model_files.require_configuration(folder, os.listdir(folder))
    settings = json_files.read(folder / name)
    own_code.refuse(
        settings, "AutoModel", folder / name, ModelError, "its embedding table can be read all the same"
    )


def _require_shapes(mismatched: Collection[tuple[str, Sequence[int], Sequence[int]]], where: str) -> None:
    """Raise ModelError for weights of another shape than the configuration's, which would be random.

    `mismatched` are (name, shape in the checkpoint, shape by the configuration).
    """
    if mismatched:
        key, stored, wanted = min(mismatched)
        raise ModelError(
            f"{where} holds {key} of shape {tuple(stored)}, and its configuration says {tuple(wanted)}"
            f"{f', as of {len(mismatched) - 1} more' if len(mismatched) > 1 else ''}; correct its configuration"
        )


def _start_token(config: PretrainedConfig, folder: Path, where: str) -> int:
    """What a decoder reads before the text: as its configuration says, or what it is generated with, or T5's padding.

    ModelError where none of these says it, and JsonFileError where it is no token.
    """
    beside = folder / GENERATION
    said = json_files.read(beside) if beside.exists() else {}
    found = json_files.value({START: getattr(config, START, None)}, START, int, where)
    found = json_files.value(said, START, int, beside) if found is None else found
    if found is None and config.model_type in STARTED_BY_PADDING:
        found = config.pad_token_id
    if found is None:
        raise ModelError(f"{where}: its configuration does not say `{START}`; write it into config.json")
    return found


def _require_use(model: nn.Module, unused: Iterable[str], where: str) -> None:
    """Raise ModelError for blocks that the configuration lacks, and for scales without which weights mean nothing.

    `unused` are the weights of the checkpoint that the model has no place for. Others of them in a block may be
    buffers of an older version of the family: the log names them.
    """
    lists = {path: len(module) for path, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    inside = [key for key in sorted(unused) if any(f".{path}." in f".{key}" for path in lists)]
    for path, count in lists.items():
        number = re.compile(rf"(?:^|\.){re.escape(path)}\.(\d+)\.")
        found = max((int(match[1]) for match in map(number.search, inside) if match), default=0)
        if found >= count:
            raise ModelError(
                f"{where} holds {found + 1} of {path}, and its configuration says {count}: it would be run without "
                "the others; correct its configuration"
            )
    if scales := [key for key in inside if SCALES.search(key)]:
        raise ModelError(
            f"{where} holds quantised weights ({scales[0]}), and its configuration does not say how they are: "
            "restore its quantization_config, or give the model in full precision"
        )
    if inside:
        log.warning("%s: the model has no use for %s", where, ", ".join(inside[:5]))


def _on_device(source: Path, options: dict[str, Any], device: str) -> tuple[nn.Module, dict[str, Any]]:
    """Load onto one device; if it is too small, accelerate spreads the model over all of them and the host."""
    if device != SPREAD:
        with suppress(Shortage), shortage_of_memory():
            return AutoModel.from_pretrained(source, device_map={"": device}, **options)
        log.info("the model does not fit %s: spread over all devices", device)
    # Only now, with the error gone, is what had been loaded free; accelerate counts the memory that it finds free.
    release()
    return AutoModel.from_pretrained(source, device_map=SPREAD, **options)


@contextmanager
def shortage_of_memory() -> Iterator[None]:
    """Raise Shortage for every error that says so, whatever its type."""
    try:
        yield
    except RuntimeError as error:  # as torch's own OutOfMemoryError is
        if isinstance(error, torch.OutOfMemoryError) or any(sign in str(error) for sign in OUT_OF_MEMORY):
            raise Shortage(str(error)) from error
        raise


def release() -> None:
    """Give back the device memory of whatever is no longer in use."""
    gc.collect()
    torch.cuda.empty_cache()
