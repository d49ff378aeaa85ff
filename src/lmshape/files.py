"""Writing results so that a reader never meets half of one."""

import errno
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

# What file systems answer that have no fsync, of folders (CIFS, shared folders of virtual machines) or of anything
# (some in user space): they do what they can without being asked. EIO and a full disk are failures.
NO_FSYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
NO_READING = {errno.EACCES, errno.EPERM}  # of a folder that one may only write to
NO_LINKS = {errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


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
        if path.is_dir() and error.errno in NO_READING:
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_FSYNC:
            raise
    finally:
        os.close(descriptor)


def link_or_copy(target: Path, path: Path) -> None:
    """Make `path` a link to a file; a copy of it where the file system has no links (exFAT, some network mounts)."""
    try:
        path.symlink_to(target.resolve())
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        log.info("%s: copied, as there can be no link to it (%s)", target, error.strerror)
        shutil.copyfile(target, path)


def remove(path: Path) -> None:
    """Delete a file or a whole folder; nothing happens where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
