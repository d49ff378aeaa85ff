"""Where a report comes from: the study as it was resolved, the code's commit, the versions of the packages."""

import csv
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

# Whoever runs lmshape runs the code of its checkout, so git may look at it, whoever owns it. No program that a
# setting names is run for that.
GIT = ("git", "--literal-pathspecs", "-c", "safe.directory=*", "-c", "core.fsmonitor=false")


class Checkout(NamedTuple):
    """A git checkout's commit and whether the checkout lacks something, or the reason that no commit is known."""

    commit: str | None
    modified: bool
    reason: str | None = None


@dataclass(frozen=True)
class Provenance:
    """What a reader needs to run a study again.

    `study` is the resolved configuration as YAML; `pruned` holds (combination, reason); `commit` is None where there
    is none or git refuses to tell, for which there is a `reason`, and `modified` says whether files differed from it,
    or the study read some that it does not hold.
    """

    title: str
    study: str
    pruned: Sequence[tuple[str, str]]
    commit: str | None
    modified: bool
    packages: Mapping[str, str]
    platform: str
    time: str
    reason: str | None = None


def gather(title: str, study: str | Path, pruned: str | Path, read: Iterable[str | Path] = ()) -> Provenance:
    """The provenance of a report written now, from the study's `study.yaml` and `pruned.csv`.

    `read` are the files that say what the study is and what it measures on.
    """
    with Path(pruned).open(newline="", encoding="utf-8") as file:
        cut = [(row["combination"], row["reason"]) for row in csv.DictReader(file)]
    code = checkout(Path(__file__).parent, read)
    return Provenance(
        title=title,
        study=Path(study).read_text(encoding="utf-8"),
        pruned=cut,
        commit=code.commit,
        modified=code.modified,
        reason=code.reason,
        packages=packages(),
        platform=f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        time=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def packages() -> dict[str, str]:
    """Name -> installed version of lmshape and of what it depends on directly."""
    required = [line for line in metadata.requires("lmshape") or [] if "extra ==" not in line]
    names = ["lmshape", *sorted(re.match(r"[\w.-]+", line).group() for line in required)]
    return {name: metadata.version(name) for name in names}


def checkout(folder: Path, read: Iterable[str | Path] = ()) -> Checkout:
    """What git says of the checkout that tracks `folder`.

    It lacks what differs in tracked files, and those files within the checkout that are `read` but not tracked;
    other untracked ones, as results are, do not count.
    """
    try:
        # An installed package may lie inside some other project's checkout: only one that tracks it counts.
        git(folder, "ls-files", "--error-unmatch", ".")
        top = os.fsdecode(git(folder, "rev-parse", "--show-toplevel"))
        own = [str(path) for path in (Path(each).resolve() for each in read) if path.is_relative_to(top)]
        lacks = git(folder, "status", "--porcelain", "--untracked-files=no")
        lacks += git(top, "ls-files", "--others", "--", *own) if own else b""
        return Checkout(git(folder, "rev-parse", "--verify", "HEAD").decode(), bool(lacks))
    except OSError as error:
        return Checkout(None, False, f"git cannot be run ({error.strerror})")
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.decode(errors="replace").split())
        if "not a git repository" in said or "did not match any file" in said:
            return Checkout(None, False, "an installed package, no git checkout")
        why = said or f"git ended with {error.returncode}"
        return Checkout(None, False, f"git refuses to name a commit: {why}")


def git(folder: str | Path, *arguments: str) -> bytes:
    """What git prints of the checkout around `folder`, and of no other, whatever the environment says.

    A git hook that runs a study has GIT_DIR set to the repository that it is a hook of, for one.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}  # English, and nothing written
    command = [*GIT, "-C", str(folder), *arguments]
    ended = subprocess.run(command, env=environment, capture_output=True, check=True)
    return ended.stdout.removesuffix(b"\n")
