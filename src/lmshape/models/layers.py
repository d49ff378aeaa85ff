"""What enters and leaves every block of a transformers model, whatever its family."""

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AutoModel

from lmshape.errors import LmshapeError
from lmshape.models.sampling import Sample

log = logging.getLogger(__name__)

SPREAD = "auto"  # transformers' word for: over all devices and the host, with a part of each left free
TOKENS_AT_ONCE = 8192  # in one forward pass, until memory runs out
# How errors that torch does not raise as OutOfMemoryError say it: those of cuBLAS and its kin, and of CUDA itself.
OUT_OF_MEMORY = ("_STATUS_ALLOC_FAILED", "CUDA error: out of memory")
Keep = Callable[[str, int, torch.Tensor], None]  # stack, layer, (sequences, tokens, width)
Put = Callable[
    [str, int, np.ndarray, np.ndarray], None
]  # stack, layer, indices (n,), vectors (n, width) float32


class ModelError(LmshapeError):
    """A model that cannot be loaded, or whose blocks cannot be found; the message names it."""


class NoRoom(ModelError):
    """No memory for one sequence beside the model; the message says how long the sequence is."""

    short = True


# --- loading -------------------------------------------------------------------------------------------


def load(path: str | Path, name: str, dtype: str, device: str) -> nn.Module:
    """The model without its head, in `dtype`, ready to run; over several devices if one is too small.

    `device` is as torch names it, or SPREAD: over several from the start. `path` is a folder in transformers' layout,
    or a GGUF file. No code that comes with a model is run, nothing is downloaded, and a weight that the checkpoint
    lacks is an error: it would be random without a word.
    """
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    path = Path(path)
    gguf = {"gguf_file": path.name} if path.is_file() else {}
    options = {"dtype": getattr(torch, dtype), "local_files_only": True, "trust_remote_code": False, **gguf}
    source = path.parent if gguf else path
    try:
        model, report = _on_device(source, options, device)
    except (OSError, ValueError) as error:
        raise ModelError(f"{name}: transformers cannot load a model from {path}: {error}") from error
    missing = [key for key in report["missing_keys"] if "pooler" not in key]  # no hidden state depends on it
    if missing:
        raise ModelError(
            f"{name}: {path} lacks weights that the model needs: {', '.join(sorted(missing)[:5])}"
        )
    model.config.use_cache = False
    return model.eval()


def _on_device(source: Path, options: dict[str, Any], device: str) -> tuple[nn.Module, dict[str, Any]]:
    """Load onto one device; if it is too small, accelerate spreads the model over all of them and the host."""
    if device != SPREAD:
        with suppress(torch.OutOfMemoryError), _out_of_memory_by_type():
            return AutoModel.from_pretrained(
                source, device_map={"": device}, output_loading_info=True, **options
            )
        log.info("the model does not fit %s: spread over all devices", device)
    # Only now, with the error gone, is what had been loaded free; accelerate counts the memory that it finds free.
    _release()
    return AutoModel.from_pretrained(source, device_map=SPREAD, output_loading_info=True, **options)


@contextmanager
def _out_of_memory_by_type() -> Iterator[None]:
    """Raise torch.OutOfMemoryError for every error that says so, whatever its type."""
    try:
        yield
    except RuntimeError as error:
        if any(sign in str(error) for sign in OUT_OF_MEMORY):
            raise torch.OutOfMemoryError(str(error)) from error
        raise


def _release() -> None:
    """Give back the device memory of whatever is no longer in use."""
    gc.collect()
    torch.cuda.empty_cache()


def _input_device(model: nn.Module) -> torch.device:
    """Where token ids may lie: with the first weights, or, if accelerate offloads all (they are `meta`), anywhere."""
    return next((p.device for p in model.parameters() if p.device.type != "meta"), torch.device("cpu"))


def blocks(stack: nn.Module, name: str) -> nn.ModuleList:
    """The list of a stack's blocks: its longest ModuleList that is not inside another one."""
    lists = {path: module for path, module in stack.named_modules() if isinstance(module, nn.ModuleList)}
    outer = [module for path, module in lists.items() if not any(path.startswith(f"{p}.") for p in lists)]
    longest = max(map(len, outer), default=0)
    found = [module for module in outer if len(module) == longest]
    if len(found) != 1:
        raise ModelError(
            f"{name}: {len(found)} lists of {longest} blocks in {type(stack).__name__}, expected one"
        )
    return found[0]


# --- reading -------------------------------------------------------------------------------------------


