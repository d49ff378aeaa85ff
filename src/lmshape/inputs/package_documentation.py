"""A retrieval data set of real technical English: find the documentation that a summary line belongs to.

How it is made. The docstrings of public classes and functions are read from the sources of installed packages
(parsed, never imported). A docstring's first paragraph is its summary: it becomes a query. The rest is the
document, without code, references and the "See Also" section. A query's own document has grade 2; the
documents that the authors listed under "See Also" have grade 1.

Why it is fair. Summary and body were written by people for each other, and the judgements are the authors' own.
The summary is taken out of the document, and the lists the judgements come from are too, so that no query or
answer can be read off. Copies (an alias, an inherited docstring) are merged, and summaries that name more than
one document are no queries. Nothing here depends on a model.
"""

import ast
import hashlib
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from lmshape.errors import LmshapeError
from lmshape.inputs import packages
from lmshape.inputs.datasets import Dataset, Document

LEFT_OUT = {"see also", "examples", "example", "references"}
SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}[ ]*$", flags=re.MULTILINE)
SEE_ALSO_NAMES = re.compile(r"^(?P<names>[\w.`~:, ]+?)(?:\s+:\s.*|\s*)$")
DIRECTIVE = re.compile(r"^\.\. .*$|:[a-z]+:(?=`)|`+", flags=re.MULTILINE)
QUERY_WORDS = range(4, 31)
FEWEST_DOCUMENT_WORDS = 30


@dataclass(frozen=True)
class Entry:
    """The documentation of one object."""

    name: str  # dotted, as imported
    summary: str
    body: str
    see_also: tuple[str, ...]


def build(names: list[str], queries: int) -> Dataset:
    """The data set of the docstrings of the packages of these names, with at most `queries` queries.

    Queries are taken in the order of a hash of their text, so that which are taken depends on nothing else.
    LmshapeError names a package that is not installed, or packages without a query in them.
    """
    entries = merge_copies([entry for name in names for entry in read_package(name)])
    documents = [Document(entry.name, "", entry.body) for entry in entries]
    summaries = Counter(entry.summary.lower() for entry in entries)
    asked = [
        e for e in entries if len(e.summary.split()) in QUERY_WORDS and summaries[e.summary.lower()] == 1
    ]
    if not asked:
        raise LmshapeError(
            f"retrieval.datasets: no docstring of {', '.join(names)} has a summary and a text of its own"
        )
    asked = sorted(asked, key=lambda e: hashlib.sha256(e.summary.encode()).digest())[:queries]
    index = by_last_name(entries)
    qrels = {f"q-{e.name}": {**dict.fromkeys(resolve(e, index), 1), e.name: 2} for e in asked}
    return Dataset(documents, {f"q-{e.name}": e.summary for e in asked}, qrels)


def read_package(package: str) -> Iterator[Entry]:
    """The documented public objects of an installed package, in the order of its files."""
    try:
        root = packages.folder(package)
    except LmshapeError as error:
        raise LmshapeError(f"retrieval.datasets: `packages` of a data set: {error}") from error
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root).with_suffix("").parts
        if not any(part.startswith("_test") or part in ("tests", "testing", "conftest") for part in module):
            parts = [package, *(part for part in module if part != "__init__")]
            yield from read_objects(ast.parse(path.read_bytes()).body, ".".join(parts))


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
    """Part a docstring into summary, body and the names of its "See Also" section."""
    summary, _, rest = docstring.strip().partition("\n\n")
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
    """The names a numpydoc "See Also" section lists; its descriptions are indented or follow a colon."""
    for line in section.splitlines():
        if (found := SEE_ALSO_NAMES.match(line)) and not line.startswith((" ", "\t")):
            for name in found["names"].split(","):
                yield re.sub(r":\w+:|[`~ ]", "", name)


def merge_copies(entries: list[Entry]) -> list[Entry]:
    """The first of every set of entries with one body (aliases, inherited docstrings)."""
    return list({entry.body: entry for entry in reversed(entries)}.values())[::-1]


def by_last_name(entries: list[Entry]) -> dict[tuple[str, str], list[str]]:
    """(package, last part of the name) -> names."""
    index = defaultdict(list)
    for entry in entries:
        index[entry.name.partition(".")[0], entry.name.rpartition(".")[2]].append(entry.name)
    return index


def resolve(entry: Entry, index: dict[tuple[str, str], list[str]]) -> list[str]:
    """The documents that an entry's "See Also" names mean; a name that fits several is left out."""
    package = entry.name.partition(".")[0]
    found = (index.get((package, name.rpartition(".")[2]), []) for name in entry.see_also)
    return sorted({names[0] for names in found if len(names) == 1} - {entry.name})
