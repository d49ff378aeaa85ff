"""Single tensors out of weight files, without the rest of the model and without code from the file.

Four formats, told apart by their first bytes: safetensors, PyTorch's zip, PyTorch's old stream, GGUF. A
tensor of the first two is read by its bytes alone, from anything that can be opened and sought in, so a file
on the hub is read the way a local one is.
"""

from pathlib import Path

import numpy as np
import safetensors

from lmshape.inputs import gguf_files, safetensors_files, stand_ins, torch_files
from lmshape.inputs.tensors import CheckpointError, Opener, Tensor


def tensors(path: str | Path, opener: Opener = open) -> dict[str, Tensor]:
    """Name -> `Tensor` of a weight file. `opener(path, "rb")` gives a seekable binary file, local or remote.

    Raises CheckpointError where the file is in no known format, is cut short, contradicts itself or could run code,
    and StandInError where it is something else in place of a file.
    """
    path = str(path)
    try:
        opened = opener(path, "rb")
    except OSError as error:
        raise stand_ins.unreadable(path, error) from error
    with opened as file:
        start = file.read(stand_ins.BEGINNING)
        stand_ins.refuse(path, start)
        if start[:4] == torch_files.ZIP:
            return torch_files.zip_tensors(path, file, opener)
        if start[8:9] == b"{":
            return safetensors_files.tensors(path, file, opener)
    if start[:4] == b"GGUF":
        return gguf_files.tensors(path)
    if start[:1] == torch_files.STREAM:
        return torch_files.stream_tensors(path, opener)
    raise CheckpointError(f"{path}: not a safetensors, PyTorch or GGUF file (it begins with {start[:9]!r})")


def is_stream(path: str | Path) -> bool:
    """Whether a file is of PyTorch's format before 1.6, whose tensors cannot be told without loading it."""
    with open(path, "rb") as file:
        return file.read(1) == torch_files.STREAM


def write(path: str | Path, arrays: dict[str, tuple[np.ndarray, str]], metadata: dict[str, str]) -> None:
    """Write a safetensors file of name -> (array, dtype), as `Tensor.read` gives them, each bit for bit.

    CheckpointError where there is no room for it.
    """
    whole = {name: (np.ascontiguousarray(array), dtype) for name, (array, dtype) in arrays.items()}
    specs = {
        name: safetensors.TensorSpec(
            dtype=dtype, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, (array, dtype) in whole.items()
    }
    try:
        safetensors.serialize_file(specs, path, metadata=metadata)
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"{path}: cannot be written: {error}") from error