class Reader:
    """Runs a model and reads its layers by hooks on the blocks.

    transformers' own `hidden_states` would not do: for many families its last entry is after the final norm.
    """

    def __init__(self, model: nn.Module, name: str):
        self.model = model
        self.name = name
        self.both = model.config.is_encoder_decoder
        stacks = {"model": model}
        if self.both:
            stacks = {"encoder": model.get_encoder(), "decoder": model.get_decoder()}
        self._next: dict[str, int] = {}  # stack -> layer that is read next, in the forward pass going on
        self._keep: Keep = lambda stack, layer, hidden: None
        for stack, module in stacks.items():
            found = blocks(module, name)
            found[0].register_forward_pre_hook(self._entering(stack), with_kwargs=True)
            for block in found:
                block.register_forward_hook(self._leaving(stack))

    def shapes(self, sequence: np.ndarray) -> dict[str, tuple[int, int]]:
        """Stack -> (layers, width), found by running the beginning of a sequence.

        Raises NoRoom where there is no memory for it.
        """
        found: dict[str, tuple[int, int]] = {}

        def keep(stack: str, layer: int, hidden: torch.Tensor) -> None:
            found[stack] = (layer, hidden.shape[-1])

        try:
            self._forward([sequence[:2]], keep)
        except torch.OutOfMemoryError:
            raise NoRoom(f"{self.name}: no memory for a sequence of two tokens") from None
        return found

    def run(self, sequences: Sequence[np.ndarray], sample: Sample, put: Put) -> None:
        """Give `put` the vectors of the sample at every layer, a layer of a few sequences at a time.

        Sequences of like length go together, the longest first, so that memory runs out at once or never. Then
        their number is halved; what was put from a pass that failed is put again. Raises NoRoom where even one
        sequence is too many.
        """
        used, lengths = np.unique(sample.sequences), np.array([len(sequence) for sequence in sequences])
        used = used[np.argsort(-lengths[used], kind="stable")]
        size = max(1, min(len(used), TOKENS_AT_ONCE // int(lengths[used].max())))
        start = 0
        while start < len(used):
            group = used[start : start + size]
            with suppress(torch.OutOfMemoryError):
                self._run_group(sequences, group, sample, put)
                start += size
                continue
            _release()  # outside the handler: an error holds on to the layers of the pass that failed
            if size == 1:
                raise NoRoom(f"{self.name}: no memory for one sequence of {lengths[group[0]]} tokens")
            size //= 2
            log.info("%s: out of memory, on with %d sequences at once", self.name, size)

    def _run_group(
        self, sequences: Sequence[np.ndarray], group: np.ndarray, sample: Sample, put: Put
    ) -> None:
        indices = np.flatnonzero(np.isin(sample.sequences, group))
        row_of = {sequence: row for row, sequence in enumerate(group)}
        rows = torch.tensor([row_of[sequence] for sequence in sample.sequences[indices]])
        columns = torch.from_numpy(sample.positions[indices])

        def keep(stack: str, layer: int, hidden: torch.Tensor) -> None:
            vectors = hidden[rows.to(hidden.device), columns.to(hidden.device)]
            put(stack, layer, indices, vectors.to("cpu", torch.float32).numpy())

        self._forward([sequences[i] for i in group], keep)

    @torch.inference_mode()
    def _forward(self, sequences: Sequence[np.ndarray], keep: Keep) -> None:
        """Run sequences together, padded on the right; `keep` is given every layer as it is computed."""
        padding = self.model.config.pad_token_id or 0
        ids = torch.full((len(sequences), max(map(len, sequences))), padding)
        mask = torch.zeros_like(ids)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = torch.from_numpy(sequence)
            mask[row, : len(sequence)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask}
        if self.both:  # the decoder reads the same text one token later, after its start token
            start = torch.full_like(ids[:, :1], self.model.config.decoder_start_token_id or 0)
            inputs["decoder_input_ids"] = torch.cat([start, ids[:, :-1]], dim=1)
            inputs["decoder_attention_mask"] = mask
        self._next, self._keep = {}, keep
        device = _input_device(self.model)
        with _out_of_memory_by_type():
            self.model(**{name: value.to(device) for name, value in inputs.items()})

    def _entering(self, stack: str) -> Callable[..., None]:
        def hook(block: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
            if (
                stack not in self._next
            ):  # else a block that is shared by all layers (ALBERT's) is entered again
                self._read(stack, args[0] if args else kwargs["hidden_states"])

        return hook

    def _leaving(self, stack: str) -> Callable[..., None]:
        def hook(block: nn.Module, args: tuple, output: Any) -> None:
            self._read(stack, output if isinstance(output, torch.Tensor) else output[0])

        return hook

    def _read(self, stack: str, hidden: torch.Tensor) -> None:
        layer = self._next.get(stack, 0)
        self._keep(stack, layer, hidden)
        self._next[stack] = layer + 1
