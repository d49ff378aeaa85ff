"""A retrieval data set of real technical English: find the documentation that a summary line belongs to.

How it is made. The docstrings of public classes and functions are read from the sources of installed packages
(parsed, never imported). A docstring's first paragraph is its summary: it becomes a query. The rest is the
document, without code, references and the "See Also" section. A query's own document has grade 2; the
documents of what the authors listed under "See Also" have grade 1 (`lmshape.inputs.python_names` finds what they
mean).

Why it is fair. Summary and body were written by people for each other, and the judgements are the authors' own.
The summary is taken out of the document, and the lists the judgements come from are too, so that no query or
answer can be read off. Copies (an alias, an inherited docstring) are merged, and summaries that name more than
one document are no queries. Nothing here depends on a model.
"""

import ast
import hashlib
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lmshape.errors import LmshapeError
from lmshape.inputs import datasets, packages
from lmshape.inputs.datasets import Dataset, Document
from lmshape.inputs.python_names import Names

LEFT_OUT = {"see also", "examples", "example", "references"}
SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n(?:-{3,}|={3,})[ ]*$", flags=re.MULTILINE)
BLANK = re.compile(r"\n\s*\n")
SIGNATURE = re.compile(r"(?:[\w., ]+=)?\s*[\w.]+\(.*\)(?:\s*->.*)?(?:\n--)?", flags=re.DOTALL)
NAME = r"(?::(?:py:)?\w+:)?`{0,2}[~!]?[\w.-]+(?:\(\))?`{0,2}"
LISTED = re.compile(rf"(?P<names>{NAME}(?:\s*,\s*{NAME})*)\s*[,.]?\s*(?::(?:\s.*)?)?$")
DIRECTIVE = re.compile(r"^\.\. .*$|:[a-z]+:(?=`)|`+", flags=re.MULTILINE)
QUERY_WORDS = range(4, 31)
FEWEST_DOCUMENT_WORDS = 30


@dataclass(frozen=True)
class Entry:
    """The documentation of one object."""

    name: str  # dotted, where it is defined
    summary: str
    body: str
    see_also: tuple[str, ...]


def write(packages: list[str], queries: int, folder: str | Path) -> None:
    """Write the data set that `build` makes as a BEIR folder."""
    datasets.write(build(packages, queries), folder)


def build(chosen: list[str], queries: int) -> Dataset:
    """The data set of the docstrings of installed packages, with at most `queries` queries.

    Queries are taken in the order of a hash of their text, so that which are taken depends on nothing else.
    LmshapeError names a package that is not installed, or packages without a query in them.
    """
    names, entries = Names(), []
    for name, body, holds_others in (module for package in chosen for module in read_modules(package)):
        names.add_module(name, body, holds_others)
        entries += read_objects(body, name)
    kept = merge_copies(entries)
    documents = {entry.name: entry for entry in entries if kept[entry.name] == entry.name}
    summaries = Counter(entry.summary.lower() for entry in documents.values())
    asked = [
        entry
        for entry in documents.values()
        if len(entry.summary.split()) in QUERY_WORDS and summaries[entry.summary.lower()] == 1
    ]
    if not asked:
        raise LmshapeError(
            f"retrieval.datasets: no docstring of {', '.join(chosen)} has a summary and a text of its own"
        )
    asked = sorted(asked, key=lambda entry: hashlib.sha256(entry.summary.encode()).digest())[:queries]
    qrels = {f"q-{entry.name}": judge(entry, names, kept) for entry in asked}
    return Dataset(
        [Document(entry.name, "", entry.body) for entry in documents.values()],
        {f"q-{entry.name}": entry.summary for entry in asked},
        qrels,
    )


def judge(entry: Entry, names: Names, kept: dict[str, str]) -> dict[str, int]:
    """The grades of documents for an entry's summary: those that its "See Also" names mean, and its own.

    What is no document, or not clear, is left out.
    """
    meant = (kept.get(names.read_by(entry.name, name)) for name in entry.see_also)
    return {**dict.fromkeys(sorted(filter(None, meant)), 1), entry.name: 2}


def read_modules(package: str) -> Iterator[tuple[str, list[ast.stmt], bool]]:
    """Name, statements, and whether others lie in it, of an installed package's modules, in the order of its files.

    What tests the package is none of them.
    """
    try:
        root = packages.folder(package)
    except LmshapeError as error:
        raise LmshapeError(f"retrieval.datasets: `packages` of a data set: {error}") from error
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root).with_suffix("").parts
        if not any(part.startswith("_test") or part in ("tests", "testing", "conftest") for part in module):
            parts = [package, *(part for part in module if part != "__init__")]
            yield ".".join(parts), ast.parse(path.read_bytes()).body, module[-1] == "__init__"


def read_objects(body: list[ast.stmt], prefix: str) -> Iterator[Entry]:
    """The public classes, methods and functions of a module or class."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
            entry = parse(f"{prefix}.{node.name}", ast.get_docstring(node) or "")
            if len(entry.body.split()) >= FEWEST_DOCUMENT_WORDS:
                yield entry
            if isinstance(node, ast.ClassDef):
                yield from read_objects(node.body, f"{prefix}.{node.name}")


def parse(name: str, docstring: str) -> Entry:
    """Part a docstring into summary, body and the names of its "See Also" section.

    A first paragraph that is a signature, as functions of compiled code have, is no summary: the next one is. One
    that begins a section is none either.
    """
    summary, rest = "", docstring.strip()
    while rest and (not summary or SIGNATURE.fullmatch(summary)) and not SECTION.match(rest):
        summary, *left = BLANK.split(rest, maxsplit=1)
        rest = "".join(left)
    if SIGNATURE.fullmatch(summary):
        summary = ""
    parts = SECTION.split(rest)
    body, see_also = [parts[0]], ""
    for title, section in zip(parts[1::2], parts[2::2], strict=True):
        if title.strip().lower() == "see also":
            see_also = section
        elif title.strip().lower() not in LEFT_OUT:
            body.append(section)
    return Entry(name, prose(summary), prose("\n".join(body)), tuple(names_in(see_also)))


def prose(text: str) -> str:
    """Text on one line, without doctests, indented code and reStructuredText marks."""
    text = re.sub(r"^\s*>>>.*(?:\n(?!\s*\n).+)*", "", textwrap.dedent(text), flags=re.MULTILINE)
    return " ".join(DIRECTIVE.sub("", text).split())


def names_in(section: str) -> Iterator[str]:
    """The names that a numpydoc "See Also" section lists: plain, quoted or with a role, one or several on a line.

    Descriptions follow a colon or are indented. A name that is to be searched for keeps its leading dot.
    """
    for line in textwrap.dedent(section).split("\n"):
        if found := LISTED.match(line):
            for name in found["names"].split(","):
                yield re.sub(r":[\w:]+:(?=`)|[`~!\s]|\(\)", "", name).rstrip(".")


def merge_copies(entries: list[Entry]) -> dict[str, str]:
    """Name of each entry -> that of the first with its body: aliases, inherited docstrings."""
    first = {entry.body: entry.name for entry in reversed(entries)}
    return {entry.name: first[entry.body] for entry in entries}
