"""Weight files as people have them: what contradicts itself is refused, the rest read as the formats' authors do."""

import json
import struct
import zipfile
from io import BytesIO
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors
import torch
from safetensors.numpy import load_file, save_file

from lmshape.errors import LmshapeError
from lmshape.inputs import tensor_files

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
OTHER = np.ones(5, np.float16)
F32 = {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]}
F16 = {"dtype": "F16", "shape": [5], "data_offsets": [48, 58]}


def write_safetensors(path: Path, header: object, data: bytes = TABLE.tobytes() + OTHER.tobytes()) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def read(path: Path) -> dict[str, np.ndarray]:
    return {name: tensor.read() for name, tensor in tensor_files.tensors(path).items()}


def refusal(path: Path) -> str:
    with pytest.raises(LmshapeError) as error:
        read(path)
    assert str(path) in str(error.value)
    return str(error.value)


def refused_by_its_authors(path: Path) -> bool:
    try:
        load_file(path)
    except safetensors.SafetensorError:
        return True
    return False


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"a": F32 | {"shape": [8, 3]}, "b": F16}, "a takes 96 bytes (8 x 3 numbers, F32), and is said to lie"),
        ({"a": F32 | {"shape": [2, 3]}, "b": F16}, "a takes 24 bytes"),
        ({"a": F32 | {"dtype": "F16"}, "b": F16}, "a takes 24 bytes"),
        ({"a": F32, "b": F16 | {"shape": []}}, "b takes 2 bytes (one numbers, F16)"),
        ({"a": F32 | {"shape": [10**200, 10**200]}, "b": F16}, "a takes 4000"),
        ({"a": F32, "b": F16 | {"data_offsets": [46, 56]}}, "b lies from 46 to 56: it overlaps"),
        ({"a": F32, "b": F32}, "b lies from 0 to 48: it overlaps"),
        ({"b": F16}, "b lies from 48 to 58: it leaves a gap"),
        ({"a": F32}, "10 bytes follow its last tensor"),
        ({"a": F32, "b": F16 | {"shape": [9], "data_offsets": [48, 66]}}, "cut short: it holds 58 of 66 bytes"),
        ({"a": F32, "b": F16 | {"data_offsets": [-10, 0]}}, "entry of b is none of a tensor"),
        ({"a": F32, "b": F16 | {"data_offsets": [58, 48]}}, "entry of b is none of a tensor"),
        ({"a": F32, "b": F16 | {"data_offsets": [48, 58, 68]}}, "entry of b is none of a tensor"),
        ({"a": F32, "b": {"dtype": "F16", "shape": [5]}}, "entry of b is none of a tensor"),
        ({"a": F32, "b": F16 | {"shape": [-5]}}, "entry of b is none of a tensor"),
        ({"a": F32, "b": F16 | {"shape": "5"}}, "entry of b is none of a tensor"),
        ({"a": F32, "b": [1]}, "entry of b is none of a tensor"),
        ({"a": F32, "b": F16, "__metadata__": {"format": 1}}, "__metadata__ holds what is no text"),
        ({"a": F32, "b": F16, "__metadata__": ["pt"]}, "not a readable safetensors file"),
        (b'{"a": ' + json.dumps(F32).encode() + b', "a": ' + json.dumps(F16).encode() + b"}", "'a' is there twice"),
        (b'{"a": {', "not a readable safetensors file"),
        (b'{"a": "\xff"}', "not a readable safetensors file"),
        (b"{" * 100_000, "not a readable safetensors file"),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_true_is_refused_by_tensor_and_by_the_formats_authors(tmp_path, header, said):
    path = write_safetensors(tmp_path / "model.safetensors", header)
    assert said in refusal(path)
    assert refused_by_its_authors(path)


