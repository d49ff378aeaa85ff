"""No reader ever meets half a file, whatever happens to the writer."""

import errno
import fcntl
import os
import re
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lmshape.files import link_or_copy, lock_file, remove, reserve, writing


def contents(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_file_appears_under_its_name_when_the_block_is_done(tmp_path):
    with writing(tmp_path / "new/table.csv") as temporary:
        temporary.write_text("a,b\n")
        assert not (tmp_path / "new/table.csv").exists()
        assert temporary.parent == tmp_path / "new"  # the same file system, so that the rename is atomic
    assert (tmp_path / "new/table.csv").read_text() == "a,b\n"
    assert contents(tmp_path) == {"new", "new/table.csv"}


def test_trap_8_a_failed_writer_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="halfway"), writing(tmp_path / "table.csv") as temporary:
        temporary.write_text("a,")
        raise RuntimeError("halfway")
    assert contents(tmp_path) == set()


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
    assert contents(tmp_path) == {"states", "states/layer2.npy"}


def test_a_failed_writer_of_a_folder_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="halfway"), writing(tmp_path / "states") as temporary:
        temporary.mkdir()
        (temporary / "layer1.npy").write_bytes(b"x")
        raise RuntimeError("halfway")
    assert contents(tmp_path) == set()


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


@pytest.fixture
def fsync_fails(monkeypatch):
    """Has fsync of folders, or of everything, fail with an error, as on a file system that lacks it."""
    real = os.fsync

    def fail(code: int, everything: bool = False) -> None:
        def fsync(file: int) -> None:
            if everything or stat.S_ISDIR(os.fstat(file).st_mode):
                raise OSError(code, os.strerror(code))
            real(file)

        monkeypatch.setattr(os, "fsync", fsync)

    return fail


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS], ids=errno.errorcode.get)
def test_a_file_system_without_fsync_of_folders_or_of_anything_is_written_to(
    tmp_path, fsync_fails, code, everything
):
    fsync_fails(code, everything)
    with writing(tmp_path / "table.csv") as temporary:
        temporary.write_text("a,b\n")
    with writing(tmp_path / "model") as temporary:
        temporary.mkdir()
        (temporary / "config").write_text("{}")
    assert contents(tmp_path) == {"table.csv", "model", "model/config"}


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT], ids=errno.errorcode.get)
def test_a_disk_that_fails_while_content_is_flushed_is_an_error(tmp_path, fsync_fails, code):
    fsync_fails(code, everything=True)
    with pytest.raises(OSError) as failed, writing(tmp_path / "table.csv") as temporary:
        temporary.write_text("a,b\n")
    assert failed.value.errno == code
    assert contents(tmp_path) == set()


def test_a_disk_that_fails_while_a_name_is_flushed_is_an_error(tmp_path, fsync_fails):
    fsync_fails(errno.EIO)
    with pytest.raises(OSError, match="Input/output error"), writing(tmp_path / "table.csv") as temporary:
        temporary.write_text("a,b\n")


def test_a_folder_that_may_be_written_to_but_not_read_holds_results(tmp_path, monkeypatch):
    """Permissions do not stop a superuser, so the refusal is played."""
    real = os.open

    def refuse(path, *arguments, **names):
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *arguments, **names)

    monkeypatch.setattr(os, "open", refuse)
    with writing(tmp_path / "table.csv") as temporary:
        temporary.write_text("a,b\n")
    assert (tmp_path / "table.csv").read_text() == "a,b\n"


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "{a} 'b'\n;$c", ".hidden"])
def test_any_name_that_a_file_system_takes_can_be_written(tmp_path, name):
    with writing(tmp_path / name) as temporary:
        temporary.write_text("x")
    assert contents(tmp_path) == {name}


def test_two_writers_of_one_name_do_not_meet_whatever_machine_or_container_they_are_in(tmp_path):
    """Containers have the process numbers and host names of others."""
    with writing(tmp_path / "table.csv") as first, writing(tmp_path / "table.csv") as second:
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "table.csv").read_text() == "first"
    assert contents(tmp_path) == {"table.csv"}


