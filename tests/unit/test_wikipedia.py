"""Markup out, prose in; and which pages of a dump are articles."""

import bz2
import io

import pytest

from lmshape.errors import LmshapeError
from lmshape.inputs import packages, text, wikipedia

PAGE = """{{Infobox animal|name=Cat}}
'''Cat''' is a [[domestic animal|small animal]].<ref name="a" /> It purrs<ref>{{cite|x}}</ref> often.<!-- no -->
[[File:cat.jpg|thumb|A cat, [[sitting]].]]
It has <math>4</math> legs &amp; <b>whiskers</b>, see [https://example.org the site].
{| class="wikitable"
|-
| a || b
|}
== Diet ==
<source lang="python">print("meow")</source>Cats eat fish.
<gallery>File:a.jpg|A</gallery>
== See also ==
* [[Dog]]
[[Category:Cats]]
"""


def test_clean_keeps_prose_and_nothing_else():
    assert wikipedia.clean(PAGE).splitlines() == [
        "Cat is a small animal. It purrs often.",
        "It has legs & whiskers, see the site.",
        "Cats eat fish.",
    ]


def test_lines_of_a_table_that_is_never_closed_are_dropped():
    broken = "Good line of prose.\n{| class=wikitable\n| bgcolor=lime | QF\nAnother good line."
    assert wikipedia.clean(broken).splitlines() == ["Good line of prose.", "Another good line."]


@pytest.mark.parametrize(
    ("markup", "prose"),
    [
        ('of [[wikt:anarchy|it]], [[s:A/B|"A"]] and [[:fr:Mohamed Racim|Racim]]', 'of it, "A" and Racim'),
        (
            "the [[Star Trek: Voyager]] and [[Mission:Impossible]]",
            "the Star Trek: Voyager and Mission:Impossible",
        ),
        ("at [[2001: A Space Odyssey|2001]]", "at 2001"),
        ("[[File: a b.jpg|thumb|A [[cat]] sits]]Cats [[Image:c.png]]sit", "Cats sit"),
        ("[[de:Katze]] [[be-x-old:X]] [[Category: Cats]] Cats[[category:Pets]]", "Cats"),
        ("one<br />two<br>three <blockquote>\nfour</blockquote>five", "one two three\nfour five"),
        ("''one'' '''two''' &ndash; &amp; <sub>three</sub>", "one two – & three"),
        ("* one\n** two\n: three", "one\ntwo\nthree"),
        ("Asia ({{IPAc-en|x}}) is large, main() small", "Asia is large, main() small"),
        ("Apollo ({{lang|el|x}}; {{IPA|y}}, ''Apollōn''; born) ({{x}} ; )", "Apollo (Apollōn; born)"),
        ("__TOC__\nProse.", "Prose."),
        ("Prose.\n[[File:a b\nmore", "Prose.\nmore"),
        ("A separator\u2028is no line end.", "A separator is no line end."),
    ],
)
def test_what_a_reader_sees_of_markup_stays(markup, prose):
    assert wikipedia.clean(markup) == prose


SITE = """<siteinfo><namespaces><namespace key="-1">Special</namespace><namespace key="0" />
<namespace key="1">Talk</namespace><namespace key="3">User talk</namespace></namespaces></siteinfo>"""
LONG = "A sentence about something. " * 20


def dump(*pages: str) -> io.BytesIO:
    return io.BytesIO(f'<mediawiki xmlns="http://x.org/export/">{SITE}{"".join(pages)}</mediawiki>'.encode())


def page(title: str, body: str, extra: str = "") -> str:
    return f"<page><title>{title}</title>{extra}<revision><text>{body}</text></revision></page>"


def titles(*pages: str) -> list[str]:
    return [title for title, _ in wikipedia.read_dump(dump(*pages))]


def test_redirects_and_stubs_are_left_out():
    pages = [
        page("Kept", LONG),
        page("Old name", "#REDIRECT [[Kept]]" + LONG),
        page("Older name", LONG, '<redirect title="Kept" />'),
        page("Stub", "Short."),
        page("Empty", ""),
        page("Table", "{|\n|" + LONG + "\n|}"),
        "<page><title>Nothing</title></page>",
    ]
    assert titles(*pages) == ["Kept"]


@pytest.mark.parametrize(
    "title", ["2001: A Space Odyssey", "Star Trek: Voyager", "C:", "::", "Talkies:X", "Usertalk:B"]
)
def test_an_article_may_have_a_colon_in_its_title(title):
    """A dump that does not say which namespace a page is in, such as enwik8, lists their names."""
    others = [page(f"{name}:Kept", LONG) for name in ("Talk", "User talk", "Special")]
    assert titles(page(title, LONG), *others) == [title]


def test_the_namespace_that_a_dump_gives_for_a_page_decides():
    pages = [page("Talk: a life", LONG, "<ns>0</ns>"), page("Draft:A", LONG, "<ns>118</ns>")]
    assert titles(*pages) == ["Talk: a life"]


def test_a_dump_cut_off_anywhere_within_a_page_gives_the_pages_before():
    second = page("Zweite — größte", "&amp; <![CDATA[x]]> <!-- y -->" + LONG)
    whole = dump(page("First", LONG), second).getvalue()
    start = whole.index(b"<page><title>Zweite")
    for end in range(start, start + 150):
        assert [t for t, _ in wikipedia.read_dump(io.BytesIO(whole[:end]))] == ["First"], whole[
            end - 20 : end
        ]


@pytest.mark.parametrize(
    "content", [b"<mediawiki><page></wrong></mediawiki>", b"<mediawiki>&unknown;</mediawiki>"]
)
def test_a_dump_that_is_not_xml_is_an_error(content):
    with pytest.raises(LmshapeError, match="not readable XML"):
        list(wikipedia.read_dump(io.BytesIO(content)))


def test_the_wikipedia_extract_is_english_prose():
    with bz2.open(packages.file("gensim", text.WIKIPEDIA_EXTRACT)) as file:
        articles = dict(article for _, article in zip(range(6), wikipedia.read_dump(file), strict=False))
    assert next(iter(articles)) == "Anarchism"
    assert articles["Autism"].startswith("Autism is a neurodevelopmental disorder")
    joined = "\n".join(articles.values())
    assert not any(mark in joined for mark in ("{{", "[[", "<ref", "http", "|thumb", "Category:"))
    assert joined.count(" the ") / len(joined.split()) > 0.03
