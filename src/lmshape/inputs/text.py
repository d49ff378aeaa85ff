"""Running text for language models: where it comes from, and how markup is taken out of it."""

import bz2
import hashlib
import json
import re
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

import mwparserfromhell

from lmshape.errors import LmshapeError
from lmshape.files import writing
from lmshape.inputs import packages
from lmshape.text_files import read_text

WIKIPEDIA_EXTRACT = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"

# The published study's corpus: http://mattmahoney.net/dc/textdata.html
ENWIK8_ADDRESS = "http://mattmahoney.net/dc/enwik8.zip"
ENWIK8_SHA256 = "547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc"
TIMEOUT = 60  # seconds without a byte after which a download has failed
BLOCK = 2**20  # bytes of it taken at a time

NOT_PROSE = "ref|gallery|math|chem|code|source|syntaxhighlight|pre|score|timeline|imagemap|hiero|style|script"
ELEMENT = re.compile(
    rf"<!--.*?-->|<({NOT_PROSE})\b[^<>]*?(?:/>|>.*?</\1\s*>)", flags=re.DOTALL | re.IGNORECASE
)
LEFTOVER = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|^[|!]|\b(?:style|align|bgcolor|colspan|rowspan|class)\s*=|https?:"
)
TAG = re.compile(r"</?[A-Za-z][^<>]*>")
NAMESPACED = re.compile(r"^\s*:?[A-Za-z][A-Za-z -]*:\S")  # [[File:...]], [[Category:...]], [[de:...]]
QUOTES = re.compile("'{2,}")  # wiki bold and italics
TAIL = {"see also", "references", "further reading", "external links", "notes", "bibliography", "sources"}


@dataclass(frozen=True)
class Article:
    """One piece of connected text."""

    title: str
    text: str


def articles(source: str, path: str | Path | None = None) -> list[Article]:
    """The articles of a corpus: `source` as a study names it, `path` the file, where it is not in a package."""
    if source == "wikipedia-extract":
        with bz2.open(packages.file("gensim", WIKIPEDIA_EXTRACT)) as dump:
            return list(read_dump(dump))
    if source == "enwik8":
        with zipfile.ZipFile(path) as archive, archive.open("enwik8") as dump:
            return list(read_dump(dump))
    return read_plain(Path(path))


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
            raise LmshapeError(
                f"{address}: the {size:,} bytes that arrived have SHA-256 {digest.hexdigest()}, not {sha256}: "
                "cut short, or another file; run again to fetch it anew"
            )


def read_dump(dump: IO[bytes]) -> Iterator[Article]:
    """The cleaned articles of a MediaWiki XML dump; redirects, talk and empty pages are left out.

    A dump cut off in the middle of a page (as enwik8 is, at 100 MB) gives the pages before the cut.
    """
    try:
        for _, element in ElementTree.iterparse(dump):
            if element.tag.rsplit("}", 1)[-1] == "page":
                page = {child.tag.rsplit("}", 1)[-1]: child.text or "" for child in element.iter()}
                text = clean(page["text"])
                if not is_redirect(page) and ":" not in page["title"] and len(text) > 200:
                    yield Article(page["title"], text)
                element.clear()
    except ElementTree.ParseError as error:
        if "no element found" not in str(error) and "unclosed token" not in str(error):
            raise LmshapeError(f"the dump is not readable XML: {error}") from None


def is_redirect(page: dict[str, str]) -> bool:
    return "redirect" in page or page["text"].lstrip().lower().startswith("#redirect")


def clean(wikitext: str) -> str:
    """Prose of a wiki page, without templates, tables, references, code, formulas, media, HTML or link targets.

    Headings and the sections after the prose (references, further reading, ...) are left out. Lines in which
    broken markup is left (a table that is never closed) are dropped.
    """
    code = mwparserfromhell.parse(ELEMENT.sub("", cut_tail(wikitext)), skip_style_tags=True)
    for link in code.filter_wikilinks(
        recursive=False, matches=lambda link: NAMESPACED.match(str(link.title))
    ):
        code.remove(link)
    for table in code.filter_tags(recursive=False, matches=lambda tag: str(tag.tag) == "table"):
        code.remove(table)
    for heading in code.filter_headings(recursive=False):
        code.remove(heading)
    text = TAG.sub("", QUOTES.sub("", code.strip_code()))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if len(line) > 1 and not LEFTOVER.search(line))


def cut_tail(wikitext: str) -> str:
    """The page up to the first section that only lists sources or links."""
    for heading in re.finditer(r"^==\s*([^=].*?)\s*==\s*$", wikitext, flags=re.MULTILINE):
        if heading[1].strip().lower() in TAIL:
            return wikitext[: heading.start()]
    return wikitext


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
    """(to train on, held out): every k-th article is held out until the share is reached, spread evenly."""
    taken = [int((i + 1) * held_out) > int(i * held_out) for i in range(len(found))]
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
