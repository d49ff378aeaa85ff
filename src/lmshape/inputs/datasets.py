"""Retrieval data sets in BEIR layout: read, write, check, and export from mteb.

A folder holds corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and qrels/test.tsv (query-id,
corpus-id, score). What `write` makes has a fourth file, `dataset.json`: the revision of the source, whether a
query's own document is among the documents, how many of everything there are, and of a task of mteb which subset
and split it is. Without it the revision is a hash of the content, and no document is a query's own.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from lmshape.errors import LmshapeError
from lmshape.files import writing

log = logging.getLogger(__name__)

QRELS_HEADER = "query-id\tcorpus-id\tscore"
WHOLE_CORPUS = ("Retrieval", "InstructionRetrieval")  # mteb's types of task that search all documents
GRADES = range(-(2**63), 2**63)  # what fits in the arrays that grades are kept in


class DatasetError(LmshapeError):
    """A data set that cannot be used; the message names the file, the line and what to do."""


class Document(NamedTuple):
    """One document. What is embedded is `content`."""

    id: str
    title: str
    text: str

    @property
    def content(self) -> str:
        """Title, a space, text, stripped."""
        return f"{self.title} {self.text}".strip()


@dataclass(frozen=True)
class Dataset:
    """Documents, queries and judgements.

    `qrels` maps query id -> document id -> grade. With `drop_self` a document whose id is the query's own is
    never an answer to it, as in ArguAna and Quora, where queries are documents; elsewhere (Cranfield) equal
    ids mean nothing.
    """

    documents: list[Document]
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    drop_self: bool = False
    source_revision: str | None = None

    @cached_property
    def sha256(self) -> str:
        """Hash of all that a score depends on, whatever the order of documents, queries and judgements."""
        digest = hashlib.sha256()
        for part in self._json():
            digest.update(part.encode())
        return digest.hexdigest()

    def _json(self) -> Iterator[str]:
        """All that a score depends on, sorted, as `json.dumps` of [documents, queries, judgements, drop_self] is.

        A row at a time: a corpus in one string would be in memory three times more.
        """
        documents = ((document.id, document.content) for document in sorted(self.documents))
        queries = sorted(self.queries.items())
        judgements = (
            (query, *judged)
            for query, grades in sorted(self.qrels.items())
            for judged in sorted(grades.items())
        )
        yield "["
        for rows in (documents, queries, judgements):
            yield "["
            yield from (", " * (number > 0) + json.dumps(row) for number, row in enumerate(rows))
            yield "], "
        yield json.dumps(self.drop_self) + "]"

    @property
    def revision(self) -> str:
        """The source's own revision, or twelve digits of the content's hash where it has none."""
        return self.source_revision or self.sha256[:12]

    @property
    def absent(self) -> int:
        """Judgements of documents that are not in the corpus: they can never be found and count as missed."""
        gone = {document for grades in self.qrels.values() for document in grades}
        gone.difference_update(document.id for document in self.documents)
        return sum(document in gone for grades in self.qrels.values() for document in grades)

    @property
    def sizes(self) -> dict[str, int]:
        """How many there are of everything: `judged` queries are those that are scored, for `absent` see there."""
        return {
            "documents": len(self.documents),
            "queries": len(self.queries),
            "judged": sum(map(bool, self.qrels.values())),
            "judgements": sum(map(len, self.qrels.values())),
            "absent": self.absent,
        }


def read(folder: str | Path) -> Dataset:
    """What `write` wrote, or a BEIR folder of anyone's; DatasetError names the file and line of what is wrong."""
    said = about(folder)
    dataset = read_beir(folder, said.get("drop_self", False))
    return replace(dataset, source_revision=said.get("revision"))


def read_beir(folder: str | Path, drop_self: bool = False) -> Dataset:
    """The data set in the three files of a BEIR folder, and no other; errors as in `read`."""
    folder = Path(folder)
    documents = [
        Document(line["_id"], _string(line, "title", where, ""), _string(line, "text", where))
        for where, line in _records(folder / "corpus.jsonl")
    ]
    queries = {
        line["_id"]: _string(line, "text", where) for where, line in _records(folder / "queries.jsonl")
    }
    qrels = _read_qrels(folder / "qrels" / "test.tsv", queries)
    return Dataset(documents, queries, qrels, drop_self)


class Judgements(NamedTuple):
    """What of a data set a score needs beside token counts: `qrels` and `drop_self` of `Dataset`."""

    qrels: dict[str, dict[str, int]]
    drop_self: bool


