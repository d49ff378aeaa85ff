"""Files that installed Python packages ship; the packages are not imported."""

import importlib.metadata
import importlib.util
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
    distributions = importlib.metadata.packages_distributions().get(package)
    if not distributions:
        raise LmshapeError(f"package {package} in {folder(package)} has no version: install it with pip")
    return distributions[0], importlib.metadata.version(distributions[0])
