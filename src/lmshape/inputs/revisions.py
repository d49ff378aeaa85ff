"""Which revision a model folder holds: `revision.json`, written by whatever made the folder."""

import json
from pathlib import Path

from lmshape.errors import LmshapeError

RECORD = "revision.json"


def write(folder: Path, repository: str, revision: str, commit: str) -> None:
    """Record that `folder` holds `revision` of `repository`, which stands for `commit`."""
    record = {"repository": repository, "revision": revision, "commit": commit}
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def read(folder: Path) -> str:
    """The commit that a model folder holds."""
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))["commit"]
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        raise LmshapeError(
            f"{folder}: no {RECORD}, or no commit in it; delete the folder, and it is made again"
        ) from None
