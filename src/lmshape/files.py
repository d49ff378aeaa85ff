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

    The block may write a file or make a folder there. The rename is atomic, so a job that is killed leaves
    the temporary name behind and never a truncated `path`. A file is on the disk before it gets its name, so
    that not even a power cut leaves an empty one; the name tells the processes of several machines apart.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.part")
    remove(temporary)
    try:
        yield temporary
        if temporary.is_dir():  # a folder cannot replace one that has content
            remove(path)
        else:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        remove(temporary)


def remove(path: Path) -> None:
    """Delete a file or a whole folder; nothing happens where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
