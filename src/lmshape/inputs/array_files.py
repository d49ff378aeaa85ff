"""Arrays in one file that NumPy reads as any .npz, and that is mapped into memory: only what is looked at is read.

So no part of it is compressed, and each array begins at a multiple of 64 bytes, as NumPy's own do in memory.
Source: APPNOTE.TXT of PKWARE, 4.3.7 and 4.5.
"""

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.lib import format

from lmshape.files import writing

ALIGNED = 64  # bytes
HEADER, SIZES = 30, 20  # bytes before a part's name; of the field behind ours that has its sizes
LENGTHS = 26  # where in the header the lengths of name and fields are
FILLING = 0xFFFF  # a field that says nothing


def save(arrays: Mapping[str, np.ndarray], path: str | Path) -> None:
    """Write arrays by name, whole or not at all; equal arrays give equal files."""
    with writing(path) as temporary, ZipFile(temporary, "w") as file:
        for name, array in arrays.items():
            part = ZipInfo(f"{name}.npy")
            begin = file.fp.tell() + HEADER + len(part.filename) + SIZES + 4
            part.extra = struct.pack("<HH", FILLING, -begin % ALIGNED) + bytes(-begin % ALIGNED)
            with file.open(part, "w", force_zip64=True) as stream:
                format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)


def load(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays that `save` wrote, by name; they cannot be written to."""
    with ZipFile(path) as file, Path(path).open("rb") as stream:
        return {part.filename.removesuffix(".npy"): _mapped(stream, part) for part in file.infolist()}


def _mapped(stream, part: ZipInfo) -> np.ndarray:
    """One array, where it lies in the file."""
    stream.seek(part.header_offset + LENGTHS)
    stream.seek(part.header_offset + HEADER + sum(struct.unpack("<HH", stream.read(4))))
    format.read_magic(stream)
    shape, _, dtype = format.read_array_header_1_0(stream)
    if math.prod(shape) == 0:  # which cannot be mapped
        return np.empty(shape, dtype)
    return np.asarray(np.memmap(stream, dtype, "r", stream.tell(), shape))
