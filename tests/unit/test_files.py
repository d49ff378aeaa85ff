"""No reader ever meets half a file, whatever happens to the writer."""

import errno
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lmshape.files import remove, writing


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_file_appears_under_its_name_when_the_block_is_done(tmp_path):
    with writing(tmp_path / "new/table.csv") as temporary:
        temporary.write_text("a,b\n")
        assert not (tmp_path / "new/table.csv").exists()
        assert temporary.parent == tmp_path / "new"  # the same file system, so that the rename is atomic
    assert (tmp_path / "new/table.csv").read_text() == "a,b\n"
    assert everything(tmp_path) == {"new", "new/table.csv"}


def test_trap_8_a_failed_writer_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="halfway"), writing(tmp_path / "table.csv") as temporary:
        temporary.write_text("a,")
        raise RuntimeError("halfway")
    assert everything(tmp_path) == set()


def test_a_failed_writer_leaves_the_earlier_result_as_it_was(tmp_path):
    (tmp_path / "table.csv").write_text("earlier")
    with pytest.raises(RuntimeError, match="halfway"), writing(tmp_path / "table.csv") as temporary:
        temporary.write_text("a,")
        raise RuntimeError("halfway")
    assert (tmp_path / "table.csv").read_text() == "earlier"


def test_a_folder_replaces_an_earlier_one_whole(tmp_path):
    for number in (1, 2):
        with writing(tmp_path / "states") as temporary:
            temporary.mkdir()
            (temporary / f"layer{number}.npy").write_bytes(b"x")
    assert everything(tmp_path) == {"states", "states/layer2.npy"}


def test_a_failed_writer_of_a_folder_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="halfway"), writing(tmp_path / "states") as temporary:
        temporary.mkdir()
        (temporary / "layer1.npy").write_bytes(b"x")
        raise RuntimeError("halfway")
    assert everything(tmp_path) == set()


@pytest.fixture
def steps(monkeypatch) -> list[str]:
    """What is flushed to the disk, by name without the temporary part, and when the rename happens."""
    steps, replace = [], os.replace

    def name(path: str) -> str:
        return re.sub(r"/\.(\w+)[^/]*\.part", r"/\1", path)

    monkeypatch.setattr(os, "fsync", lambda file: steps.append(name(os.readlink(f"/proc/self/fd/{file}"))))
    monkeypatch.setattr(os, "replace", lambda old, new: (steps.append("renamed"), replace(old, new)))
    return steps


def test_trap_8_all_content_of_a_folder_is_on_the_disk_before_it_gets_its_name(tmp_path, steps):
    with writing(tmp_path / "model") as temporary:
        (temporary / "shards").mkdir(parents=True)
        (temporary / "shards/first").write_bytes(b"x")
        (temporary / "config").write_bytes(b"x")
        (temporary / "link").symlink_to("/nowhere")
    before, after = steps[: steps.index("renamed")], steps[steps.index("renamed") + 1 :]
    parts = ("model", "model/config", "model/shards", "model/shards/first")
    assert sorted(before) == [str(tmp_path / part) for part in parts]
    assert after == [str(tmp_path)]


def test_trap_8_a_file_is_on_the_disk_before_it_gets_its_name_and_the_name_afterwards(tmp_path, steps):
    with writing(tmp_path / "table") as temporary:
        temporary.write_bytes(b"x")
    assert steps == [str(tmp_path / "table"), "renamed", str(tmp_path)]


def test_trap_8_a_killed_writer_leaves_no_result(tmp_path):
    job = """
import os, signal, sys
from pathlib import Path
from lmshape.files import writing
with writing(Path(sys.argv[1]) / "table.csv") as temporary:
    temporary.write_text("a,")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", job, str(tmp_path)])
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "table.csv").exists()


def test_a_full_disk_leaves_no_result(tmp_path):
    """A limit on the size of files stands in for the disk: the write fails after some of it was done."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    job = """
import sys
from pathlib import Path
from lmshape.files import writing
try:
    with writing(Path(sys.argv[1]) / "table.csv") as temporary:
        temporary.write_text("a," * 10_000)
except OSError as error:
    print(error.errno)
"""
    command = [sys.executable, "-c", job, str(tmp_path)]
    full = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, check=True)
    assert full.stdout == f"{errno.EFBIG}\n"
    assert everything(tmp_path) == set()


def test_remove_takes_files_folders_and_links_but_not_what_links_point_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    for path in (tmp_path / "link", tmp_path / "absent"):
        remove(path)
    assert everything(tmp_path) == {"kept", "kept/file"}
    remove(tmp_path / "kept")
    assert everything(tmp_path) == set()
