"""Text as people's programs write it: marks, line ends, and encodings that are not UTF-8."""

import codecs
import importlib
import json
import zipfile

import pytest

from lmshape.text_files import TextFileError, read_lines, read_text


@pytest.fixture
def given(tmp_path):
    """A file of these bytes."""

    def write(content: bytes):
        (tmp_path / "given.txt").write_bytes(content)
        return tmp_path / "given.txt"

    return write


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
@pytest.mark.parametrize("finished", [True, False])
def test_neither_marks_nor_line_ends_show(given, end, mark, finished):
    content = end.join(["größer", "", "b"]) + end * finished
    assert list(read_lines(given(mark + content.encode()))) == ["größer", "", "b"]
    assert read_text(given(mark + content.encode())) == "größer\n\nb\n"


def test_mixed_line_ends_are_each_one_and_blank_lines_stay(given):
    assert list(read_lines(given(b"a\r\n\r\n\nb\rc\n\rd\r"))) == ["a", "", "", "b", "c", "", "d"]


def test_marked_files_put_end_to_end_leave_no_mark(given):
    part = codecs.BOM_UTF8 + b"a line\n"
    assert list(read_lines(given(part + part))) == ["a line", "a line"]


def test_a_separator_that_is_no_line_end_stays_in_its_line(given):
    """JSON writes these as they are; `str.splitlines` would cut a record in two."""
    records = [{"text": f"one{separator}two"} for separator in "\u2028\u2029\x85\x0b\x0c\x1c\x1e"]
    content = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    assert [json.loads(line) for line in read_lines(given(content.encode()))] == records


@pytest.mark.parametrize("content", [b"", codecs.BOM_UTF8, b"\n", codecs.BOM_UTF8 + b"\n"])
def test_a_file_without_text_is_blank(given, content):
    assert read_text(given(content)).strip() == ""


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("latin-1", "not UTF-8: byte 0xfc at offset 20 .*iconv -f LATIN1"),
        ("utf-16", "not UTF-8 but UTF-16, by its first bytes; .*iconv -f UTF-16 "),
        ("utf-32", "not UTF-8 but UTF-32, by its first bytes; .*iconv -f UTF-32 "),
        ("utf-16-le", "not text: byte 0x00 at offset 1; .*UTF-16 without a mark"),
        ("utf-16-be", "not text: byte 0x00 at offset 0; .*UTF-16 without a mark"),
    ],
)
def test_another_encoding_is_refused_by_file_and_byte(given, encoding, said):
    text = "first line\nsecond früher"
    with pytest.raises(TextFileError, match=rf"given\.txt: {said}"):
        list(read_lines(given(text.encode(encoding))))


@pytest.mark.parametrize(
    ("module", "said"), [("gzip", "gzip"), ("bz2", "bzip2"), ("lzma", "xz"), ("zipfile", "zip")]
)
def test_a_packed_file_is_named_as_such(given, tmp_path, module, said):
    if module == "zipfile":
        with zipfile.ZipFile(tmp_path / "given.txt", "w") as archive:
            archive.writestr("a.txt", "text")
        content = (tmp_path / "given.txt").read_bytes()
    else:
        content = importlib.import_module(module).compress(b"text")
    with pytest.raises(TextFileError, match=f"given.txt: packed with {said}, by its first bytes; unpack it"):
        read_text(given(content))


def test_the_place_of_a_byte_is_the_one_in_the_whole_file(given):
    content = b"a line of text\n" * 10_000
    for bad, said in ((b"\xe9", "byte 0xe9 at offset 150,005"), (b"\0", "byte 0x00 at offset 150,005")):
        with pytest.raises(TextFileError, match=said):
            read_text(given(content + b"a lin" + bad + b" of text\n" + content))


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(TextFileError, match="gone.txt: cannot be read: No such file"):
        read_text(tmp_path / "gone.txt")
    with pytest.raises(TextFileError, match="cannot be read: Is a directory"):
        read_text(tmp_path)
