"""Models from the Hugging Face hub as ordinary folders: the revision asked for, and never another in its place.

For an embedding table, only the bytes of the tensors that hold it are read. huggingface_hub is the client, so its
settings hold: HF_ENDPOINT, HF_TOKEN, and HF_HUB_OFFLINE, under which its cache is all there is.
"""

import fcntl
import json
import logging
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import BinaryIO, Literal, TextIO

import httpx2
from huggingface_hub import (
    HfApi,
    constants,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_backoff

from lmshape.errors import LmshapeError
from lmshape.files import put, remove
from lmshape.inputs import revisions, tokenizer_files
from lmshape.inputs.checkpoints import WEIGHT_FILES, architecture, configuration, find, locate, weights
from lmshape.inputs.tensor_files import Opener, tensors, write

log = logging.getLogger(__name__)

Files = Literal["embedding", "model", "tokenizer", "tokenizer-if-any"]

BLOCK = 2**18  # bytes that a small read takes: a header or so; tables are read in larger pieces


class HubError(LmshapeError):
    """A repository, revision or file that the hub does not have, or does not give."""


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
    with _named(repo, revision):
        source = _resolve(repo, revision)
        chosen = _choose(source, files)
        with _alone(folder) as waited:
            if not (waited and _holds(folder, source.commit, chosen)):
                _bring(source, chosen, files, folder, revision)
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
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            log.info("%s: waiting for another process that fetches the same", path)
            fcntl.flock(lock, fcntl.LOCK_EX)
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
    if files == "embedding":
        _write_embeddings(source, arriving)
    _refuse_code(arriving)
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
    information = HfApi().model_info(repo, revision=revision)
    names = frozenset(file.rfilename for file in information.siblings)
    root = f"{repo}@{information.sha}"

    def opener(path: str, mode: str) -> BinaryIO:
        name = path.removeprefix(f"{root}/")
        if name not in names:
            raise FileNotFoundError(path)
        return _open_remote(hf_hub_url(repo, name, revision=information.sha))

    def copy(name: str, folder: Path) -> None:
        hf_hub_download(repo, name, revision=information.sha, local_dir=folder)

    return Revision(repo, information.sha, names, root, opener, copy)


def _open_remote(url: str) -> BinaryIO:
    """Open a file of the hub for reading; JSON comes whole, because servers compress it."""
    if url.endswith(".json"):
        return BytesIO(_get(url, {}).content)
    return BufferedReader(RemoteFile(url), BLOCK)


class RemoteFile(RawIOBase):
    """A file of the hub, read by byte range.

    Not the client's own file system: that takes the whole file for the range where a server ignores ranges.
    """

    def __init__(self, url: str):
        self.url, self.position = url, 0
        self.size = get_hf_file_metadata(url).size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.size}[whence]
        return self.position

    def readinto(self, buffer: memoryview) -> int:
        length = max(0, min(len(buffer), self.size - self.position))
        if length:
            wanted = {"Range": f"bytes={self.position}-{self.position + length - 1}"}
            response = _get(self.url, wanted)
            if response.status_code != HTTPStatus.PARTIAL_CONTENT or len(response.content) != length:
                raise HubError(
                    f"{self.url}: the server does not give byte ranges; fetch whole models from it"
                )
            buffer[:length] = response.content
            self.position += length
        return length


def _get(url: str, headers: dict[str, str]) -> httpx2.Response:
    headers = build_hf_headers() | headers
    response = http_backoff("GET", url, headers=headers, timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT)
    hf_raise_for_status(response)
    return response


def _cached(repo: str, revision: str) -> Revision:
    """A revision as far as the client's cache has it."""
    config = try_to_load_from_cache(repo, "config.json", revision=revision)
    if not isinstance(config, str):
        raise HubError(
            f"{repo} at {revision}: not in the cache {constants.HF_HUB_CACHE}, and HF_HUB_OFFLINE is set"
        )
    snapshot = Path(config).parent
    return Revision(
        repo=repo,
        commit=snapshot.name,
        names=frozenset(os.listdir(snapshot)),
        root=str(snapshot),
        opener=open,
        copy=lambda name, folder: shutil.copyfile(snapshot / name, folder / name),
    )


def _choose(source: Revision, files: Files) -> list[str]:
    """The files to copy whole: configuration, and as asked the tokenizer's and those of one set of weights."""
    if "config.json" not in source.names:
        raise HubError(
            f"{source.root}: has no config.json; it has {', '.join(sorted(source.names)) or 'no files'}"
        )
    chosen = ["config.json"]
    if files == "embedding":
        return chosen
    tokenizer = tokenizer_files.among(source.names)
    if files == "tokenizer" and not tokenizer:
        known = ", ".join(tokenizer_files.VOCABULARIES)
        raise HubError(f"{source.root}: has no tokenizer: expected one of {known}")
    if files != "model":
        return chosen + tokenizer
    generation = [name for name in ["generation_config.json"] if name in source.names]
    return chosen + tokenizer + generation + _weight_files(source)


def _weight_files(source: Revision) -> list[str]:
    """One set of weight files, by the index file where there are shards: no copies in other formats."""
    file = next((file for file in WEIGHT_FILES if file in source.names), None)
    if file is None:
        raise HubError(f"{source.root}: has no weights: expected one of {', '.join(WEIGHT_FILES)}")
    if not file.endswith(".json"):
        return [file]
    with source.opener(f"{source.root}/{file}", "rb") as index:
        shards = sorted(set(json.loads(index.read())["weight_map"].values()))
    missing = [shard for shard in shards if shard not in source.names]
    if missing:
        raise HubError(f"{source.root}: {file} lists {', '.join(missing)}, which the revision does not have")
    return [file, *shards]


def _write_embeddings(source: Revision, folder: Path) -> None:
    """Write `model.safetensors` of the embedding tensors alone, under their own names and in their own type."""
    family, tied = architecture(configuration(folder), source.root)
    held = weights(source.root, source.names, source.opener)
    names = {locate(held, family, tied, "input", source.root), find(held, family.output)} - {None}
    chosen = {name: held[name] for name in sorted(names)}
    arrays = {name: (tensor.read(), tensor.dtype) for name, tensor in chosen.items()}
    write(folder / "model.safetensors", arrays, {"format": "pt"})


def _refuse_code(folder: Path) -> None:
    """Raise CheckpointError for a PyTorch file that could run code, before anything opens it.

    Old files that are no zip could only be looked at by loading them; torch and transformers refuse those then.
    """
    for path in filter(zipfile.is_zipfile, folder.glob("*.bin")):
        tensors(path)


@contextmanager
def _named(repo: str, revision: str) -> Iterator[None]:
    """Say what the hub lacks, by name, in place of the client's errors."""
    try:
        yield
    except GatedRepoError as error:
        raise HubError(
            f"{repo}: is gated: accept its terms on the hub, then log in with `hf auth login`"
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise HubError(
            f"{repo}: no such repository on the hub, or a private one; check the suite's `hub`"
        ) from error
    except RevisionNotFoundError as error:
        raise HubError(f"{repo}: has no revision {revision}, and no other is taken in its place") from error
    except EntryNotFoundError as error:
        raise HubError(f"{repo} at {revision}: a file is missing: {str(error).splitlines()[-1]}") from error
    except (HfHubHTTPError, httpx2.TransportError) as error:
        raise HubError(f"{repo} at {revision}: {constants.ENDPOINT} did not give it: {error}") from error
