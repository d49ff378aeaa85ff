"""The files of a BEIR folder, line by line: whatever cannot be meant is refused with the file and the line."""

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from lmshape.errors import LmshapeError
from lmshape.inputs import json_files
from lmshape.text_files import read_lines

QRELS_HEADER = "query-id\tcorpus-id\tscore"
GRADE = re.compile(r"(-?[0-9]{1,30})(?:\.0*)?")  # programs that keep numbers with decimals write 1.0
GRADES = range(-(2**63), 2**63)  # what fits in the arrays that grades are kept in


class DatasetError(LmshapeError):
    """A data set that cannot be used; the message names the file, the line and what to do."""


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """(place, line) of every line of a file that is not blank."""
    if not os.path.exists(path):
        raise DatasetError(
            f"{path}: no such file; a BEIR folder has corpus.jsonl, queries.jsonl and qrels/test.tsv"
        )
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            yield f"{path} line {number}", line


def records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) of every line of a .jsonl file: each has an `_id` of its own that judgements can name."""
    seen: set[str] = set()
    for where, line in _lines(path):
        record = _object(line, where)
        id = string(record, "_id", where)
        if not id:
            raise DatasetError(f"{where}: _id is empty")
        if not can_be_judged(id):
            raise DatasetError(f"{where}: _id {id!r} holds a tab or a line end, which judgements cannot name")
        if id in seen:
            raise DatasetError(f"{where}: _id {id!r} was used before")
        seen.add(id)
        yield where, record
    if not seen:
        raise DatasetError(f"{path}: empty")


def _object(line: str, where: str) -> dict[str, Any]:
    """The JSON object that a line is."""
    try:
        record = json.loads(line, object_pairs_hook=json_files.once)
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{where}: not JSON: {error.msg.removesuffix(' at')} at column {error.colno}; "
            "every line must be one object"
        ) from None
    except (ValueError, RecursionError) as error:  # a key twice; a number of thousands of digits; too deep
        raise DatasetError(f"{where}: {error}") from None
    if not isinstance(record, dict):
        raise DatasetError(f"{where}: expected an object with _id and text")
    return record


def string(record: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    """The text under a key, or `default`, where there is one, for none or null; DatasetError for what is no text."""
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise DatasetError(f"{where}: {key} must be a string, in quotes, not {_short(json.dumps(value))}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # half a surrogate pair, which no tokenizer takes
        raise DatasetError(f"{where}: {key} is not valid Unicode ({error.reason})") from error
    return value


def _short(text: str) -> str:
    """So much of a text that a message stays one."""
    return text if len(text) <= 80 else f"{text[:80]}..."


def can_be_judged(id: str) -> bool:
    """Whether a line of judgements can name a query or document of this id."""
    return not {"\t", "\n", "\r"}.intersection(id)


def read_qrels(path: Path, queries: Collection[str]) -> dict[str, dict[str, int]]:
    """Query id -> document id -> grade of a file of judgements of these queries; a line may be there twice."""
    lines = _lines(path)
    where, header = next(lines, (str(path), ""))
    if header != QRELS_HEADER:
        raise DatasetError(f"{where}: {_wrong_header(header)}")
    qrels: dict[str, dict[str, int]] = {}
    for where, line in lines:
        fields = line.split("\t")
        if len(fields) != 3:
            raise DatasetError(f"{where}: expected three fields separated by tabs, found {len(fields)}")
        query, document, grade = fields[0], fields[1], _grade(fields[2], where)
        if query not in queries:
            raise DatasetError(f"{where}: query {query!r} is not in queries.jsonl")
        if qrels.setdefault(query, {}).setdefault(document, grade) != grade:
            raise DatasetError(
                f"{where}: document {document!r} has grade {grade} for query {query!r}, and "
                f"{qrels[query][document]} in a line before"
            )
    if not qrels:
        raise DatasetError(f"{path}: no judgements")
    return qrels


def _wrong_header(found: str) -> str:
    """What is said of a first line that is not the header: a judgement there would be lost unsaid."""
    said = f"expected the header {QRELS_HEADER!r}, found {_short(found)!r}"
    if len(found.split()) == 4:
        return f"{said}; lines of TREC's kind (query, 0, document, grade) need their second field taken out as well"
    return f"{said}; put it before the judgements, in place of another header"


def _grade(text: str, where: str) -> int:
    if not (number := GRADE.fullmatch(text)):
        raise DatasetError(
            f"{where}: score must be a whole number of the digits 0 to 9, not {_short(text)!r}; grades with decimals "
            "can be multiplied, all alike, until they are whole"
        )
    grade = int(number[1])
    if grade not in GRADES:
        raise DatasetError(f"{where}: score {grade} is beyond 64 bits")
    return grade
