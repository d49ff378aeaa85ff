"""Models that lie on this machine, in a folder in transformers' layout or as a GGUF file.

Those of the user's own are linked to, those of Python packages copied. Light imports only: the workflow asks which
files a model is.
"""

import hashlib
import importlib.metadata
import shutil
from pathlib import Path

from lmshape.errors import LmshapeError
from lmshape.files import link_or_copy
from lmshape.inputs import packages, revisions, tokenizer_files

MODEL_FILES = (
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "pytorch_model*.bin",
    "pytorch_model.bin.index.json",
    *tokenizer_files.NAMES,
)


def files(path: Path) -> list[Path]:
    """The files of the model at `path`, by name; what else a folder holds, such as an optimizer's state, is none.

    A GGUF file is a model by itself, weights and tokenizer, so it is named and not its folder.
    """
    if path.is_file():
        return [path]
    found = {file for pattern in MODEL_FILES for file in path.glob(pattern) if file.is_file()}
    return sorted(found)


def link(path: str | Path, folder: Path) -> None:
    """Make `folder` a model folder of links to the files of the model at `path`, and revision.json.

    The revision is a hash of their names and contents. Raises LmshapeError where no model is.
    """
    found = files(Path(path))
    if not found:
        raise LmshapeError(
            f"{path}: no file of a model; expected some of {', '.join(MODEL_FILES)}, or the path of a GGUF file"
        )
    folder.mkdir(parents=True)
    digest = hashlib.sha256()
    for file in found:
        link_or_copy(file, folder / file.name)
        with file.open("rb") as content:
            digest.update(f"{file.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    revisions.write(folder, str(path), "local", f"sha256:{digest.hexdigest()[:16]}")


def copy(package: str, path: str, folder: Path) -> None:
    """Make `folder` a model folder of a package's model: its files, or its one GGUF file, and revision.json."""
    source = packages.file(package, path)
    folder.mkdir(parents=True)
    for found in files(source):
        shutil.copyfile(found, folder / found.name)  # content alone: not every file system has modes to copy
    distribution = importlib.metadata.packages_distributions()[package][0]
    version = importlib.metadata.version(distribution)
    revisions.write(folder, distribution, version, f"{distribution} {version}")
