"""Markup out, prose in; and which articles are held out."""

import bz2
import hashlib
import io

import pytest

from lmshape.errors import LmshapeError
from lmshape.inputs import text

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
    assert text.clean(PAGE).splitlines() == [
        "Cat is a small animal. It purrs often.",
        "It has legs & whiskers, see the site.",
        "Cats eat fish.",
    ]


def test_lines_of_a_table_that_is_never_closed_are_dropped():
    broken = "Good line of prose.\n{| class=wikitable\n| bgcolor=lime | QF\nAnother good line."
    assert text.clean(broken).splitlines() == ["Good line of prose.", "Another good line."]


def dump(*pages: str) -> io.BytesIO:
    return io.BytesIO(f"<mediawiki>{''.join(pages)}</mediawiki>".encode())


def page(title: str, body: str, extra: str = "") -> str:
    return f"<page><title>{title}</title>{extra}<revision><text>{body}</text></revision></page>"


LONG = "A sentence about something. " * 20


def test_redirects_talk_and_stubs_are_left_out():
    pages = [
        page("Kept", LONG),
        page("Old name", "#REDIRECT [[Kept]]" + LONG),
        page("Older name", LONG, '<redirect title="Kept" />'),
        page("Talk:Kept", LONG),
        page("Stub", "Short."),
    ]
    assert [article.title for article in text.read_dump(dump(*pages))] == ["Kept"]


def test_a_dump_cut_off_in_a_page_gives_the_pages_before():
    whole = dump(page("First", LONG), page("Second", LONG)).getvalue()
    cut = whole[: whole.index(b"Second") + 20]
    assert [article.title for article in text.read_dump(io.BytesIO(cut))] == ["First"]


def test_a_dump_that_is_not_xml_is_an_error():
    with pytest.raises(LmshapeError, match="not readable XML"):
        list(text.read_dump(io.BytesIO(b"<mediawiki><page></wrong></mediawiki>")))


def test_the_wikipedia_extract_is_english_prose(tmp_path):
    path = text.packages.file("gensim", text.WIKIPEDIA_EXTRACT)
    with bz2.open(path) as file:
        articles = [article for _, article in zip(range(6), text.read_dump(file), strict=False)]
    assert articles[0].title == "Anarchism"
    assert articles[1].text.startswith("Autism is a neurodevelopmental disorder")
    joined = "\n".join(article.text for article in articles)
    assert not any(mark in joined for mark in ("{{", "[[", "<ref", "http", "|thumb", "Category:"))
    assert joined.count(" the ") / len(joined.split()) > 0.03


def test_a_download_must_have_its_checksum(tmp_path):
    source = tmp_path / "file.zip"
    source.write_bytes(b"not what was expected")
    with pytest.raises(LmshapeError, match="checksum"):
        text.download(source.as_uri(), "0" * 64, tmp_path / "folder")
    assert not (tmp_path / "folder" / "file.zip").exists()


def test_a_download_is_whole_or_absent_and_made_once(tmp_path):
    source = tmp_path / "file.zip"
    source.write_bytes(b"content")
    digest = hashlib.sha256(b"content").hexdigest()
    kept = text.download(source.as_uri(), digest, tmp_path / "folder")
    source.unlink()
    assert text.download("file:///gone/file.zip", digest, tmp_path / "folder").read_bytes() == b"content"
    assert list(kept.parent.iterdir()) == [kept]


def test_the_split_is_by_article_and_even():
    articles = [text.Article(str(i), "x") for i in range(100)]
    train, held_out = text.split(articles, 0.2)
    assert len(held_out) == 20 and len(train) == 80
    assert not {a.title for a in train} & {a.title for a in held_out}
    assert max(int(b.title) - int(a.title) for a, b in zip(held_out, held_out[1:], strict=False)) == 5


def test_articles_survive_writing_and_reading(tmp_path):
    articles = [text.Article("Ä", "first\nsecond"), text.Article("B", "")]
    text.write(articles, tmp_path / "a.jsonl")
    assert text.read(tmp_path / "a.jsonl") == articles


def test_a_plain_file_is_parted_at_blank_lines(tmp_path):
    (tmp_path / "a.txt").write_text("one two\nthree\n\n\nfour\n")
    assert [a.text for a in text.read_plain(tmp_path / "a.txt")] == ["one two\nthree", "four"]
    with pytest.raises(LmshapeError, match="there is no such file"):
        text.read_plain(tmp_path / "b.txt")