def read_judgements(folder: str | Path) -> Judgements:
    """The judgements of what `read` reads, without its corpus; errors as there."""
    queries = {line["_id"]: "" for _, line in _records(Path(folder) / "queries.jsonl")}
    qrels = _read_qrels(Path(folder) / "qrels" / "test.tsv", queries)
    return Judgements(qrels, about(folder).get("drop_self", False))


def about(folder: str | Path) -> dict[str, Any]:
    """What `dataset.json` says, where there is one."""
    extra = Path(folder) / "dataset.json"
    return json.loads(extra.read_text()) if extra.exists() else {}


def write(dataset: Dataset, folder: str | Path, source: Mapping[str, str] | None = None) -> None:
    """Write a BEIR folder, whole or not at all. `source` is what else dataset.json shall say of where it is from."""
    corpus = ({"_id": d.id, "title": d.title, "text": d.text} for d in dataset.documents)
    queries = ({"_id": id, "text": text} for id, text in dataset.queries.items())
    rows = (
        f"{query}\t{id}\t{grade}" for query, grades in dataset.qrels.items() for id, grade in grades.items()
    )
    facts = {"revision": dataset.revision, "sha256": dataset.sha256, "drop_self": dataset.drop_self}
    facts |= dataset.sizes | dict(source or {})
    if facts["absent"]:
        log.warning(
            "%(absent)d of %(judgements)d judgements are of documents that the corpus lacks: never found",
            facts,
        )
    with writing(folder) as temporary:
        (temporary / "qrels").mkdir(parents=True)
        _write_lines(temporary / "corpus.jsonl", map(_as_text, corpus))
        _write_lines(temporary / "queries.jsonl", map(_as_text, queries))
        _write_lines(temporary / "qrels" / "test.tsv", [QRELS_HEADER, *rows])
        (temporary / "dataset.json").write_text(json.dumps(facts, indent=1) + "\n")


def export_mteb(task: str, folder: str | Path, split: str | None = None) -> None:
    """Write mteb's retrieval task as a BEIR folder, with the revision that mteb pins (downloads it).

    `task` is a name such as SCIDOCS, or name:subset for a task of several subsets (MIRACLRetrieval:en). `split` is
    as in `choose_split`; dataset.json says which task, subset and split it was.
    """
    name, _, subset = task.partition(":")
    loaded = mteb_task(name, subset or None)
    split = choose_split(loaded, split)
    source = {"task": name, "subset": loaded.hf_subsets[0], "split": split}
    write(from_mteb(loaded, split), folder, source)


def mteb_task(name: str, subset: str | None = None) -> Any:
    """mteb's task of this name, of one `subset` where one is named, without its data.

    mteb then loads that subset alone, but for the few tasks that load all in their own way. DatasetError names
    the nearest task if there is none, the subsets if it has no such, and the parts of an aggregate, which has no
    data of its own.
    """
    import mteb  # 5 s, needed nowhere else

    try:
        task = mteb.get_task(name, hf_subsets=subset and [subset])
    except KeyError as error:
        raise DatasetError(f"mteb has no task {name}: {error.args[0]}") from error
    except ValueError as error:
        has = ", ".join(mteb.get_task(name).hf_subsets)
        raise DatasetError(f"mteb task {name} has no subset {subset}; it has {has}") from error
    if task.is_aggregate:
        parts = ", ".join(part.metadata.name for part in task.tasks)
        raise DatasetError(
            f"mteb task {name} is an aggregate: name those of its parts that you want: {parts}"
        )
    return task


def choose_split(task: Any, split: str | None = None) -> str:
    """The split of mteb's task of this name; without a name test, or else the first that mteb evaluates.

    DatasetError names those that mteb evaluates where `split` is not among them.
    """
    name, splits = task.metadata.name, task.metadata.eval_splits
    chosen = split or ("test" if "test" in splits else splits[0])
    if chosen not in splits:
        raise DatasetError(f"mteb task {name} has no split {chosen}; it has {', '.join(splits)}")
    if split is None and len(splits) > 1:
        log.info(
            "mteb task %s has the splits %s: %s is taken, as none is named", name, ", ".join(splits), chosen
        )
    return chosen


