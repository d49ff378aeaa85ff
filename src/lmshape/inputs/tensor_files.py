"""Single tensors out of weight files, without the rest of the model and without code from the file.

Four formats, told apart by their first bytes: safetensors, PyTorch's zip, PyTorch's old stream, GGUF. A
tensor of the first two is read by its bytes alone, from anything that can be opened and sought in, so a file
on the hub is read the way a local one is. Imports torch for the old stream alone, gguf for GGUF alone.
"""

import json
import logging
import math
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import safetensors

from lmshape.errors import LmshapeError

log = logging.getLogger(__name__)

# numpy has no bfloat16: such arrays hold its bit patterns, and `float32` knows what they mean
NUMPY_DTYPES = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": "<u2"}
SAFETENSORS_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
TORCH_STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


PIECE = 64 * 2**20  # bytes read at a time: over a network, a failure costs one piece and not a whole table


class CheckpointError(LmshapeError):
    """A weight file, or a folder of them, that does not hold what was asked of it."""


@dataclass(frozen=True)
class Tensor:
    """A tensor in a weight file, not yet read.

    `dtype` is what `read()` gives, by torch's name (bfloat16 comes as bit patterns in uint16). `stored` is
    the file's own name of the type; a quantised type, such as `Q8_0`, is read as the float32 it stands for.
    """

    dtype: str
    shape: tuple[int, ...]
    stored: str
    read: Callable[[], np.ndarray]


Opener = Callable[[str, str], BinaryIO]


def tensors(path: str | Path, opener: Opener = open) -> dict[str, Tensor]:
    """Name -> `Tensor` of a weight file. `opener(path, "rb")` gives a seekable binary file, local or remote.

    Raises CheckpointError where the file is in no known format, is cut short or could run code.
    """
    path = str(path)
    with opener(path, "rb") as file:
        start = file.read(9)
        if start[:4] == b"PK\x03\x04":
            return _torch_zip(path, file, opener)
        if start[8:] == b"{":
            return _safetensors(path, file, opener)
    if start[:4] == b"GGUF":
        return _gguf(path)
    if start[:1] == b"\x80":
        return _torch_stream(path, opener)
    raise CheckpointError(f"{path}: not a safetensors, PyTorch or GGUF file (it begins with {start!r})")


def float32(array: np.ndarray, dtype: str) -> np.ndarray:
    """The values of an array that `Tensor.read` gave, in float32; exact but for float64."""
    if dtype != "bfloat16":
        return array.astype(np.float32, copy=False)
    bits = array.astype(np.uint32)  # bfloat16 is the upper half of a float32
    return np.left_shift(bits, 16, out=bits).view(np.float32)


