"""A tensor in a weight file, not yet read: its type, its shape, and its bytes by where they lie."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lmshape.inputs.model_files import CheckpointError, Opener

# numpy has no bfloat16: such arrays hold its bit patterns, and `float32` knows what they mean
NUMPY_DTYPES = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "bfloat16": "<u2"}
PIECE = 64 * 2**20  # bytes read at a time: over a network, a failure costs one piece and not a whole table


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


@dataclass(frozen=True)
class Place:
    """Where the numbers of a tensor lie: a file, how it is opened, and the tensor's name there, for messages."""

    path: str
    opener: Opener
    name: str

    def require(self, dtype: str) -> None:
        """CheckpointError for a type that is not read, such as the integers of a quantised table."""
        if dtype not in NUMPY_DTYPES:
            known = ", ".join(NUMPY_DTYPES)
            raise CheckpointError(f"{self.path}: {self.name} is stored as {dtype}, and only {known} are read")

    def read(self, dtype: str, shape: tuple[int, ...], start: int) -> np.ndarray:
        """The array of `shape` whose bytes begin at `start` of the file."""
        self.require(dtype)
        array = np.empty(shape, NUMPY_DTYPES[dtype])
        room, done = memoryview(array.reshape(-1)).cast("B"), 0
        with self.opener(self.path, "rb") as file:
            file.seek(start)
            while done < array.nbytes and (count := file.readinto(room[done : done + PIECE])):
                done += count
        if done < array.nbytes:
            raise CheckpointError(
                f"{self.path}: cut short in {self.name}: {done} of {array.nbytes} bytes; fetch it again"
            )
        return array


def float32(array: np.ndarray, dtype: str) -> np.ndarray:
    """The values of an array that `Tensor.read` gave, in float32; exact but for float64."""
    if dtype != "bfloat16":
        return array.astype(np.float32, copy=False)
    bits = array.astype(np.uint32)  # bfloat16 is the upper half of a float32
    return np.left_shift(bits, 16, out=bits).view(np.float32)
