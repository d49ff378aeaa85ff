"""Files are told by their bytes; a large one is read once, until it is another."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from lmshape.errors import LmshapeError
from lmshape.jobs import contents
from lmshape.jobs.contents import Contents


@pytest.fixture
def read(monkeypatch) -> list[str]:
    """The files that are read for their digest, in order; files count as large and as settled at once."""
    read = []

    def file_digest(file, name):
        read.append(Path(file.name).name)
        return hashlib.new(name, file.read())

    monkeypatch.setattr(contents.hashlib, "file_digest", file_digest)
    monkeypatch.setattr(contents, "LARGE", 10)
    monkeypatch.setattr(contents, "SETTLED", 0)
    return read


def test_the_digest_is_that_of_the_bytes_as_another_program_says(tmp_path):
    (tmp_path / "a").write_bytes(os.urandom(100_000))
    said = subprocess.run(["sha256sum", tmp_path / "a"], capture_output=True, text=True, check=True).stdout
    assert Contents(tmp_path / "memory").digest(tmp_path / "a") == said.split()[0]


def test_a_large_file_is_read_once_by_all_runs_and_a_small_one_by_each(tmp_path, read):
    (tmp_path / "large").write_text("x" * 10)
    (tmp_path / "small").write_text("x" * 9)
    for _ in range(2):
        found = Contents(tmp_path / "memory.json")
        for name in ("large", "small"):
            assert found.digest(tmp_path / name) == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert read == ["large", "small", "small"]


@pytest.mark.parametrize(
    "replace", ["written in place", "put in place with its date", "of the same date and size"]
)
def test_another_file_in_its_place_is_read_again(replace, tmp_path, read):
    path, other = tmp_path / "large", tmp_path / "other"
    path.write_text("x" * 10)
    date = path.stat().st_mtime_ns
    Contents(tmp_path / "memory").digest(path)
    if replace == "written in place":
        path.write_text("y" * 11)
    else:
        other.write_text("y" * 10)
        dated = date if replace == "of the same date and size" else date - 10**12
        os.utime(other, ns=(dated, dated))
        other.replace(path)
    assert Contents(tmp_path / "memory").digest(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read == ["large", "large"]


def test_a_file_that_has_just_changed_is_not_remembered(tmp_path, read, monkeypatch):
    """It may change again before the clock of the file system ticks."""
    monkeypatch.setattr(contents, "SETTLED", 10**12)
    (tmp_path / "large").write_text("x" * 10)
    for _ in range(2):
        Contents(tmp_path / "memory").digest(tmp_path / "large")
    assert read == ["large", "large"] and not (tmp_path / "memory").exists()


@pytest.mark.parametrize("memory", ["", "{", "[]", json.dumps({"large": 1})])
def test_a_memory_that_is_broken_or_cannot_be_kept_is_done_without(memory, tmp_path, read):
    (tmp_path / "large").write_text("x" * 10)
    (tmp_path / "memory").write_text(memory)
    expected = hashlib.sha256(b"x" * 10).hexdigest()
    assert Contents(tmp_path / "memory").digest(tmp_path / "large") == expected
    (tmp_path / "a file").touch()
    assert Contents(tmp_path / "a file/memory").digest(tmp_path / "large") == expected


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(LmshapeError, match="gone: cannot be read .No such file"):
        Contents(tmp_path / "memory").digest(tmp_path / "gone")
