"""Running text for language models: where it comes from, and which of it is held out."""

import bz2
import hashlib
import json
import re
import urllib.request
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from http.client import HTTPException
from math import ceil
from pathlib import Path

from lmshape.errors import LmshapeError
from lmshape.files import writing
from lmshape.inputs import packages, wikipedia
from lmshape.text_files import read_text

WIKIPEDIA_EXTRACT = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"

# The published study's corpus: http://mattmahoney.net/dc/textdata.html
ENWIK8_ADDRESS = "http://mattmahoney.net/dc/enwik8.zip"
ENWIK8_SHA256 = "547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc"
TIMEOUT = 60  # seconds without a byte after which a download has failed
BLOCK = 2**20  # bytes of it taken at a time


@dataclass(frozen=True)
class Article:
    """One piece of connected text."""

    title: str
    text: str


class Damaged(LmshapeError):
    """A download of which other bytes arrived than those that were asked for."""

    short = True


def wikipedia_extract() -> list[Article]:
    """The articles of the dump that gensim ships."""
    with bz2.open(packages.file("gensim", WIKIPEDIA_EXTRACT)) as dump:
        return [Article(*page) for page in wikipedia.read_dump(dump)]


def enwik8(path: str | Path) -> list[Article]:
    """The articles of enwik8.zip."""
    with zipfile.ZipFile(path) as archive, archive.open("enwik8") as dump:
        return [Article(*page) for page in wikipedia.read_dump(dump)]


def download(address: str, sha256: str, path: str | Path) -> None:
    """Fetch the file at `address` to `path`, which is there only when it is whole and its checksum is `sha256`.

    Raises LmshapeError, naming both, where it is not; what was fetched is then gone, and a new run starts afresh.
    """
    digest, size = hashlib.sha256(), 0
    with writing(path) as temporary:
        try:
            with urllib.request.urlopen(address, timeout=TIMEOUT) as response, temporary.open("wb") as file:
                while block := response.read(BLOCK):
                    digest.update(block)
                    size += file.write(block)
        except (OSError, HTTPException) as error:
            raise LmshapeError(
                f"{address}: cannot be fetched ({error}); SHA-256 expected: {sha256}; run again"
            ) from error
        if digest.hexdigest() != sha256:
            raise Damaged(
                f"{address}: the {size:,} bytes that arrived have SHA-256 {digest.hexdigest()}, not {sha256}: "
                "cut short, or another file; run again to fetch it anew"
            )


def read_plain(path: Path) -> list[Article]:
    """Articles of a plain-text file, parted by blank lines; the title is the article's first words.

    LmshapeError where there is none.
    """
    blocks = re.split(r"\n\s*\n", read_text(path))
    found = [Article(" ".join(block.split()[:8]), block.strip()) for block in blocks if block.strip()]
    if not found:
        raise LmshapeError(f"text.corpus.path: {path}: there is no text in it")
    return found


def split(found: list[Article], held_out: float) -> tuple[list[Article], list[Article]]:
    """(to train on, held out): every k-th article is held out until the share is reached, spread evenly.

    Of n articles, held_out x n are, rounded down. LmshapeError where that is none.
    """
    share = Fraction(str(held_out))  # as it is written: 0.29 of 100 is 29, and of floats 28
    taken = [int((i + 1) * share) > int(i * share) for i in range(len(found))]
    if not any(taken):
        raise LmshapeError(
            f"text.held_out: {held_out} of {len(found)} articles is less than one, and nothing would be held out; "
            f"at least {ceil(1 / share)} articles are needed (blank lines part those of a file)"
        )
    return (
        [a for a, kept in zip(found, taken, strict=True) if not kept],
        [a for a, kept in zip(found, taken, strict=True) if kept],
    )


def write(found: Iterable[Article], path: Path) -> None:
    """One JSON object a line: title, text."""
    with path.open("w", encoding="utf-8") as file:
        for article in found:
            file.write(json.dumps({"title": article.title, "text": article.text}, ensure_ascii=False) + "\n")


def read(path: Path) -> list[Article]:
    """What `write` wrote."""
    with path.open(encoding="utf-8") as file:
        return [Article(**json.loads(line)) for line in file]
