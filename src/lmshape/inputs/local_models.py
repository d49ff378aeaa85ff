"""Models that lie on this machine, in a folder in transformers' layout or as a GGUF file.

Those of the user's own are linked to, those of Python packages copied. Light imports only: the workflow asks which
files a model is.
"""

import logging
import os
import shutil
from pathlib import Path

from lmshape.files import link_or_copy
from lmshape.inputs import model_files, packages, revisions, stand_ins, tokenizer_files

log = logging.getLogger(__name__)


def files(path: Path) -> list[Path]:
    """The files of the model at `path`, by name; what else a folder holds, such as an optimizer's state, is none.

    `path` is a folder or a GGUF file. Raises CheckpointError where no model is, and StandInError where a file of it
    is not there in whole.
    """
    if path.is_dir():
        names = _names(path)
        found = set(model_files.model(path, names))
        if model_files.CONFIGURATION in found:  # a GGUF model has its tokenizer inside
            found.update(tokenizer_files.among(names))
        parts = [path / name for name in sorted(found)]
    elif path.suffix == ".gguf":
        parts = model_files.gguf_parts(path)
    else:
        raise model_files.CheckpointError(
            f"{path}: no model: give a folder in transformers' layout, or a GGUF file, whose name ends in .gguf"
        )
    for part in parts:
        stand_ins.refuse_absent(part)
    return parts


def tokenizer(path: Path) -> list[Path]:
    """Those of `files` that the tokenizer of the model at `path` is read from.

    None of a GGUF model, which has it inside. Raises as `files` does.
    """
    found = {file.name: file for file in files(path)}
    if model_files.CONFIGURATION not in found:
        return []
    return [found[name] for name in sorted({*tokenizer_files.among(found), model_files.CONFIGURATION})]


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        raise stand_ins.unreadable(folder, error) from error


def passed_over(path: Path) -> list[str]:
    """What a user may think is read at `path` and is not: a message for each."""
    return model_files.passed_over(path, _names(path)) if path.is_dir() else []


def link(path: str | Path, folder: Path) -> None:
    """Make `folder` a model folder of links to the files of the model at `path`, and revision.json.

    The revision is a hash of their names and contents. Raises as `sound_files` does.
    """
    found = sound_files(Path(path))
    folder.mkdir(parents=True)
    for file in found:
        link_or_copy(file, folder / file.name)
    revisions.write_of_links(folder, str(path), [folder / file.name for file in found])
    for said in passed_over(Path(path)):
        log.warning(said)


def sound_files(path: Path) -> list[Path]:
    """`files`, each of which was looked into: StandInError for one that is something else in place of it."""
    found = files(path)
    for file in found:
        stand_ins.refuse_file(file)
    return found


def copy(package: str, path: str, folder: Path) -> None:
    """Make `folder` a model folder of a package's model: its files, or its one GGUF file, and revision.json."""
    source = packages.file(package, path)
    found = sound_files(source)
    folder.mkdir(parents=True)
    for file in found:
        shutil.copyfile(file, folder / file.name)  # content alone: not every file system has modes to copy
    distribution, version = packages.version(package)
    revisions.write(folder, distribution, version, f"{distribution} {version}")
