"""Models from the Hugging Face hub as ordinary folders: the revision asked for, and never another in its place.

For an embedding table, only the bytes of the tensors that hold it are read. huggingface_hub is the client, so its
settings hold: HF_ENDPOINT, HF_TOKEN, and HF_HUB_OFFLINE, under which its cache is all there is.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal, TextIO

import numpy as np
from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache

from lmshape.files import lock_file, put, remove
from lmshape.inputs import checkpoints, model_files, revisions, stand_ins, tokenizer_files
from lmshape.inputs.hub_errors import HubError, named, said
from lmshape.inputs.json_files import JsonFileError
from lmshape.inputs.model_files import CONFIGURATION, CheckpointError, Opener
from lmshape.inputs.remote_files import NoRanges, open_remote
from lmshape.inputs.stand_ins import StandInError
from lmshape.inputs.tensor_files import write

log = logging.getLogger(__name__)

OFFLINE = (
    "HF_HUB_OFFLINE is set, and the client's cache may lack what the revision has: fetch it with a network"
)
Files = Literal["embedding", "model", "tokenizer", "tokenizer-if-any"]


@dataclass(frozen=True)
class Revision:
    """One commit of a repository: its files' names, how to read a part of one and how to copy one whole."""

    repo: str
    commit: str
    names: frozenset[str]
    root: str
    opener: Opener
    copy: Callable[[str, Path], object]


def fetch(repo: str, revision: str, folder: str | Path, files: Files = "model") -> str:
    """Make `folder` a model folder of `repo` at `revision` and return the commit that the revision stands for.

    `files`: `tokenizer` (configuration and tokenizer), `tokenizer-if-any`, `model` (these and the weights,
    safetensors where there are any), or `embedding` (configuration, and a weight file of the embedding tensors
    alone). The folder also gets `revision.json`, which says where it came from. Raises HubError where something is
    missing.

    Files arrive in a hidden folder beside it that carries the commit's name: a download that was interrupted is
    taken up where it stopped, and `folder` is never there in part. One process at a time fetches a folder; what
    it made serves those that waited for it, such as the job of a run after one that was killed and left its own.
    """
    folder = Path(folder)
    source = _resolve(repo, revision)
    try:
        chosen = _choose(source, files)
        with _alone(folder) as waited:
            if not (waited and _holds(folder, source.commit, chosen)):
                _bring(source, chosen, files, folder, revision)
    except OSError as error:
        raise HubError(f"{repo} at {revision}, in {folder}: {said(error)}") from error
    except (CheckpointError, JsonFileError, StandInError) as error:
        if constants.is_offline_mode():
            raise HubError(f"{repo} at {revision}: {error}; {OFFLINE}") from error
        raise
    return source.commit


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Keep other processes, also of other machines, from fetching `folder`; gives whether one of them did before.

    The lock goes with the process however it dies.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.with_name(f".{folder.name}.lock")
    lock, waited = _lock(path)
    with lock:
        try:
            yield waited
        finally:
            path.unlink(missing_ok=True)


def _lock(path: Path) -> tuple[TextIO, bool]:
    """Open and lock a file; also gives whether another process had it.

    That one removed the file at its end, and a lock on a file without a name keeps nobody out: so try again.
    """
    waited = False
    while True:
        lock = path.open("w")
        if not lock_file(lock, wait=False):
            waited = True
            log.info("%s: waiting for another process that fetches the same", path)
            lock_file(lock)
        with suppress(FileNotFoundError):
            if os.path.samefile(path, lock.fileno()):
                return lock, waited
        lock.close()
        waited = True


def _holds(folder: Path, commit: str, names: list[str]) -> bool:
    """Whether `folder` is there, with these files of this commit."""
    return folder.is_dir() and revisions.read(folder) == commit and not _lacking(folder, names)


def _lacking(folder: Path, names: list[str]) -> list[str]:
    return [name for name in names if not (folder / name).is_file()]


