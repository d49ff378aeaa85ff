"""Where a report comes from: the study as it was resolved, the code's commit, the versions of the packages."""

import csv
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path


@dataclass(frozen=True)
class Provenance:
    """What a reader needs to run a study again.

    `study` is the resolved configuration as YAML; `pruned` holds (combination, reason); `commit` is None outside a
    git checkout, and `modified` says whether files differed from it, or the study read some that it does not hold.
    """

    title: str
    study: str
    pruned: Sequence[tuple[str, str]]
    commit: str | None
    modified: bool
    packages: Mapping[str, str]
    platform: str
    time: str


def gather(title: str, study: str | Path, pruned: str | Path, read: Iterable[str | Path] = ()) -> Provenance:
    """The provenance of a report written now, from the study's `study.yaml` and `pruned.csv`.

    `read` are the files that say what the study is and what it measures on.
    """
    with Path(pruned).open(newline="", encoding="utf-8") as file:
        cut = [(row["combination"], row["reason"]) for row in csv.DictReader(file)]
    commit, modified = checkout(Path(__file__).parent, read)
    return Provenance(
        title=title,
        study=Path(study).read_text(encoding="utf-8"),
        pruned=cut,
        commit=commit,
        modified=modified,
        packages=packages(),
        platform=f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        time=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def packages() -> dict[str, str]:
    """Name -> installed version of lmshape and of what it depends on directly."""
    required = [line for line in metadata.requires("lmshape") or [] if "extra ==" not in line]
    names = ["lmshape", *sorted(re.match(r"[\w.-]+", line).group() for line in required)]
    return {name: metadata.version(name) for name in names}


def checkout(folder: Path, read: Iterable[str | Path] = ()) -> tuple[str | None, bool]:
    """(commit, whether it lacks something) of the git checkout that tracks `folder`, or (None, False).

    It lacks what differs in tracked files, and those files within the checkout that are `read` but not tracked;
    other untracked ones, as results are, do not count.
    """

    def git(*arguments: str, at: str | Path = folder) -> str:
        command = ["git", "--literal-pathspecs", "-C", str(at), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # An installed package may lie inside some other project's checkout: only one that tracks it counts.
        git("ls-files", "--error-unmatch", ".")
        top = git("rev-parse", "--show-toplevel")
        own = [str(path) for path in (Path(each).resolve() for each in read) if path.is_relative_to(top)]
        lacks = git("status", "--porcelain", "--untracked-files=no")
        lacks += git("ls-files", "--others", "--", *own, at=top) if own else ""
        return git("rev-parse", "HEAD"), bool(lacks)
    except (OSError, subprocess.CalledProcessError):
        return None, False