def test_results_may_lie_on_another_disk_behind_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "results").symlink_to(tmp_path / "disk")
    with writing(tmp_path / "results/study/table.csv") as temporary:
        temporary.write_text("x")
    assert contents(tmp_path / "disk") == {"study", "study/table.csv"}


def test_a_link_is_one_or_a_copy_where_there_can_be_none(tmp_path, monkeypatch):
    (tmp_path / "weights").write_text("x")
    link_or_copy(tmp_path / "weights", tmp_path / "linked")
    assert (tmp_path / "linked").readlink() == tmp_path / "weights"

    def refuse(*arguments) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)
    link_or_copy(tmp_path / "linked", tmp_path / "copied")
    assert not (tmp_path / "copied").is_symlink() and (tmp_path / "copied").read_text() == "x"


def test_a_link_between_files_of_one_checkout_holds_when_it_is_moved(tmp_path, monkeypatch):
    (tmp_path / "checkout/results").mkdir(parents=True)
    (tmp_path / "checkout/weights").write_text("x")
    (tmp_path / "elsewhere").write_text("y")
    monkeypatch.chdir(tmp_path / "checkout")
    link_or_copy(Path("weights"), Path("results/inside"))
    link_or_copy(tmp_path / "elsewhere", Path("results/outside"))
    monkeypatch.chdir(tmp_path)
    moved = (tmp_path / "checkout").rename(tmp_path / "moved")
    assert [(moved / "results" / name).read_text() for name in ("inside", "outside")] == ["x", "y"]


def test_a_link_that_fails_for_another_reason_is_an_error(tmp_path):
    (tmp_path / "weights").write_text("x")
    with pytest.raises(FileExistsError):
        link_or_copy(tmp_path / "weights", tmp_path / "weights")


@pytest.mark.parametrize("answer", [errno.EOPNOTSUPP, "no such call"])
def test_where_no_room_can_be_asked_for_it_is_taken(tmp_path, monkeypatch, answer):
    def refuse(*arguments) -> None:
        raise OSError(answer, "Operation not supported")

    if answer == "no such call":
        monkeypatch.delattr(os, "posix_fallocate")
    else:
        monkeypatch.setattr(os, "posix_fallocate", refuse)
    with (tmp_path / "file").open("wb") as file:
        file.write(b"header")
        file.truncate(3 * 2**20 + 5)
    os.utime(tmp_path / "file", (0, 0))
    reserve(tmp_path / "file")
    assert (tmp_path / "file").stat().st_mtime > 0, "nothing was written"
    assert (tmp_path / "file").read_bytes() == b"header" + bytes(3 * 2**20 - 1)


def test_a_disk_without_room_is_an_error(tmp_path, monkeypatch):
    def refuse(*arguments) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OSError, match="No space left"):
        reserve(tmp_path / "file")


def test_a_locked_file_is_not_locked_twice(tmp_path):
    with (tmp_path / "lock").open("w") as mine, (tmp_path / "lock").open("w") as other:
        assert lock_file(mine, wait=False) and not lock_file(other, wait=False)
        mine.close()
        assert lock_file(other)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP], ids=errno.errorcode.get)
def test_a_file_system_without_locks_is_told_of_and_used(tmp_path, monkeypatch, caplog, code):
    def refuse(*arguments) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (tmp_path / "lock").open("w") as file:
        assert lock_file(file)
    assert "its file system has no locks" in caplog.text


def test_a_lock_that_fails_for_another_reason_is_an_error(tmp_path):
    with (tmp_path / "lock").open("w") as file:
        pass
    with pytest.raises(ValueError, match="closed file"):
        lock_file(file)


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
    assert contents(tmp_path) == set()


def test_remove_takes_files_folders_and_links_but_not_what_links_point_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    for path in (tmp_path / "link", tmp_path / "absent"):
        remove(path)
    assert contents(tmp_path) == {"kept", "kept/file"}
    remove(tmp_path / "kept")
    assert contents(tmp_path) == set()