@pytest.mark.parametrize(
    "header",
    [
        {"a": F32, "b": F16, "__metadata__": {"format": "pt"}},
        {"b": F16, "a": F32},
        {"a": F32, "b": F16, "none": {"dtype": "F32", "shape": [0, 7], "data_offsets": [48, 48]}},
        {"a": F32, "b": F16 | {"dtype": "F8_E4M3", "shape": [2, 5]}},
        {"a": F32, "b": F16 | {"dtype": "I8", "shape": [10]}},
        {"a": F32 | {"dtype": "BF16", "shape": [6, 4]}, "b": F16},
        {"a": F32, "b": F16 | {"dtype": "F4", "shape": [4, 5]}},
    ],
)
def test_a_header_that_holds_together_is_read_as_the_formats_authors_do(tmp_path, header):
    path = write_safetensors(tmp_path / "model.safetensors", header)
    held = tensor_files.tensors(path)
    with safetensors.safe_open(path, "pt") as theirs:
        assert {name: list(tensor.shape) for name, tensor in held.items()} == {
            name: theirs.get_slice(name).get_shape()
            for name in theirs.keys()  # noqa: SIM118
        }
    if held["a"].dtype == "float32":
        np.testing.assert_array_equal(held["a"].read(), TABLE)


@pytest.mark.parametrize("stored", ["F8_E4M3", "I8", "U32", "A_TYPE_TO_COME"])
def test_a_table_of_a_type_that_is_not_read_is_refused_by_name_and_does_not_hide_others(tmp_path, stored):
    shape = {"U32": [2], "A_TYPE_TO_COME": [3]}.get(stored, [8])
    header = {"a": F32, "quantised": {"dtype": stored, "shape": shape, "data_offsets": [48, 56]}}
    path = write_safetensors(tmp_path / "model.safetensors", header, TABLE.tobytes() + bytes(8))
    held = tensor_files.tensors(path)
    np.testing.assert_array_equal(held["a"].read(), TABLE)
    with pytest.raises(LmshapeError, match=f"{path}: quantised is stored as {stored}, and only float64"):
        held["quantised"].read()


@pytest.mark.parametrize("length", [0, 1, 2**27, 2**63, 2**64 - 1])
def test_a_header_of_an_impossible_length_is_refused(tmp_path, length):
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + b"{}")
    assert "not a readable safetensors file" in refusal(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "a Git LFS pointer"),
        (b"<!DOCTYPE html>\n<html><body>Not found</body></html>", "a web page"),
        (b"\n\n<html>", "a web page"),
        (b"Entry not found", "not a safetensors, PyTorch or GGUF file"),
        (b"\x89HDF\r\n\x1a\n", "not a safetensors, PyTorch or GGUF file"),
        (b"\x80", "refused or damaged"),
        (b"PK\x03\x04", "a zip that PyTorch did not write"),
        (b"GGUF", "not a readable GGUF file"),
    ],
)
@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_what_lies_in_place_of_a_weight_file_is_named(tmp_path, content, said, name):
    (tmp_path / name).write_bytes(content)
    assert said in refusal(tmp_path / name)


def test_a_file_that_is_not_there_or_may_not_be_read_is_named(tmp_path):
    (tmp_path / "dangling").symlink_to("blobs/gone")
    assert "a link to blobs/gone, which is not there" in refusal(tmp_path / "dangling")
    assert "cannot be read: No such file" in refusal(tmp_path / "missing")
    assert "cannot be read: Is a directory" in refusal(tmp_path)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "no such folder" / "model.safetensors"
    with pytest.raises(LmshapeError, match=f"{path}: cannot be written: .*No such file"):
        tensor_files.write(path, {"a": (TABLE, "float32")}, {})


