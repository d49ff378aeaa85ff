"""Writing results so that a reader never meets half of one."""

import errno
import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

log = logging.getLogger(__name__)

# What file systems answer that lack what they are asked for: fsync of folders (CIFS, shared folders of virtual
# machines) or of anything (some in user space), links (exFAT), locks (Lustre, NFS), room on request. A disk that
# fails or is full says something else.
LACKING = {
    errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY, errno.ENODEV, errno.ENOLCK,
}  # fmt: skip
FORBIDDEN = {errno.EACCES, errno.EPERM}  # to read a folder that one may write to, or to make links

BLOCK = 2**20  # bytes


@contextmanager
def writing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename it to `path` if the block succeeds, remove it if not.

    The block may write a file or make a folder there. A job that is killed leaves the temporary name behind and
    never a truncated `path`. No two writers share a name, of whatever machine, container or thread.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # a part of the name, as file systems take 255 bytes: 50 characters are 200 at most
    temporary = path.with_name(f".{path.name[:50]}.{os.urandom(8).hex()}.part")
    try:
        yield temporary
        put(temporary, path)
    except OSError as error:
        if error.errno and error.filename is None:  # as of a write: which file it was is the first question
            error.filename = str(path)
        raise
    finally:
        remove(temporary)


def put(made: Path, path: Path) -> None:
    """Give a finished file or folder its name beside it, in place of what had that name.

    The rename is atomic. All content is on the disk before, so that not even a power cut leaves an empty file
    under the name; and the name is there to stay when this returns.
    """
    for part in (*made.rglob("*"), made):
        if not part.is_symlink():
            _flush(part)
    if made.is_dir():  # a folder cannot replace one that has content
        remove(path)
    os.replace(made, path)
    _flush(path.parent)


def _flush(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk, where its file system can say so."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        if path.is_dir() and error.errno in FORBIDDEN:
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in LACKING:
            raise
    finally:
        os.close(descriptor)


def link_or_copy(target: Path, path: Path) -> None:
    """Make `path` a link to a file; a copy of it where the file system has no links (exFAT, some network mounts).

    Where both lie in the working directory the link is relative, so that they may be moved together.
    """
    target, here = target.resolve(), Path.cwd()
    if target.is_relative_to(here) and path.parent.resolve().is_relative_to(here):
        target = Path(os.path.relpath(target, path.parent.resolve()))
    try:
        path.symlink_to(target)
    except OSError as error:
        if error.errno not in LACKING | FORBIDDEN:
            raise
        log.info("%s: copied, as there can be no link to it (%s)", target, error.strerror)
        shutil.copyfile(path.parent / target, path)


def reserve(path: Path) -> None:
    """Give a file the room on its disk that its size says, so that no later write lacks it; OSError without room."""
    with path.open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except (AttributeError, OSError) as error:  # a platform without the call, or a file system
            if getattr(error, "errno", None) not in LACKING | {None}:
                raise
            while block := file.read(BLOCK):
                file.seek(-len(block), os.SEEK_CUR)
                file.write(block)


def lock_file(file: IO, wait: bool = True) -> bool:
    """Lock an open file until it is closed, or say that another process has it; with `wait`, after that one is done.

    Where a file system has no locks the log says so, and nobody is kept out.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in LACKING:
            raise
        log.warning(
            "%s: its file system has no locks (%s): start no other run meanwhile", file.name, error.strerror
        )
    return True


def remove(path: Path) -> None:
    """Delete a file or a whole folder; nothing happens where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
