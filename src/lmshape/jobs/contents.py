"""What files of the user's hold, told from their bytes and never from their dates.

`mv`, `cp -p`, `rsync -a` and `tar` put a file in place with the date it had; `touch` and `git checkout` give an old
one a new date. A large file is read once: its digest is remembered while it is the same file of the same size and
times, the time of its last change included, which no program can set.
"""

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from lmshape.errors import LmshapeError
from lmshape.files import writing

LARGE = 2**20  # bytes from which a digest is worth remembering
SETTLED = (
    2 * 10**9
)  # nanoseconds: a file that changed a moment ago may change again within one tick of its times


class Contents:
    """Digests of files, remembered in the JSON file `memory`, which may be deleted at any time."""

    def __init__(self, memory: Path):
        self.memory = memory
        self._known: dict[str, dict] | None = None

    def digest(self, path: str | Path) -> str:
        """Hash of what is in a file; LmshapeError if it cannot be read."""
        try:
            found = os.stat(path)
            state = [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
            known = self.known().get(str(path))
            if known and known["state"] == state:
                return known["digest"]
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise LmshapeError(f"{path}: cannot be read ({error.strerror})") from None
        if found.st_size >= LARGE and time.time_ns() - found.st_ctime_ns > SETTLED:
            self.remember(str(path), {"state": state, "digest": digest})
        return digest

    def known(self) -> dict[str, dict]:
        if self._known is None:
            try:
                entries = json.loads(self.memory.read_text()).items()
                self._known = {path: entry for path, entry in entries if {"state", "digest"} <= set(entry)}
            except (
                OSError,
                ValueError,
                AttributeError,
                TypeError,
            ):  # there is none, or another hand wrote it
                self._known = {}
        return self._known

    def remember(self, path: str, entry: dict) -> None:
        """Keep an entry, in the file too where that can be written."""
        self.known()[path] = entry
        with suppress(OSError), writing(self.memory) as temporary:
            temporary.write_text(json.dumps(self._known, indent=0))