def write(path: str | Path, arrays: dict[str, tuple[np.ndarray, str]], metadata: dict[str, str]) -> None:
    """Write a safetensors file of name -> (array, dtype), as `Tensor.read` gives them, each bit for bit."""
    whole = {name: (np.ascontiguousarray(array), dtype) for name, (array, dtype) in arrays.items()}
    specs = {
        name: safetensors.TensorSpec(
            dtype=dtype, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, (array, dtype) in whole.items()
    }
    safetensors.serialize_file(specs, path, metadata=metadata)


def _read(path: str, opener: Opener, dtype: str, shape: tuple[int, ...], start: int) -> np.ndarray:
    """The array of `shape` whose bytes begin at `start` of the file."""
    if dtype not in NUMPY_DTYPES:
        raise CheckpointError(f"{path}: cannot read tensors of type {dtype}, only {', '.join(NUMPY_DTYPES)}")
    array = np.empty(shape, NUMPY_DTYPES[dtype])
    room, done = memoryview(array.reshape(-1)).cast("B"), 0
    with opener(path, "rb") as file:
        file.seek(start)
        while done < array.nbytes and (count := file.readinto(room[done : done + PIECE])):
            done += count
    if done < array.nbytes:
        raise CheckpointError(
            f"{path}: cut short: {done} of {array.nbytes} bytes at byte {start}; fetch it again"
        )
    return array


def safetensors_header(path: str, file: BinaryIO) -> tuple[dict, int]:
    """The JSON header of a safetensors file and the byte where the tensors begin."""
    file.seek(0)
    prefix = file.read(8)
    length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
    try:
        if not 2 <= length <= 100_000_000:  # the format's own bound on a header
            raise ValueError(f"header of {length} bytes")
        return json.loads(file.read(length)), 8 + length
    except ValueError as error:
        raise CheckpointError(f"{path}: not a readable safetensors file ({error}); fetch it again") from error


def _safetensors(path: str, file: BinaryIO, opener: Opener) -> dict[str, Tensor]:
    header, begin = safetensors_header(path, file)
    header.pop("__metadata__", None)

    def tensor(entry: dict) -> Tensor:
        shape, stored = tuple(entry["shape"]), entry["dtype"]
        dtype, start = SAFETENSORS_DTYPES.get(stored, stored), begin + entry["data_offsets"][0]
        return Tensor(dtype, shape, stored, lambda: _read(path, opener, dtype, shape, start))

    return {name: tensor(entry) for name, entry in header.items()}


@dataclass(frozen=True)
class _Pickled:
    """A tensor as PyTorch pickles it: a window on a storage, counted in elements."""

    dtype: str
    storage: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class _StateDict(pickle.Unpickler):
    """Reads which tensors a PyTorch pickle names; refuses all but tensors and dictionaries."""

    def find_class(self, module: str, name: str):
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, stride, *_: _Pickled(*storage, offset, shape, stride)
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *_: tensor
        if module in ("torch", "torch.storage") and name in TORCH_STORAGES:
            return TORCH_STORAGES[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}, which may run code")

    def persistent_load(self, identity):
        _, dtype, key, *_ = identity
        return dtype, key


def _torch_zip(path: str, file: BinaryIO, opener: Opener) -> dict[str, Tensor]:
    """The directory and the pickle of a zip, whose tensors lie in it uncompressed, one record a storage."""
    try:
        archive = zipfile.ZipFile(file)
        index = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        state = _StateDict(BytesIO(archive.read(index))).load()
    except (zipfile.BadZipFile, StopIteration) as error:
        raise CheckpointError(
            f"{path}: a zip that PyTorch did not write, or cut short; fetch it again"
        ) from error
    except (pickle.UnpicklingError, TypeError, EOFError) as error:
        raise CheckpointError(
            f"{path}: refused: {error}; only plain dictionaries of tensors are read"
        ) from error
    root = index.removesuffix("data.pkl")

    def read(tensor: _Pickled) -> np.ndarray:
        if not _is_contiguous(tensor):
            raise CheckpointError(
                f"{path}: a tensor of shape {tensor.shape} is stored with strides {tensor.stride}"
            )
        record = archive.getinfo(f"{root}data/{tensor.storage}")
        size = np.dtype(NUMPY_DTYPES.get(tensor.dtype, tensor.dtype)).itemsize
        start = _record_start(path, opener, record) + tensor.offset * size
        return _read(path, opener, tensor.dtype, tensor.shape, start)

    return {
        name: Tensor(tensor.dtype, tensor.shape, tensor.dtype, lambda tensor=tensor: read(tensor))
        for name, tensor in state.items()
        if isinstance(tensor, _Pickled)
    }


def _is_contiguous(tensor: _Pickled) -> bool:
    expected = tuple(math.prod(tensor.shape[axis + 1 :]) for axis in range(len(tensor.shape)))
    return tuple(tensor.stride) == expected


def _record_start(path: str, opener: Opener, record: zipfile.ZipInfo) -> int:
    """The first byte of a record's data: PyTorch pads the local header, so its length is known there only."""
    if record.compress_type != zipfile.ZIP_STORED:
        raise CheckpointError(f"{path}: {record.filename} is compressed, which PyTorch does not do")
    with opener(path, "rb") as file:
        file.seek(record.header_offset)
        name, extra = struct.unpack("<26xHH", file.read(30))
    return record.header_offset + 30 + name + extra


def _torch_stream(path: str, opener: Opener) -> dict[str, Tensor]:
    """PyTorch's format before 1.6 is one pickle stream: no tensor can be had without reading it all."""
    import torch  # three seconds, and this format alone needs it

    log.warning("%s is an old PyTorch file and not a zip: reading all of it for one tensor", path)
    try:
        with BufferedReader(opener(path, "rb"), PIECE) as file:
            state = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, EOFError, RuntimeError) as error:
        reason = next(iter(str(error).splitlines()), "it ends too early")
        raise CheckpointError(f"{path}: refused or damaged: {reason}") from error

    def read(tensor: torch.Tensor) -> np.ndarray:
        bits = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
        return bits.contiguous().numpy().view(NUMPY_DTYPES[str(tensor.dtype).removeprefix("torch.")])

    return {
        name: Tensor(dtype, tuple(tensor.shape), dtype, lambda tensor=tensor: read(tensor))
        for name, tensor in state.items()
        if isinstance(tensor, torch.Tensor) and (dtype := str(tensor.dtype).removeprefix("torch."))
    }


def _gguf(path: str) -> dict[str, Tensor]:
    """GGUF, by the reader of its authors; quantised tensors are dequantised to float32 when read."""
    import gguf

    def tensor(entry) -> Tensor:
        plain = {"F32": "float32", "F16": "float16"}.get(entry.tensor_type.name)
        shape = tuple(int(size) for size in reversed(entry.shape))  # GGUF counts the fastest axis first

        def read() -> np.ndarray:
            return np.array(entry.data) if plain else gguf.dequantize(entry.data, entry.tensor_type)

        return Tensor(plain or "float32", shape, entry.tensor_type.name, read)

    try:
        return {entry.name: tensor(entry) for entry in gguf.GGUFReader(path).tensors}
    except (ValueError, IndexError) as error:
        raise CheckpointError(f"{path}: not a readable GGUF file ({error}); fetch it again") from error
