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
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from lmshape.errors import reported_as
from lmshape.files import writing
from lmshape.inputs import json_files
from lmshape.inputs.beir_files import QRELS_HEADER, DatasetError, can_be_judged, read_qrels, records, string
from lmshape.text_files import read_text

log = logging.getLogger(__name__)

# of what is read in dataset.json
ABOUT = {"drop_self": bool, "revision": str, "documents": int, "judged": int}
WHOLE_CORPUS = ("Retrieval", "InstructionRetrieval")  # mteb's types of task that search all documents


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
    dataset = read_beir(folder, bool(said.get("drop_self")))
    return replace(dataset, source_revision=said.get("revision"))


def read_beir(folder: str | Path, drop_self: bool = False) -> Dataset:
    """The data set in the three files of a BEIR folder, and no other; errors as in `read`."""
    folder = Path(folder)
    documents = [
        Document(line["_id"], string(line, "title", where, ""), string(line, "text", where))
        for where, line in records(folder / "corpus.jsonl")
    ]
    queries = {line["_id"]: string(line, "text", where) for where, line in records(folder / "queries.jsonl")}
    judgements = folder / "qrels" / "test.tsv"
    dataset = Dataset(documents, queries, read_qrels(judgements, queries), drop_self)
    _check_judged(dataset, judgements)
    return dataset


def _check_judged(dataset: Dataset, file: Path) -> None:
    """DatasetError where judgements of absent documents, which count as missed, must be meant otherwise."""
    ids = {document.id for document in dataset.documents}
    absent = [id for grades in dataset.qrels.values() for id in grades if id not in ids]
    for id in absent:
        if (meant := id.strip().strip("\"'")) in ids:
            raise DatasetError(
                f"{file}: document {id!r} is not in corpus.jsonl, but {meant!r} is: write ids as they are there"
            )
    if len(absent) == sum(map(len, dataset.qrels.values())):
        raise DatasetError(
            f"{file}: none of the judged documents is in corpus.jsonl, as {absent[0]!r} is not; it has ids such as "
            f"{dataset.documents[0].id!r}"
        )


class Judgements(NamedTuple):
    """What of a data set a score needs beside token counts: `qrels` and `drop_self` of `Dataset`."""

    qrels: dict[str, dict[str, int]]
    drop_self: bool


def read_judgements(folder: str | Path) -> Judgements:
    """The judgements of what `read` reads, without its corpus; errors as there."""
    queries = {line["_id"] for _, line in records(Path(folder) / "queries.jsonl")}
    qrels = read_qrels(Path(folder) / "qrels" / "test.tsv", queries)
    return Judgements(qrels, bool(about(folder).get("drop_self")))


def about(folder: str | Path) -> dict[str, Any]:
    """What `dataset.json` says, where there is one; JsonFileError where a value in it is not of its type."""
    extra = Path(folder) / "dataset.json"
    if not extra.exists():
        return {}
    said = json_files.parse(read_text(extra), extra)
    for key, kind in ABOUT.items():
        json_files.value(said, key, kind, extra)
    return said


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
    for id in chain.from_iterable((query, *grades) for query, grades in dataset.qrels.items()):
        if not can_be_judged(id):
            raise DatasetError(
                f"the id {id!r} holds a tab or a line end, and cannot be written in a line of judgements"
            )
    with writing(folder) as temporary:
        (temporary / "qrels").mkdir(parents=True)
        _write_lines(temporary / "corpus.jsonl", map(_as_text, corpus))
        _write_lines(temporary / "queries.jsonl", map(_as_text, queries))
        _write_lines(temporary / "qrels" / "test.tsv", [QRELS_HEADER, *rows])
        (temporary / "dataset.json").write_text(json.dumps(facts, indent=1) + "\n")


def copy_beir(path: str | Path, folder: str | Path, drop_self: bool = False) -> None:
    """Write the BEIR folder at `path` anew, checked: what `read_beir` takes."""
    write(read_beir(path, drop_self), folder)


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
    load_data(task)
    with reported_as(DatasetError, f"mteb task {name}: its data are not as mteb expects them"):
        task.convert_v1_dataset_format_to_v2(num_proc=None)
    data = task.dataset[subsets[0]][split]
    if data["top_ranked"]:
        raise DatasetError(f"mteb task {name} ranks given candidates: it goes under retrieval.tasks")
    judged = {
        query: {document: _whole(grade, name) for document, grade in grades.items()}
        for query, grades in data["relevant_docs"].items()
        if grades
    }
    queries = from_mteb_queries(data["queries"])
    return Dataset(
        documents=from_mteb_corpus(data["corpus"]),
        queries={query: text for query, text in queries.items() if query in judged},
        qrels=judged,
        drop_self=task.ignore_identical_ids,
        source_revision=task.metadata.dataset["revision"],
    )


def load_data(task: Any) -> None:
    """Have mteb's task load its data; DatasetError says in one message what `datasets` or the hub's client raised."""
    facts = task.metadata
    what = f"mteb task {facts.name}: its data, {facts.dataset['path']} on the hub, cannot be loaded"
    advice = "is there a network, and may your account (HF_TOKEN) read them? See https://hf.co/datasets/"
    with reported_as(DatasetError, what, advice + facts.dataset["path"]):
        task.load_data()


def _check_retrieval(task: Any) -> None:
    facts = task.metadata
    if facts.type not in WHOLE_CORPUS or facts.modalities != ["text"]:
        raise DatasetError(
            f"mteb task {facts.name} is {facts.type} of {' and '.join(facts.modalities)}, not retrieval of text; "
            "other tasks on text go under retrieval.tasks"
        )


def _whole(grade: float, name: str) -> int:
    if grade != int(grade):
        raise DatasetError(f"mteb task {name} has a grade of {grade}, and grades are whole numbers here")
    return int(grade)


def from_mteb_corpus(rows: Iterable[Mapping[str, Any]]) -> list[Document]:
    """The documents of mteb's table of them."""
    return [Document(row["id"], row.get("title") or "", _text(row, "document")) for row in rows]


def _text(row: Mapping[str, Any], what: str) -> str:
    if not isinstance(row["text"], str):
        kind = "has no text" if row["text"] is None else "is a conversation, not a text"
        raise DatasetError(f"{what} {row['id']} of an mteb task {kind}")
    return row["text"]


def from_mteb_queries(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Query id -> text of mteb's table of them; an instruction follows the query, as where mteb encodes it."""

    def text(row: Mapping[str, Any]) -> str:
        asked = _text(row, "query")
        return f"{asked} {row['instruction']}" if row.get("instruction") else asked

    return {row["id"]: text(row) for row in rows}


def _as_text(record: Mapping[str, str]) -> str:
    return json.dumps(record, ensure_ascii=False)  # else a letter beyond ASCII is six bytes or twelve


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
