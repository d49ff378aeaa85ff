"""Models and texts that installed Python packages ship: files alone, the packages are not imported."""

import importlib.metadata
import importlib.util
import shutil
from pathlib import Path

from lmshape.errors import LmshapeError
from lmshape.inputs import revisions

MODEL_FILES = (
    "config.json",
    "*.safetensors",
    "tokenizer*",
    "special_tokens_map.json",
    "vocab*",
    "merges.txt",
)


def file(package: str, path: str) -> Path:
    """A file or folder that an installed package ships."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise LmshapeError(f"package {package} is not installed; `make .venv` installs requirements-data.txt")
    found = Path(spec.origin).parent / path
    if not found.exists():
        raise LmshapeError(f"package {package} ships no {path}; install the version in requirements-data.txt")
    return found


def copy_model(package: str, path: str, folder: Path) -> None:
    """Make `folder` a model folder of a package's model: its files, or its one GGUF file, and revision.json."""
    source = file(package, path)
    folder.mkdir(parents=True)
    patterns = MODEL_FILES if source.is_dir() else [source.name]
    for pattern in patterns:
        for found in (source if source.is_dir() else source.parent).glob(pattern):
            shutil.copy(found, folder)
    distribution = importlib.metadata.packages_distributions()[package][0]
    version = importlib.metadata.version(distribution)
    revisions.write(folder, distribution, version, f"{distribution} {version}")
