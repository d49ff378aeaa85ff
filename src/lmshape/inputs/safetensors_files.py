"""The safetensors format: a header in JSON that says where each tensor lies, and their bytes.

A header that contradicts itself is refused, whatever tensor is asked for: what it says of the others cannot be
trusted. The rules are those of the format's authors (https://github.com/huggingface/safetensors, "Format").
"""

import json
import math
import os
import struct
from typing import Any, BinaryIO

from lmshape.inputs import json_files
from lmshape.inputs.tensors import CheckpointError, Opener, Place, Tensor

LARGEST_HEADER = 100_000_000  # bytes: the format's own bound
DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}  # those that are read
TYPES_BY_BITS = {
    4: ("F4",),
    6: ("F6_E2M3", "F6_E3M2"),
    8: ("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"),
    16: ("I16", "U16", "F16", "BF16"),
    32: ("I32", "U32", "F32"),
    64: ("I64", "U64", "F64", "C64"),
}
BITS = {dtype: bits for bits, dtypes in TYPES_BY_BITS.items() for dtype in dtypes}


def tensors(path: str, file: BinaryIO, opener: Opener) -> dict[str, Tensor]:
    """Name -> `Tensor`; CheckpointError names the file and the tensor of a header that cannot be true."""
    entries, _, begin = header(path, file)
    _require_consistent(path, entries, file.seek(0, os.SEEK_END) - begin)

    def tensor(name: str, entry: dict[str, Any]) -> Tensor:
        shape, stored = tuple(entry["shape"]), entry["dtype"]
        dtype, start = DTYPES.get(stored, stored), begin + entry["data_offsets"][0]
        return Tensor(dtype, shape, stored, lambda: Place(path, opener, name).read(dtype, shape, start))

    return {name: tensor(name, entry) for name, entry in entries.items()}


def header(path: str, file: BinaryIO) -> tuple[dict[str, Any], dict[str, str], int]:
    """(name -> entry, metadata, byte where the tensors begin) of a file, as its header says it."""
    file.seek(0)
    prefix = file.read(8)
    length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
    try:
        if not 2 <= length <= LARGEST_HEADER:
            raise ValueError(f"header of {length} bytes")
        entries = json.loads(file.read(length), object_pairs_hook=json_files.once)
        metadata = entries.pop("__metadata__", {})
        if not all(isinstance(text, str) for text in metadata.values()):
            raise ValueError("__metadata__ holds what is no text")
    except (ValueError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path}: not a readable safetensors file ({error}); fetch it again") from error
    return entries, metadata, 8 + length


def _require_consistent(path: str, entries: dict[str, Any], size: int) -> None:
    """CheckpointError unless the tensors fill the `size` bytes after the header, each once, as their shapes say."""
    for name, entry in entries.items():
        if not _is_entry(entry):
            raise CheckpointError(
                f"{path}: the header's entry of {name} is none of a tensor, with dtype, shape and data_offsets: "
                f"{json.dumps(entry)[:200]}; save the model again"
            )
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        if fault := _fault(**entry, end=end):
            raise CheckpointError(
                f"{path}: the header contradicts itself: {name} {fault}; save the model again"
            )
        end = entry["data_offsets"][1]
    if end > size:
        raise CheckpointError(f"{path}: cut short: it holds {size} of {end} bytes of tensors; fetch it again")
    if end < size:
        raise CheckpointError(f"{path}: {size - end} bytes follow its last tensor; fetch it again")


def _fault(dtype: str, shape: list[int], data_offsets: list[int], end: int) -> str | None:
    """What is wrong with where a tensor lies, given where the bytes of the one before it end."""
    first, last = data_offsets
    bits = math.prod(shape) * BITS[dtype] if dtype in BITS else 8 * (last - first)
    if bits != 8 * (last - first):
        numbers = " x ".join(map(str, shape)) or "one"
        return (
            f"takes {bits // 8} bytes ({numbers} numbers, {dtype}), and is said to lie from {first} to {last}"
        )
    if first != end:
        fault = "overlaps the tensor before it" if first < end else "leaves a gap after the tensor before it"
        return f"lies from {first} to {last}: it {fault}, whose end is {end}"
    return None


def _is_entry(entry: Any) -> bool:
    """Whether a header's entry has what a tensor needs, each of the right type and none negative."""

    def counts(numbers: Any) -> bool:
        return isinstance(numbers, list) and all(type(number) is int and number >= 0 for number in numbers)

    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        return False
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    placed = counts(offsets) and len(offsets) == 2 and offsets[0] <= offsets[1]
    return isinstance(dtype, str) and counts(shape) and placed