def from_mteb(task: Any, split: str | None = None) -> Dataset:
    """A split of an `mteb.abstasks.AbsTaskRetrieval` (see `choose_split`), as mteb itself shows it to a model.

    DatasetError for a task of several subsets, and for one that is no search of all documents.
    """
    name, subsets = task.metadata.name, task.hf_subsets
    _check_retrieval(task)
    if len(subsets) > 1:
        raise DatasetError(
            f"mteb task {name} has the subsets {', '.join(subsets)}: write {name}:{subsets[0]}"
        )
    split = choose_split(task, split)
    task.filter_eval_splits([split])  # no other is loaded, but by a task that loads in a way of its own
    task.load_data()
    task.convert_v1_dataset_format_to_v2(num_proc=None)
    data = task.dataset[subsets[0]][split]
    if data["top_ranked"]:
        raise DatasetError(f"mteb task {name} ranks given candidates: it goes under retrieval.tasks")
    judged = {query: dict(grades) for query, grades in data["relevant_docs"].items() if grades}
    queries = from_mteb_queries(data["queries"])
    return Dataset(
        documents=from_mteb_corpus(data["corpus"]),
        queries={query: text for query, text in queries.items() if query in judged},
        qrels=judged,
        drop_self=task.ignore_identical_ids,
        source_revision=task.metadata.dataset["revision"],
    )


def _check_retrieval(task: Any) -> None:
    facts = task.metadata
    if facts.type not in WHOLE_CORPUS or facts.modalities != ["text"]:
        raise DatasetError(
            f"mteb task {facts.name} is {facts.type} of {' and '.join(facts.modalities)}, not retrieval of text; "
            "other tasks on text go under retrieval.tasks"
        )


def from_mteb_corpus(rows: Iterable[Mapping[str, Any]]) -> list[Document]:
    """The documents of mteb's table of them."""
    return [Document(row["id"], row.get("title") or "", row["text"]) for row in rows]


def from_mteb_queries(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Query id -> text of mteb's table of them; an instruction follows the query, as where mteb encodes it."""

    def text(row: Mapping[str, Any]) -> str:
        if not isinstance(row["text"], str):
            raise DatasetError(f"query {row['id']} of an mteb task is a conversation, not a text")
        return f"{row['text']} {row['instruction']}" if row.get("instruction") else row["text"]

    return {row["id"]: text(row) for row in rows}


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """(place, line) of every line of a file that is not blank."""
    try:
        with path.open(encoding="utf-8-sig") as file:  # some editors begin a file with a byte order mark
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield f"{path} line {number}", line.rstrip("\r\n")
    except FileNotFoundError:
        raise DatasetError(
            f"{path}: no such file; a BEIR folder has corpus.jsonl, queries.jsonl and qrels/test.tsv"
        ) from None
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from error


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) of every line of a .jsonl file, ids checked."""
    seen: set[str] = set()
    for where, line in _lines(path):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DatasetError(f"{where}: not JSON: {error.msg} at column {error.colno}") from error
        if not isinstance(record, dict):
            raise DatasetError(f"{where}: expected an object with _id and text")
        id = _string(record, "_id", where)
        if not id:
            raise DatasetError(f"{where}: _id is empty")
        if id in seen:
            raise DatasetError(f"{where}: _id {id!r} was used before")
        seen.add(id)
        yield where, record
    if not seen:
        raise DatasetError(f"{path}: empty")


def _string(record: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise DatasetError(f"{where}: {key} must be a string, not {json.dumps(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # half a surrogate pair, which no tokenizer takes
        raise DatasetError(f"{where}: {key} is not valid Unicode ({error.reason})") from error
    return value


def _read_qrels(path: Path, queries: Mapping[str, str]) -> dict[str, dict[str, int]]:
    lines = _lines(path)
    where, header = next(lines, (str(path), ""))
    if header != QRELS_HEADER:
        raise DatasetError(f"{where}: expected the header {QRELS_HEADER!r}, found {header!r}")
    qrels: dict[str, dict[str, int]] = {}
    for where, line in lines:
        fields = line.split("\t")
        if len(fields) != 3:
            raise DatasetError(f"{where}: expected three fields separated by tabs, found {len(fields)}")
        query, document, grade = fields
        if query not in queries:
            raise DatasetError(f"{where}: query {query!r} is not in queries.jsonl")
        if document in qrels.setdefault(query, {}):
            raise DatasetError(f"{where}: document {document!r} is judged twice for query {query!r}")
        qrels[query][document] = _grade(grade, where)
    if not qrels:
        raise DatasetError(f"{path}: no judgements")
    return qrels


def _grade(text: str, where: str) -> int:
    try:
        grade = int(text)
    except ValueError:
        raise DatasetError(f"{where}: score must be a whole number, not {text!r}") from None
    if grade not in GRADES:
        raise DatasetError(f"{where}: score {grade} is beyond 64 bits")
    return grade


def _as_text(record: Mapping[str, str]) -> str:
    return json.dumps(record, ensure_ascii=False)  # else a letter beyond ASCII is six bytes or twelve


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
