"""PyTorch's weight files: a zip of raw bytes since version 1.6, one pickle stream before.

No code of a file is run: of its pickle, tensors and dictionaries are read alone. Imports torch for the old stream.
"""

import logging
import pickle
import struct
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from typing import Any, BinaryIO

import numpy as np

from lmshape.errors import reported_as
from lmshape.inputs.tensors import NUMPY_DTYPES, PIECE, CheckpointError, Opener, Place, Tensor

log = logging.getLogger(__name__)

ZIP = b"PK\x03\x04"  # the first bytes of a zip, and of each record in it
STREAM = b"\x80"  # the first byte of a pickle
LOCAL_HEADER = struct.Struct(
    "<4s24xH"
)  # what lies before a record's name in a zip: a mark, .., length of padding
STORAGES = {  # type, and bytes of one number
    "DoubleStorage": ("float64", 8),
    "FloatStorage": ("float32", 4),
    "HalfStorage": ("float16", 2),
    "BFloat16Storage": ("bfloat16", 2),
    "LongStorage": ("int64", 8),
    "IntStorage": ("int32", 4),
    "ShortStorage": ("int16", 2),
    "CharStorage": ("int8", 1),
    "ByteStorage": ("uint8", 1),
    "BoolStorage": ("bool", 1),
}


@dataclass(frozen=True)
class _Storage:
    """The numbers that tensors are windows on: their type, its bytes, where they are kept, and how many they are."""

    dtype: str
    itemsize: int
    key: str
    numbers: int


@dataclass(frozen=True)
class _Window:
    """A tensor as PyTorch pickles it: a window on a storage, counted in numbers."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def span(self) -> int:
        """How many numbers of the storage lie from its first to its last, both included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))

    def inside(self) -> bool:
        """Whether it is a window on its storage at all."""
        counts = (self.offset, *self.shape, *self.stride)
        if not all(type(count) is int and count >= 0 for count in counts):
            return False
        return len(self.shape) == len(self.stride) and self.offset + self.span <= self.storage.numbers


