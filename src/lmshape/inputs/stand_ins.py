"""What lies where a file should be: a Git LFS pointer, a page that a server sent in its place, nothing at all."""

import os
from pathlib import Path

from lmshape.errors import LmshapeError

BEGINNING = 512  # bytes of a file that tell
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
ARIA2 = ".aria2"  # what aria2 keeps beside a file, which has its full length from the beginning, until it is whole
PAGES = (b"<!doctype html", b"<html", b"<?xml")


class StandInError(LmshapeError):
    """A file that is none of its kind; the message names it and says where the right one comes from."""


def refuse(path: str | Path, beginning: bytes) -> None:
    """StandInError where a file's beginning shows that it is something else in place of what it should be."""
    if not beginning:
        raise StandInError(f"{path}: an empty file; fetch it again")
    if beginning.startswith(LFS_POINTER):
        raise StandInError(
            f"{path}: a Git LFS pointer, which says where the file is, and not the file: run `git lfs pull` in "
            f"{os.path.dirname(path) or '.'}"
        )
    if beginning.lstrip().lower().startswith(PAGES):
        raise StandInError(f"{path}: a web page, saved under the file's name; fetch the file itself")


def refuse_file(path: Path) -> None:
    """`refuse` for a file on this machine; StandInError also where it cannot be read."""
    try:
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
    except OSError as error:
        raise unreadable(path, error) from error
    refuse(path, beginning)


def refuse_absent(path: Path) -> None:
    """StandInError for a link whose target is not there, and for a file that is still on its way."""
    try:
        path.stat()
    except OSError as error:
        raise unreadable(path, error) from error
    if os.path.exists(f"{path}{ARIA2}"):
        raise StandInError(f"{path}: its download is not finished, as {path.name}{ARIA2} shows; finish it")


def unreadable(path: str | Path, error: OSError) -> StandInError:
    """The error that says why a file cannot be read."""
    if os.path.islink(path) and not os.path.exists(path):
        return StandInError(f"{path}: a link to {os.readlink(path)}, which is not there")
    return StandInError(f"{path}: cannot be read: {error.strerror or error}")