def _bring(source: Revision, names: list[str], files: Files, folder: Path, revision: str) -> None:
    """Download the files into a hidden folder, make it complete and give it its name."""
    arriving = folder.with_name(f".{folder.name}.{source.commit}.part")
    arriving.mkdir(exist_ok=True)
    for name in names:
        source.copy(name, arriving)
        stand_ins.refuse_file(arriving / name)
    if files == "embedding":
        _write_embeddings(source, arriving)
    if files == "model":
        checkpoints.verify(arriving)  # and before anything else opens it: it could run code
    if lacking := _lacking(arriving, names):
        raise HubError(
            f"{source.root}: {', '.join(lacking)} went from {arriving} while it was filled; fetch again"
        )
    revisions.write(arriving, source.repo, revision, source.commit)
    remove(arriving / ".cache")  # what the client remembers of a download
    put(arriving, folder)


def _resolve(repo: str, revision: str) -> Revision:
    if constants.is_offline_mode():
        return _cached(repo, revision)
    with named(repo, revision):
        information = HfApi().model_info(repo, revision=revision)
        commit, names = information.sha, frozenset(file.rfilename for file in information.siblings)
    root = f"{repo}@{commit}"

    def opener(path: str, mode: str) -> BinaryIO:
        return open_remote(repo, commit, path.removeprefix(f"{root}/"))

    def copy(name: str, folder: Path) -> None:
        with named(repo, commit, name):
            hf_hub_download(repo, name, revision=commit, local_dir=folder)

    return Revision(repo, commit, names, root, opener, copy)


def _cached(repo: str, revision: str) -> Revision:
    """A revision as far as the client's cache has it."""
    with named(repo, revision):
        config = try_to_load_from_cache(repo, CONFIGURATION, revision=revision)
    if not isinstance(config, str):
        raise HubError(f"{repo} at {revision}: not in the cache {constants.HF_HUB_CACHE}; {OFFLINE}")
    snapshot = Path(config).parent

    def copy(name: str, folder: Path) -> None:
        stand_ins.refuse_file(snapshot / name)  # a link, and what it leads to may have been cleared away
        shutil.copyfile(snapshot / name, folder / name)

    return Revision(
        repo=repo,
        commit=snapshot.name,
        names=frozenset(os.listdir(snapshot)),
        root=str(snapshot),
        opener=open,
        copy=copy,
    )


def _choose(source: Revision, files: Files) -> list[str]:
    """The files to copy whole: configuration, and as asked the tokenizer's and the weights."""
    model_files.require_configuration(source.root, source.names, source.opener)
    if files == "embedding":
        return [CONFIGURATION]
    tokenizer = tokenizer_files.among(source.names)
    if files == "tokenizer" and not tokenizer:
        expected = ", ".join(tokenizer_files.VOCABULARIES)
        raise HubError(f"{source.root}: has no tokenizer: expected one of {expected}")
    if files != "model":
        return [CONFIGURATION, *tokenizer]
    weights = model_files.weights(source.root, source.names, source.opener)
    return [CONFIGURATION, *tokenizer, *weights.files]


def _write_embeddings(source: Revision, folder: Path) -> None:
    """Write `model.safetensors` of the embedding tensors alone, under their own names and in their own type."""
    whole = folder / ".whole"
    try:
        arrays = _embeddings(source, folder)
    except NoRanges as error:
        log.warning("%s: what holds an embedding table is fetched whole", error)
        arrays = _embeddings(replace(source, opener=_fetching(source, whole)), folder)
    write(folder / "model.safetensors", arrays, {"format": "pt"})
    remove(whole)


def _embeddings(source: Revision, folder: Path) -> dict[str, tuple[np.ndarray, str]]:
    """Name -> (array, type) of the embedding tensors of a revision, whose configuration is in `folder`."""
    family, tied = checkpoints.architecture(checkpoints.configuration(folder), source.root)
    held = checkpoints.weights(source.root, source.names, source.opener)
    names = {
        checkpoints.locate(held, family, tied, "input", source.root),
        checkpoints.find(held, family.output, source.root),
    }
    chosen = {name: held[name] for name in sorted(names - {None})}
    return {name: (tensor.read(), tensor.dtype) for name, tensor in chosen.items()}


def _fetching(source: Revision, folder: Path) -> Opener:
    """An opener of a revision's files that brings each whole into `folder`."""

    def opener(path: str, mode: str) -> BinaryIO:
        name = path.removeprefix(f"{source.root}/")
        source.copy(name, folder)
        return (folder / name).open(mode)

    return opener
