import numpy as np
import pytest

from lmshape.inputs import array_files

ARRAYS = {
    "ones": np.arange(7, dtype=np.int32),
    "text": np.frombuffer(b"any bytes", np.uint8),
    "table": np.arange(12.0).reshape(3, 4)[:, ::2],
    "nothing": np.empty((0, 3), np.float32),
    "about": np.array('{"max_length": 9}'),
}


@pytest.fixture
def path(tmp_path):
    array_files.save(ARRAYS, tmp_path / "arrays.npz")
    return tmp_path / "arrays.npz"


def test_arrays_come_back_and_numpy_reads_the_same_file(path):
    mapped = array_files.load(path)
    with np.load(path) as read:
        assert list(mapped) == list(read) == list(ARRAYS)
        for name, array in ARRAYS.items():
            for found in (mapped[name], read[name]):
                assert found.dtype == array.dtype and np.array_equal(found, array)


def test_arrays_are_parts_of_the_file_at_places_that_processors_like(path):
    for name, array in array_files.load(path).items():
        assert not array.flags.writeable or not array.size
        assert array.flags.aligned and array.ctypes.data % 64 == 0 or not array.size, name
        base = array
        while array.size and not isinstance(base, np.memmap):
            base = base.base
        assert not array.size or base.filename == path or str(base.filename) == str(path)


def test_equal_arrays_give_equal_files(path, tmp_path):
    array_files.save(ARRAYS, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()
