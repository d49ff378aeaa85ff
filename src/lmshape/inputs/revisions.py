"""Which revision a model folder holds: `revision.json`, written by whatever made the folder."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from lmshape.errors import LmshapeError

RECORD = "revision.json"


def write(folder: Path, repository: str, revision: str, commit: str) -> None:
    """Record that `folder` holds `revision` of `repository`, which stands for `commit`."""
    _write(folder, {"repository": repository, "revision": revision, "commit": commit})


def write_of_links(folder: Path, repository: str, links: Sequence[Path]) -> None:
    """Record that `folder` holds links to files, which may change: `read` refuses them when they do."""
    states = {link.name: _state(link) for link in links}  # before they are read
    _write(folder, {"repository": repository, "commit": of_files(links), "files": states})


def _write(folder: Path, record: dict) -> None:
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def of_files(paths: Iterable[Path]) -> str:
    """What stands for a commit where there is none: a hash of the names and contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as content:
            digest.update(f"{path.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def read(folder: Path) -> str:
    """The commit that a model folder holds; LmshapeError where its files are others by now than those recorded."""
    record = _record(folder)
    links = {folder / name: state for name, state in record.get("files", {}).items()}
    changed = [link for link, state in links.items() if _state(link) != state]
    if not all(link.exists() for link in changed) or (changed and of_files(links) != record["commit"]):
        names = ", ".join(link.name for link in changed)
        raise LmshapeError(
            f"{record['repository']}: {names} changed while a run was reading the model: run again"
        )
    return record["commit"]


def _state(path: Path) -> list[int]:
    """What changes with a file as a rule, and costs nothing to look at; nothing, if the file is gone."""
    if not path.exists():
        return []
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]


def _record(folder: Path) -> dict:
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return record | {"commit": record["commit"]}
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        raise LmshapeError(
            f"{folder}: no {RECORD}, or no commit in it; delete the folder, and it is made again"
        ) from None
