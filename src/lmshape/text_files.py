"""Text files that a user gives: UTF-8, whatever program wrote them, or one message that says what they are."""

import re
from collections.abc import Iterator
from pathlib import Path

from lmshape.errors import LmshapeError

MARK = "\ufeff"
MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\3\4": "zip",
    b"BZh9": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}


class TextFileError(LmshapeError):
    """A file that cannot be read as text; the message names the file, the place and what to do."""


def read_text(path: str | Path) -> str:
    r"""The text of a file, without byte order marks and with \n at the end of every line; TextFileError if none."""
    return "".join(f"{line}\n" for line in read_lines(path))


def read_lines(path: str | Path) -> Iterator[str]:
    r"""The lines of a file one after another, without their ends (\n, \r\n or \r); errors as in `read_text`.

    Several \r before a \n are one end with it, as some programs turn \n into \r\n twice.

    Nothing else ends a line: U+2028, at which `str.splitlines` cuts too, is part of a text. A byte order mark goes
    from the beginning of any line, as files that have one may have been put end to end.
    """
    place = 0  # bytes before this part
    try:
        with Path(path).open("rb") as file:
            for part in file:  # up to \n, which is never within a character of UTF-8
                text = re.sub(r"\r+\n", "\n", decode(part, place, path)).replace("\r", "\n")
                yield from (line.removeprefix(MARK) for line in text.removesuffix("\n").split("\n"))
                place += len(part)
    except OSError as error:
        raise TextFileError(f"{path}: cannot be read: {error.strerror}") from None


def decode(part: bytes, place: int, path: str | Path) -> str:
    """Bytes that begin at `place` of a file, as text; TextFileError if they are none."""
    if place == 0 and (packed := next((PACKED[mark] for mark in PACKED if part.startswith(mark)), None)):
        raise TextFileError(f"{path}: packed with {packed}, by its first bytes; unpack it")
    if place == 0 and (marked := next((MARKS[mark] for mark in MARKS if part.startswith(mark)), None)):
        raise TextFileError(f"{path}: not UTF-8 but {marked}, by its first bytes; {_convert(marked)}")
    try:
        text = part.decode()
    except UnicodeDecodeError as error:
        byte = f"byte {part[error.start]:#04x} at offset {place + error.start:,}"
        raise TextFileError(f"{path}: not UTF-8: {byte} ({error.reason}); {_convert('LATIN1')}") from None
    if "\0" in text:
        byte = f"byte 0x00 at offset {place + part.index(0):,}"
        raise TextFileError(
            f"{path}: not text: {byte}; if it is UTF-16 without a mark: {_convert('UTF-16LE')}"
        )
    return text


def _convert(encoding: str) -> str:
    return (
        f"convert it: iconv -f {encoding} -t UTF-8 OLD > NEW, or with another encoding in place of {encoding}"
    )
