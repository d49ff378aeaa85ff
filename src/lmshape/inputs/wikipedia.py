"""The articles of a MediaWiki XML dump, and how markup is taken out of them."""

import re
from collections.abc import Iterator
from typing import IO
from xml.etree import ElementTree
from xml.parsers.expat import errors

import mwparserfromhell

from lmshape.errors import LmshapeError

FEWEST_CHARACTERS = 200  # of a page's prose: with fewer it is a stub, or a list of links
CUT_OFF = {  # what expat says of a dump that ends within a page
    errors.codes[message]
    for message in (
        errors.XML_ERROR_NO_ELEMENTS,
        errors.XML_ERROR_UNCLOSED_TOKEN,
        errors.XML_ERROR_PARTIAL_CHAR,
        errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}

NOT_PROSE = "ref|gallery|math|chem|code|source|syntaxhighlight|pre|score|timeline|imagemap|hiero|style|script"
ELEMENT = re.compile(
    rf"<!--.*?-->|<({NOT_PROSE})\b[^<>]*?(?:/>|>.*?</\1\s*>)", flags=re.DOTALL | re.IGNORECASE
)
BREAK = re.compile(
    r"</?(?:br|p|div|center|blockquote|poem|ul|ol|li|dl|dt|dd|hr|h[1-6])\b[^<>]*>", flags=re.IGNORECASE
)
LEFTOVER = re.compile(
    r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|^[|!]|\b(?:style|align|bgcolor|colspan|rowspan|class)\s*=|\bthumb\||https?:|<!--"
)
TAG = re.compile(r"</?[A-Za-z][^<>]*>")
# [[File:...]] and [[Category:...]], and [[de:...]] without a text: shown elsewhere or not at all. A link that
# begins with a colon, or leads to another project or namespace ([[wikt:...]]), is part of a sentence.
NOT_SHOWN = re.compile(r"\s*(?:(?i:file|image|media|category)\s*:|[a-z]{2,3}(?:-[a-z]+)*:\S)")
QUOTES = re.compile("'{2,}")  # bold and italics
SWITCH = re.compile(r"__[A-Z]+__")  # __TOC__
# what a template leaves of "(pronounced so; born 1900)"
EMPTIED = re.compile(r"[ \t]+\([\s;,]*\)|(?<=\()\s*[;,][\s;,]*")
SOURCES = {"references", "notes", "footnotes", "bibliography", "sources"}
TAIL = SOURCES | {"see also", "further reading", "external links", "external link"}


def read_dump(dump: IO[bytes]) -> Iterator[tuple[str, str]]:
    """(title, cleaned text) of the articles of a dump; redirects, stubs and pages of other namespaces are left out.

    An article is in the namespace without a name. Older dumps do not say which a page is in: it is the title up to
    a colon, if the dump's head lists it, so that `2001: A Space Odyssey` is an article. A dump cut off within a
    page (as enwik8 is, at 100 MB) gives the pages before the cut.
    """
    namespaces = set()
    try:
        for _, element in ElementTree.iterparse(dump):
            kind = _name(element)
            if kind == "namespace" and element.text:
                namespaces.add(element.text)
            elif kind == "page":
                page = {"text": ""} | {_name(child): child.text or "" for child in element.iter()}
                element.clear()
                if is_article(page, namespaces) and len(text := clean(page["text"])) >= FEWEST_CHARACTERS:
                    yield page["title"], text
    except ElementTree.ParseError as error:
        if error.code not in CUT_OFF:
            raise LmshapeError(f"the dump is not readable XML: {error}") from None


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def is_article(page: dict[str, str], namespaces: set[str]) -> bool:
    """Whether a page, as its elements' texts by name, is an article and not a redirect to one."""
    if "redirect" in page or page["text"].lstrip().lower().startswith("#redirect"):
        return False
    if "ns" in page:
        return page["ns"] == "0"
    return page["title"].partition(":")[0] not in namespaces


def clean(wikitext: str) -> str:
    """Prose of a wiki page, without templates, tables, references, code, formulas, media, HTML or link targets.

    Headings and the sections after the prose (references, further reading, ...) are left out. Lines in which
    broken markup is left (a table that is never closed) are dropped.
    """
    prose = BREAK.sub(" ", ELEMENT.sub("", cut_tail(wikitext)))
    code = mwparserfromhell.parse(prose, skip_style_tags=True)
    for link in code.filter_wikilinks(recursive=False, matches=is_not_shown):
        code.remove(link)
    for table in code.filter_tags(recursive=False, matches=lambda tag: str(tag.tag) == "table"):
        code.remove(table)
    for heading in code.filter_headings(recursive=False):
        code.remove(heading)
    text = SWITCH.sub("", TAG.sub("", QUOTES.sub("", code.strip_code())))
    lines = (" ".join(line.split()).lstrip(":* ") for line in EMPTIED.sub("", text).split("\n"))
    return "\n".join(line for line in lines if len(line) > 1 and not LEFTOVER.search(line))


def is_not_shown(link: mwparserfromhell.nodes.Wikilink) -> bool:
    """Whether a link is no part of the sentence that it stands in."""
    return bool(NOT_SHOWN.match(str(link.title)))


def cut_tail(wikitext: str) -> str:
    """The page up to the first section that only lists sources or links."""
    for heading in re.finditer(r"^==\s*([^=].*?)\s*==\s*$", wikitext, flags=re.MULTILINE):
        if heading[1].strip().lower() in TAIL:
            return wikitext[: heading.start()]
    return wikitext
