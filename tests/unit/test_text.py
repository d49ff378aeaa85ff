"""Where text comes from, and which articles are held out."""

import hashlib
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lmshape.errors import LmshapeError
from lmshape.inputs import text

# --- downloads -----------------------------------------------------------------------------------------

CONTENT = bytes(range(256)) * 9000  # more than is read at once
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server():
    """The address of a file on this machine, and a list of how its server is to answer, request by request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer = answers.pop(0)
            if answer == "missing":
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Length", len(CONTENT))
            self.end_headers()
            changed = CONTENT[:-1] + b"!"
            self.wfile.write({"whole": CONTENT, "cut": CONTENT[:1_500_000], "changed": changed}[answer])

        def log_message(self, *_):
            pass

    answers = []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}/file.zip", answers
    running.shutdown()
    running.server_close()


def refused(address, path, sha256=SHA256):
    with pytest.raises(LmshapeError) as caught:
        text.download(address, sha256, path)
    assert address in str(caught.value) and sha256 in str(caught.value)
    return str(caught.value)


def test_a_download_is_the_file_and_nothing_beside_it(server, tmp_path):
    address, answers = server
    answers += ["whole"]
    text.download(address, SHA256, tmp_path / "new/file.zip")
    assert (tmp_path / "new/file.zip").read_bytes() == CONTENT
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new/file.zip"]


@pytest.mark.parametrize(("answer", "size"), [("changed", "2,304,000"), ("cut", "1,500,000")])
def test_a_corrupted_or_truncated_download_is_refused_by_address_and_checksum(server, answer, size, tmp_path):
    address, answers = server
    answers += [answer]
    said = refused(address, tmp_path / "file.zip")
    assert f"the {size} bytes that arrived" in said
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_failed_starts_afresh(server, tmp_path):
    address, answers = server
    answers += ["cut", "whole"]
    refused(address, tmp_path / "file.zip")
    text.download(address, SHA256, tmp_path / "file.zip")
    assert (tmp_path / "file.zip").read_bytes() == CONTENT


def test_a_file_that_the_server_lacks_or_a_server_that_is_gone_is_named(server, tmp_path):
    address, answers = server
    answers += ["missing"]
    assert "cannot be fetched (HTTP Error 404" in refused(address, tmp_path / "file.zip")
    assert "cannot be fetched" in refused("http://127.0.0.1:9/file.zip", tmp_path / "file.zip")
    assert list(tmp_path.iterdir()) == []


def test_enwik8_is_read_out_of_its_archive(tmp_path):
    pages = [
        f"<page><title>{t}</title><text>{'Some prose. ' * 30}</text></page>" for t in ("First", "Second")
    ]
    whole = f"<mediawiki>{''.join(pages)}</mediawiki>".encode()
    with zipfile.ZipFile(tmp_path / "enwik8.zip", "w") as archive:
        archive.writestr("enwik8", whole[: whole.index(b"Second") + 20])  # it ends within a page
    assert [article.title for article in text.enwik8(tmp_path / "enwik8.zip")] == ["First"]


def test_the_split_is_by_article_and_even():
    articles = [text.Article(str(i), "x") for i in range(100)]
    train, held_out = text.split(articles, 0.2)
    assert len(held_out) == 20 and len(train) == 80
    assert not {a.title for a in train} & {a.title for a in held_out}
    assert max(int(b.title) - int(a.title) for a, b in zip(held_out, held_out[1:], strict=False)) == 5


@pytest.mark.parametrize("percent", [1, 7, 29, 57, 58, 99, 100])
def test_the_share_that_is_held_out_is_the_one_written(percent):
    train, held_out = text.split([text.Article(str(i), "x") for i in range(100)], percent / 100)
    assert (len(held_out), len(train)) == (percent, 100 - percent)


@pytest.mark.parametrize(("articles", "share", "needed"), [(1, 0.99, 2), (4, 0.2, 5), (33, 0.03, 34)])
def test_a_share_that_holds_nothing_out_is_refused_by_key(articles, share, needed):
    found = [text.Article(str(i), "x") for i in range(articles)]
    with pytest.raises(
        LmshapeError, match=f"text.held_out: {share} of {articles} .* at least {needed} articles"
    ):
        text.split(found, share)
    train, held_out = text.split([*found, text.Article("more", "x")], share)
    assert len(held_out) == 1 and train


def test_articles_survive_writing_and_reading(tmp_path):
    articles = [text.Article("Ä", "first\nsecond"), text.Article("B", "")]
    text.write(articles, tmp_path / "a.jsonl")
    assert text.read(tmp_path / "a.jsonl") == articles


def test_a_plain_file_is_parted_at_blank_lines(tmp_path):
    (tmp_path / "a.txt").write_text("one two\nthree\n\n\nfour\n")
    assert [a.text for a in text.read_plain(tmp_path / "a.txt")] == ["one two\nthree", "four"]
    with pytest.raises(LmshapeError, match="b.txt: cannot be read: No such file"):
        text.read_plain(tmp_path / "b.txt")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_plain_file_is_the_same_text_whatever_wrote_it(tmp_path, end):
    lines = ["", "one two", "three", " ", "", "four\u2028five"]
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + end.join(lines).encode())
    assert [a.text for a in text.read_plain(tmp_path / "a.txt")] == ["one two\nthree", "four\u2028five"]
    assert text.read_plain(tmp_path / "a.txt")[0].title == "one two three"


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n \r\n\t\n"])
def test_a_plain_file_without_text_is_refused_by_key_and_name(tmp_path, content):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(LmshapeError, match="text.corpus.path: .*a.txt: there is no text in it"):
        text.read_plain(tmp_path / "a.txt")
