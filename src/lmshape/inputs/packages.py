"""Models and texts that installed Python packages ship: files alone, the packages are not imported."""

import importlib.metadata
import importlib.util
import shutil
from pathlib import Path

from lmshape.errors import LmshapeError
from lmshape.inputs import local_models, revisions


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


def copy_model(package: str, path: str, folder: Path) -> None:
    """Make `folder` a model folder of a package's model: its files, or its one GGUF file, and revision.json."""
    source = file(package, path)
    folder.mkdir(parents=True)
    for found in local_models.files(source):
        shutil.copy(found, folder)
    distribution = importlib.metadata.packages_distributions()[package][0]
    version = importlib.metadata.version(distribution)
    revisions.write(folder, distribution, version, f"{distribution} {version}")
