"""Files that installed Python packages ship; the packages are not imported."""

import hashlib
import importlib.util
import json
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from lmshape.errors import LmshapeError


def folder(package: str) -> Path:
    """The folder of an installed package's files; LmshapeError if no top-level package has that name."""
    spec = importlib.util.find_spec(package) if package.isidentifier() else None  # found, not imported
    if spec is None or not spec.submodule_search_locations:
        raise LmshapeError(
            f"package {package} is not installed; `make .venv` installs requirements.txt and requirements-data.txt"
        )
    return Path(spec.submodule_search_locations[0])


def file(package: str, path: str) -> Path:
    """A file or folder that an installed package ships."""
    found = folder(package) / path
    if not found.exists():
        raise LmshapeError(f"package {package} ships no {path}; install the version in requirements-data.txt")
    return found


def version(package: str) -> tuple[str, str]:
    """(distribution, version) of an installed package; LmshapeError if pip did not install it."""
    distributions = metadata.packages_distributions().get(package)
    if not distributions:
        raise LmshapeError(f"package {package} in {folder(package)} has no version: install it with pip")
    return distributions[0], metadata.version(distributions[0])


def versions(packages: Iterable[str]) -> dict[str, str | None]:
    """What tells one installation of some packages from another: data that is taken from them is as new as this.

    Packages are named as they are imported. It is the version, and with it a hash of the files where these can change
    under one version: of a package that is installed to be edited, or lies in a folder of the path. None where this
    process has no such package: the job may have it in an environment of its own, or will say that it is missing.
    """
    return {package: _version(package) for package in packages}


@cache
def _version(package: str) -> str | None:
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None:
        return None
    distribution = _distribution(package)
    if distribution and not _editable(distribution):
        return distribution.version
    places = spec.submodule_search_locations or [spec.origin]
    version = distribution.version if distribution else "of no distribution"
    return f"{version}, files {_files_digest(Path(places[0]))}"


def _distribution(package: str) -> metadata.Distribution | None:
    """The distribution that installed a package."""
    try:
        return metadata.distribution(package)
    except metadata.PackageNotFoundError:  # it has another name: listing them all takes a while
        names = metadata.packages_distributions().get(package)
        return metadata.distribution(names[0]) if names else None


def _editable(distribution: metadata.Distribution) -> bool:
    """Whether a distribution was installed to be edited, as its installer says (PEP 610)."""
    said = json.loads(distribution.read_text("direct_url.json") or "{}")
    return said.get("dir_info", {}).get("editable", False)


def _files_digest(place: Path) -> str:
    """Hash of a file, or of the names and contents of all files in a folder but compiled ones."""
    files = sorted(path for path in place.rglob("*") if path.is_file() and path.suffix != ".pyc")
    digest = hashlib.sha256()
    for path in files or [place]:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(place)} {content}\n".encode())
    return digest.hexdigest()[:16]
