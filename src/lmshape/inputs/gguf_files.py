"""GGUF, by the reader of its authors; quantised tensors are dequantised to float32 when read.

A model may be split over several files, as llama.cpp does with large ones; the tensors of all of them are its own.
"""

from typing import Any

import numpy as np

from lmshape.errors import reported_as
from lmshape.inputs.model_files import gguf_parts
from lmshape.inputs.tensors import CheckpointError, Tensor

PLAIN = {"F32": "float32", "F16": "float16"}


def tensors(path: str) -> dict[str, Tensor]:
    """Name -> `Tensor` of the model that a GGUF file is, or that it is a part of.

    CheckpointError where a file is damaged, one of another model, or one whose numbers are not as this machine's.
    """
    parts = gguf_parts(path)
    found: dict[str, Tensor] = {}
    for number, part in enumerate(map(str, parts)):
        reader = _reader(part)
        _require_place(part, reader, number, len(parts))
        _require_apart(part, reader)
        for entry in reader.tensors:
            if entry.name in found:
                raise CheckpointError(
                    f"{part}: {entry.name} is in a file before it too; fetch all files again"
                )
            found[entry.name] = _tensor(part, entry)
    if len(parts) > 1 and (count := _field(reader, "split.tensors.count", len(found))) != len(found):
        raise CheckpointError(
            f"{path}: its {len(parts)} files hold {len(found)} of {count} tensors; fetch all again"
        )
    return found


def _reader(path: str) -> Any:
    import gguf  # no job that scores a table needs it

    what, advice = f"{path}: not a readable GGUF file", "fetch it again, or convert it with today's llama.cpp"
    with reported_as(CheckpointError, what, advice):  # it takes a file at its word, so it can raise anything
        reader = gguf.GGUFReader(path)
    if reader.byte_order != "I":
        raise CheckpointError(
            f"{path}: its numbers are in the other byte order; convert it with `gguf-convert-endian`"
        )
    return reader


def _field(reader: Any, name: str, default: int) -> int:
    field = reader.get_field(name)
    return default if field is None else int(field.contents())


def _require_place(path: str, reader: Any, number: int, count: int) -> None:
    """CheckpointError unless a file says of itself what its name does: which it is, of how many."""
    said, of = _field(reader, "split.no", 0), _field(reader, "split.count", 1)
    if (said, of) != (number, count):
        raise CheckpointError(
            f"{path}: says that it is file {said + 1} of {of}, and by its name it is {number + 1} of {count}: keep "
            "the names that it was split under, and all files together"
        )


def _require_apart(path: str, reader: Any) -> None:
    """CheckpointError where two tensors of a file share bytes."""
    end = 0
    for entry in sorted(reader.tensors, key=lambda entry: entry.data_offset):
        if entry.data_offset < end:
            raise CheckpointError(
                f"{path}: the header contradicts itself: {entry.name} overlaps the tensor before it; fetch it again"
            )
        end = entry.data_offset + entry.n_bytes


def _tensor(path: str, entry: Any) -> Tensor:
    import gguf

    stored = entry.tensor_type.name
    shape = tuple(int(size) for size in reversed(entry.shape))  # GGUF counts the fastest axis first

    def read() -> np.ndarray:
        if stored in PLAIN:
            return np.array(entry.data)
        try:
            return gguf.dequantize(entry.data, entry.tensor_type)
        except NotImplementedError as error:
            raise CheckpointError(
                f"{path}: {entry.name} is stored as {stored}, which gguf does not read"
            ) from error

    return Tensor(PLAIN.get(stored, "float32"), shape, stored, read)