def _rebuilt(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> _Window:
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor of it has no storage")
    return _Window(storage, offset, tuple(shape), tuple(stride))


class _StateDict(pickle.Unpickler):
    """Reads which tensors a PyTorch pickle names; refuses all but tensors and dictionaries."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuilt
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *_: tensor
        if module in ("torch", "torch.storage") and name in STORAGES:
            return STORAGES[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is no plain tensor and might run code")

    def persistent_load(self, identity: tuple) -> _Storage:
        _, (dtype, itemsize), key, _, numbers = identity
        return _Storage(dtype, itemsize, key, numbers)


def zip_tensors(path: str, file: BinaryIO, opener: Opener) -> dict[str, Tensor]:
    """The tensors of a zip, in which they lie uncompressed, one record a storage."""
    what = f"{path}: a zip that PyTorch did not write, or that was cut short or damaged"
    with reported_as(CheckpointError, what, "fetch it again"):  # zipfile can raise anything about one
        archive = zipfile.ZipFile(file)
        records = archive.namelist()
        index = next((name for name in records if name.endswith("/data.pkl")), "data.pkl")
        root, pickled = index.removesuffix("data.pkl"), archive.read(index)
        swapped = f"{root}byteorder" in records and archive.read(f"{root}byteorder") == b"big"

    def tensor(name: str, window: _Window) -> Tensor:
        record = _record(path, archive, f"{root}data/{window.storage.key}", name, window)
        dtype = window.storage.dtype

        def read() -> np.ndarray:
            start = _start(path, opener, record) + window.offset * window.storage.itemsize
            numbers = Place(path, opener, name).read(dtype, (window.span,), start)
            return _through(window, numbers.byteswap(inplace=True) if swapped else numbers)

        return Tensor(dtype, window.shape, dtype, read)

    return {name: tensor(name, window) for name, window in _windows(path, pickled).items()}


def _windows(path: str, pickled: bytes) -> dict[str, _Window]:
    """Name -> window of a pickled dictionary."""
    try:
        state = _StateDict(BytesIO(pickled)).load()
    except Exception as error:  # a pickle is a program, and one that is damaged can raise anything
        raise CheckpointError(
            f"{path}: refused: {error}; only plain dictionaries of tensors are read"
        ) from error
    return _only_tensors(path, state, _Window)


def _only_tensors(path: str, state: Any, kind: type) -> dict[str, Any]:
    """The tensors of a dictionary; CheckpointError where there are none, which names what it has instead."""
    parts = state if isinstance(state, dict) else {}
    found = {name: part for name, part in parts.items() if isinstance(part, kind)}
    if not found:
        held = ", ".join(map(str, parts)) if isinstance(state, dict) else type(state).__name__
        raise CheckpointError(
            f"{path}: no tensors under names of their own; it holds {held[:200] or 'nothing'}: save the model's "
            "state_dict alone"
        )
    return found


def _record(path: str, archive: zipfile.ZipFile, place: str, name: str, window: _Window) -> zipfile.ZipInfo:
    """The record of a tensor's storage; CheckpointError where the pickle and the record contradict each other."""
    storage = window.storage
    record = archive.NameToInfo.get(place)
    if record is None:
        raise CheckpointError(f"{path}: there is no {place}, where {name} is said to be; fetch it again")
    if record.compress_type != zipfile.ZIP_STORED:
        raise CheckpointError(
            f"{path}: {place} is compressed, which PyTorch does not do; save the model again"
        )
    if record.file_size != storage.numbers * storage.itemsize or not window.inside():
        raise CheckpointError(
            f"{path}: contradicts itself: {name} is {window.shape} from number {window.offset} on, with strides "
            f"{window.stride}, of {storage.numbers} numbers of type {storage.dtype}, and {place} has "
            f"{record.file_size} bytes; save the model again"
        )
    return record


def _start(path: str, opener: Opener, record: zipfile.ZipInfo) -> int:
    """The first byte of a record's data: PyTorch pads the local header, so its length is known there only."""
    name = record.orig_filename.encode()
    with opener(path, "rb") as file:
        file.seek(record.header_offset)
        header, named = file.read(LOCAL_HEADER.size), file.read(len(name))
    mark, padding = LOCAL_HEADER.unpack(header) if len(header) == LOCAL_HEADER.size else (b"", 0)
    if (mark, named) != (ZIP, name):
        raise CheckpointError(
            f"{path}: {record.filename} is not where the zip's directory has it; fetch it again"
        )
    return record.header_offset + len(header) + len(named) + padding


def _through(window: _Window, numbers: np.ndarray) -> np.ndarray:
    """A window's array, in rows, out of the numbers (span,) from its first to its last: it may be transposed."""
    strides = [step * numbers.itemsize for step in window.stride]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(numbers, window.shape, strides))


def stream_tensors(path: str, opener: Opener) -> dict[str, Tensor]:
    """The tensors of PyTorch's format before 1.6: one pickle stream, which must be read whole for any of them."""
    import torch  # three seconds, and this format alone needs it

    log.warning("%s is an old PyTorch file and not a zip: reading all of it for one tensor", path)
    with (
        reported_as(
            CheckpointError, f"{path}: refused or damaged", "fetch it again, or save its state_dict alone"
        ),
        BufferedReader(opener(path, "rb"), PIECE) as file,
    ):
        state = torch.load(file, map_location="cpu", weights_only=True)

    def tensor(name: str, whole: torch.Tensor) -> Tensor:
        dtype = str(whole.dtype).removeprefix("torch.")

        def read() -> np.ndarray:
            Place(path, opener, name).require(dtype)
            bits = whole.view(torch.int16) if whole.dtype == torch.bfloat16 else whole
            return bits.detach().contiguous().numpy().view(NUMPY_DTYPES[dtype])

        return Tensor(dtype, tuple(whole.shape), dtype, read)

    return {name: tensor(name, whole) for name, whole in _only_tensors(path, state, torch.Tensor).items()}
