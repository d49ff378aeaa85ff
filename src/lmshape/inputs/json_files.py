"""JSON files that come with models and data sets: one object of values of their types, or one message."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from lmshape.errors import LmshapeError
from lmshape.inputs import stand_ins
from lmshape.text_files import MARK, decode

KINDS = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a string, in quotes"),
}
SHOWN = 100  # characters of a value in a message

Opener = Callable[[str, str], BinaryIO]


class JsonFileError(LmshapeError):
    """A file that holds no JSON object, or a value of another type; the message names the file and the key."""


def read(path: str | Path, opener: Opener = open) -> dict[str, Any]:
    """The object in a file; JsonFileError where there is none, and StandInError for what lies in its place.

    A byte order mark is refused, as transformers, which reads the file too, does not read past it.
    """
    try:
        with opener(str(path), "rb") as file:
            content = file.read()
    except OSError as error:
        raise stand_ins.unreadable(path, error) from error
    stand_ins.refuse(path, content[: stand_ins.BEGINNING])
    return parse(decode(content, 0, path), path)


def parse(text: str, where: str | Path) -> dict[str, Any]:
    """The object that a file's text is; JsonFileError as in `read`."""
    if text.startswith(MARK):
        raise JsonFileError(
            f"{where}: begins with a byte order mark, which transformers does not read past; remove it, as "
            r"`sed -i '1s/^\xEF\xBB\xBF//'` does"
        )
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JsonFileError(f"{where}: not JSON: {error}; fetch or save it again") from error
    if not isinstance(found, dict):
        raise JsonFileError(f"{where}: expected an object of keys and values; fetch or save it again")
    return found


def value(said: Mapping[str, Any], key: str, kind: type, where: str | Path) -> Any:
    """The value under a key of an object, None for none or null; JsonFileError for one of another type."""
    found = said.get(key)
    types, words = KINDS[kind]
    if found is not None and type(found) not in types:  # true is an int to isinstance
        raise JsonFileError(f"{where}: `{key}` must be {words}, and is {json.dumps(found)[:SHOWN]}")
    return found


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object for `json.loads` whose keys are there once: ValueError, as neither of two values is the right one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return found
