"""Writing results so that a reader never meets half of one."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def writing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary name beside `path`; rename it to `path` if the block succeeds, remove it if not.

    The block may write a file or make a folder there. A job that is killed leaves the temporary name behind and
    never a truncated `path`; the name tells the processes of several machines apart.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.part")
    remove(temporary)
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
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Delete a file or a whole folder; nothing happens where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