def rewritten(path: Path, **changes: bytes) -> Path:
    """A copy of a zip with some of its records changed, stored as they were."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(path.with_suffix(".new.bin"), "w") as new:
        for record in old.infolist():
            new.writestr(record.filename, changes.get(Path(record.filename).name, old.read(record)))
    return path.with_suffix(".new.bin")


@pytest.fixture
def torch_zip(tmp_path) -> Path:
    torch.save({"a": torch.from_numpy(TABLE.copy())}, tmp_path / "pytorch_model.bin")
    return tmp_path / "pytorch_model.bin"


def test_a_storage_of_another_size_than_the_pickle_says_is_refused(torch_zip):
    assert "contradicts itself: a is (4, 3)" in refusal(rewritten(torch_zip, **{"0": TABLE.tobytes()[:-4]}))
    assert "contradicts itself: a is (4, 3)" in refusal(rewritten(torch_zip, **{"0": bytes(100)}))


@pytest.mark.parametrize(
    ("shape", "stride", "offset"),
    [((5, 3), (3, 1), 0), ((4, 3), (3, 1), 1), ((4, 3), (4, 1), 0), ((4, 3), (3, 1), -1), ((4, 3), (-3, 1), 9),
     ((4, 3), (3,), 0), ((2**40, 2**40), (0, 0), 12)],
)  # fmt: skip
def test_a_tensor_that_reaches_out_of_its_storage_is_refused(torch_zip, shape, stride, offset):
    class Forged:
        def __reduce__(self):
            storage = torch.storage.TypedStorage(
                wrap_storage=torch.from_numpy(TABLE.copy()).untyped_storage(),
                dtype=torch.float32,
                _internal=True,
            )
            return torch._utils._rebuild_tensor_v2, (storage, offset, shape, stride, False, {})

    torch.save({"a": Forged()}, torch_zip)
    with pytest.raises(RuntimeError):
        torch.load(torch_zip)
    assert "contradicts itself: a is" in refusal(torch_zip)


def test_numbers_of_a_big_endian_machine_are_read_as_torch_reads_them(torch_zip):
    swapped = rewritten(torch_zip, **{"0": TABLE.astype(">f4").tobytes(), "byteorder": b"big"})
    np.testing.assert_array_equal(torch.load(swapped)["a"].numpy(), TABLE)
    np.testing.assert_array_equal(read(swapped)["a"], TABLE)


def test_a_compressed_zip_is_refused(torch_zip):
    with zipfile.ZipFile(torch_zip) as old:
        records = {record.filename: old.read(record) for record in old.infolist()}
    with zipfile.ZipFile(torch_zip, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in records.items():
            new.writestr(name, content)
    assert "is compressed" in refusal(torch_zip)


@pytest.mark.parametrize("new_zip", [True, False], ids=["zip", "stream"])
@pytest.mark.parametrize(
    ("state", "said"),
    [
        (
            {"state_dict": {"a": torch.ones(2)}, "epoch": 3},
            "it holds state_dict, epoch: save the model's state_dict alone",
        ),
        ([torch.ones(2)], "it holds list"),
        ({}, "it holds nothing"),
    ],
)
def test_tensors_inside_of_something_else_are_not_looked_for(tmp_path, new_zip, state, said):
    torch.save(state, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=new_zip)
    assert said in refusal(tmp_path / "pytorch_model.bin")


GGUF_TABLE = np.arange(4 * 32, dtype=np.float32).reshape(4, 32)


def write_gguf(
    path: Path, tensors: dict[str, np.ndarray], part: tuple[int, int, int] | None = None, **options
) -> Path:
    """A GGUF file; `part` is its number from 0 on, how many there are, and the tensors of all."""
    writer = gguf.GGUFWriter(path, "llama", **options)
    if part:
        writer.add_uint16("split.no", part[0])
        writer.add_uint16("split.count", part[1])
        writer.add_int32("split.tensors.count", part[2])
    for name, table in tensors.items():
        writer.add_tensor(name, table)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


PARTS = ("tiny-00001-of-00002.gguf", "tiny-00002-of-00002.gguf")


def split(folder: Path, second: tuple[int, int, int] = (1, 2, 2), name: str = "output.weight") -> list[Path]:
    first = write_gguf(folder / PARTS[0], {"token_embd.weight": GGUF_TABLE}, (0, 2, 2))
    return [first, write_gguf(folder / PARTS[1], {name: GGUF_TABLE + 1}, second)]


def test_a_gguf_model_in_several_files_is_read_from_all_of_them_whichever_is_given(tmp_path):
    for path in split(tmp_path):
        held = read(path)
        assert list(held) == ["token_embd.weight", "output.weight"]
        np.testing.assert_array_equal(held["token_embd.weight"], GGUF_TABLE)
        np.testing.assert_array_equal(held["output.weight"], GGUF_TABLE + 1)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"second": (0, 2, 2)}, "says that it is file 1 of 2, and by its name it is 2 of 2"),
        ({"second": (1, 3, 2)}, "says that it is file 2 of 3, and by its name it is 2 of 2"),
        ({"second": (1, 2, 3)}, "its 2 files hold 2 of 3 tensors"),
        ({"name": "token_embd.weight"}, "token_embd.weight is in a file before it too"),
    ],
)
def test_files_that_are_not_of_one_gguf_model_are_refused(tmp_path, second, said):
    first, last = split(tmp_path, **second)
    with pytest.raises(LmshapeError, match=said):
        tensor_files.tensors(first)


def test_one_of_several_gguf_files_is_not_taken_for_the_model(tmp_path):
    first, last = split(tmp_path)
    renamed = first.rename(tmp_path / "tiny.gguf")
    assert "says that it is file 1 of 2, and by its name it is 1 of 1" in refusal(renamed)
    assert "tiny-00001-of-00002.gguf is not beside it" in refusal(last)


def test_a_gguf_file_of_the_other_byte_order_is_refused(tmp_path):
    path = write_gguf(tmp_path / "big.gguf", {"a": GGUF_TABLE}, endianess=gguf.GGUFEndian.BIG)
    assert "other byte order; convert it with `gguf-convert-endian`" in refusal(path)


@pytest.mark.parametrize("version", [1, 4, 2**20])
def test_a_gguf_file_of_another_version_is_refused(tmp_path, version):
    path = write_gguf(tmp_path / "old.gguf", {"a": GGUF_TABLE})
    path.write_bytes(b"GGUF" + struct.pack("<I", version) + path.read_bytes()[8:])
    assert "not a readable GGUF file" in refusal(path)


def test_a_gguf_type_that_is_not_read_is_named(tmp_path):
    path = tmp_path / "odd.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("a", np.zeros((4, 8), np.int32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "a is stored as I32, which gguf does not read" in refusal(path)


def test_gguf_tensors_that_share_bytes_are_refused(tmp_path):
    path = write_gguf(tmp_path / "overlap.gguf", {"first": GGUF_TABLE, "second": GGUF_TABLE})
    content = path.read_bytes()
    where = content.index(struct.pack("<Q", GGUF_TABLE.nbytes), content.index(b"second"))
    path.write_bytes(content[:where] + struct.pack("<Q", 0) + content[where + 8 :])
    assert "second overlaps the tensor before it" in refusal(path)


def as_written(folder: Path) -> dict[str, Path]:
    """A small file of each format, with one table in it."""
    save_file({"a": TABLE, "b": OTHER}, folder / "model.safetensors")
    state = {"a": torch.from_numpy(TABLE.copy()), "b": torch.from_numpy(OTHER.copy())}
    torch.save(state, folder / "zip.bin")
    write_gguf(folder / "model.gguf", {"a": GGUF_TABLE})
    return {path.name: path for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["model.safetensors", "zip.bin", "model.gguf"])
def test_wherever_a_file_was_cut_or_changed_it_is_refused_or_read_as_its_authors_do(tmp_path, name):
    """Each beginning of it, and each of many changes of one byte; nothing but a message comes of those refused."""
    path = as_written(tmp_path)[name]
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [whole[:length] for length in range(0, len(whole), max(1, len(whole) // 100))]
    for place in rng.integers(0, len(whole), 150):
        damaged.append(whole[:place] + bytes([rng.integers(256)]) + whole[place + 1 :])
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            held = tensor_files.tensors(path)
            found = {key: tensor.read() for key, tensor in held.items() if tensor.dtype.startswith("float")}
        except LmshapeError:
            refused += 1
            continue
        for key, table in found.items():
            np.testing.assert_array_equal(table, theirs(path, whole)[key])
    assert refused > len(damaged) / 3


def theirs(path: Path, whole: bytes) -> dict[str, np.ndarray]:
    """What the format's authors read of a file; of the `whole` one where they refuse it for what is no tensor's."""
    if path.suffix == ".safetensors":
        return load_file(path)
    if path.suffix == ".gguf":
        return {entry.name: entry.data for entry in gguf.GGUFReader(path).tensors}
    try:
        return {key: value.numpy() for key, value in torch.load(path).items()}
    except (RuntimeError, ValueError):
        return {key: value.numpy() for key, value in torch.load(BytesIO(whole)).items()}
