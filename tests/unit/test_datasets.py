import hashlib
import json
import random
import tracemalloc
from types import SimpleNamespace

import pytest
import script_job

from lmshape.errors import LmshapeError
from lmshape.inputs import datasets
from lmshape.inputs.datasets import Dataset, DatasetError, Document
from lmshape.study.config import BeirFolder, MtebTask

DOCUMENTS = [
    Document("d1", "Wings", "on lift "),
    Document("d2", "", " flow\nin pipes"),
    Document("d3", "", ""),
    Document("é 4", "Äther", "wind"),
]
QUERIES = {"q1": "what lifts a wing", "q2": "pipes"}
QRELS = {"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 1, "gone": -1}}


@pytest.fixture
def folder(tmp_path):
    datasets.write(Dataset(DOCUMENTS, QUERIES, QRELS), tmp_path / "set")
    return tmp_path / "set"


def test_what_was_written_is_read_back(folder):
    assert datasets.read(folder) == Dataset(
        DOCUMENTS, QUERIES, QRELS, source_revision=Dataset(DOCUMENTS, QUERIES, QRELS).sha256[:12]
    )


def test_a_folder_of_beir_alone_is_read(folder):
    (folder / "dataset.json").unlink()
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "no title", "metadata": {}}\n\n')
    found = datasets.read(folder)
    assert [d.content for d in found.documents] == ["no title"]
    assert found.drop_self is False
    assert found.revision == found.sha256[:12]
    assert datasets.read_beir(folder) == found


def test_content_is_title_space_text_stripped():
    assert [d.content for d in DOCUMENTS] == ["Wings on lift", "flow\nin pipes", "", "Äther wind"]


def test_judgements_of_absent_documents_are_counted_where_a_folder_says_what_it_holds(folder):
    about = json.loads((folder / "dataset.json").read_text())
    assert (about["documents"], about["queries"], about["judgements"], about["absent"]) == (4, 2, 4, 1)


def test_a_folder_says_how_many_of_its_queries_are_judged(tmp_path):
    """BEIR's queries.jsonl often holds those of all splits, and qrels/test.tsv judges a few."""
    others = {f"train{i}": "never asked" for i in range(100)}
    datasets.write(Dataset(DOCUMENTS, QUERIES | others, QRELS | {"train0": {}}), tmp_path / "set")
    about = datasets.about(tmp_path / "set")
    assert (about["queries"], about["judged"]) == (102, 2)


def test_a_data_set_with_judgements_of_absent_documents_is_told_of(tmp_path, caplog):
    datasets.write(Dataset(DOCUMENTS, QUERIES, QRELS), tmp_path / "set")
    assert "1 of 4 judgements are of documents that the corpus lacks" in caplog.text
    caplog.clear()
    datasets.write(Dataset(DOCUMENTS, QUERIES, {"q1": {"d1": 2}}), tmp_path / "whole")
    assert not caplog.text


def test_the_hash_of_a_corpus_takes_a_fraction_of_its_memory():
    """One string of the whole corpus would take three times what the corpus does."""
    documents = [Document(f"d{i}", "", f"{i} {'text ' * 100}") for i in range(2000)]
    dataset = Dataset(documents, QUERIES, {"q1": {"d1": 1}})
    tracemalloc.start()
    assert dataset.sha256
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.1 * sum(len(document.text) for document in documents)


def test_a_data_set_is_read_and_written_in_twice_its_size(tmp_path):
    """What the workflow asks for in `mem_mb` is four times: mteb can hold the texts, too."""
    documents = [Document(f"d{i}", "", f"{i} {'text ' * 100}") for i in range(2000)]
    datasets.write(Dataset(documents, QUERIES, {"q1": {"d1": 1}}), tmp_path / "set")
    size = (tmp_path / "set" / "corpus.jsonl").stat().st_size
    del documents
    tracemalloc.start()
    datasets.write(datasets.read_beir(tmp_path / "set"), tmp_path / "copy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * size


def test_trap_31_the_hash_follows_the_content_and_not_its_order():
    dataset = Dataset(DOCUMENTS, QUERIES, QRELS)
    shuffled = Dataset(
        random.Random(0).sample(DOCUMENTS, 4), dict(reversed(QUERIES.items())), dict(reversed(QRELS.items()))
    )
    assert shuffled.sha256 == dataset.sha256
    others = [
        Dataset([*DOCUMENTS[:3], Document("é 4", "Äther", "winds")], QUERIES, QRELS),
        Dataset(DOCUMENTS, {**QUERIES, "q2": "pipe"}, QRELS),
        Dataset(DOCUMENTS, QUERIES, {**QRELS, "q2": {"d2": 2, "gone": -1}}),
        Dataset(DOCUMENTS, QUERIES, QRELS, drop_self=True),
        Dataset([*DOCUMENTS, Document("q3", "", "fish")], QUERIES, QRELS),
        Dataset(DOCUMENTS, {**QUERIES, "q3": "fish"}, QRELS),
    ]
    assert len({dataset.sha256, *(other.sha256 for other in others)}) == 7


@pytest.mark.parametrize("qrels", [QRELS, {"q1": {"d1": 2}, "q0": {}}, {}])
def test_the_hash_is_that_of_one_json_of_everything(qrels):
    """`dataset_revision` of results is made of it, so it must not change with how it is computed."""
    parts = [
        sorted((d.id, d.content) for d in DOCUMENTS),
        sorted(QUERIES.items()),
        sorted((query, *judged) for query, grades in qrels.items() for judged in grades.items()),
        True,
    ]
    whole = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    assert Dataset(DOCUMENTS, QUERIES, qrels, drop_self=True).sha256 == whole


def test_the_hash_of_a_data_set_is_what_it_always_was():
    assert Dataset(DOCUMENTS, QUERIES, QRELS).revision == "8275d28c303c"


def test_texts_are_written_in_their_own_letters(tmp_path):
    """Escaped, Chinese would be twice as large, and an emoji three times; line separators end no line."""
    documents = [Document("d1", "气动", "升力\u2028和\x85风\U0001f300\r\n")]
    dataset = Dataset(documents, {"q1": "风"}, {"q1": {"d1": 1}})
    datasets.write(dataset, tmp_path / "set")
    assert "升力" in (tmp_path / "set/corpus.jsonl").read_text(encoding="utf-8")
    assert "风" in (tmp_path / "set/queries.jsonl").read_text(encoding="utf-8")
    assert datasets.read(tmp_path / "set").documents == documents


def test_an_export_keeps_its_source_revision_and_self_match_policy(tmp_path):
    datasets.write(
        Dataset(DOCUMENTS, QUERIES, QRELS, drop_self=True, source_revision="abc123"), tmp_path / "x"
    )
    found = datasets.read(tmp_path / "x")
    assert (found.revision, found.drop_self) == ("abc123", True)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": "x"}\n{"_id": "b", "text": ', "corpus.jsonl line 2: not JSON"),
        ("corpus.jsonl", '[{"_id": "a",\n"text": "x"}]', "line 1: not JSON: Expecting property name enclosed in"),
        ("corpus.jsonl", '["a"]', "line 1: expected an object"),
        ("corpus.jsonl", "[" * 100_000, "line 1: maximum recursion depth"),
        ("corpus.jsonl", f'{{"_id": {"1" * 5000}}}', "line 1: Exceeds the limit (4300 digits)"),
        ("corpus.jsonl", '{"_id": 7, "text": "x"}', "line 1: _id must be a string, in quotes, not 7"),
        ("corpus.jsonl", '{"id": "7", "text": "x"}', "line 1: _id must be a string, in quotes, not null"),
        ("corpus.jsonl", '{"_id": "", "text": "x"}', "line 1: _id is empty"),
        ("corpus.jsonl", '{"_id": "a\\tb", "text": "x"}', "line 1: _id 'a\\tb' holds a tab or a line end"),
        ("corpus.jsonl", '{"_id": "a", "title": "x"}', "line 1: text must be a string, in quotes, not null"),
        ("corpus.jsonl", '{"_id": "a", "text": NaN}', "line 1: text must be a string, in quotes, not NaN"),
        ("corpus.jsonl", f'{{"_id": "a", "text": {[1] * 500}}}', "in quotes, not [1, 1, "),
        ("corpus.jsonl", '{"_id": "a", "text": "", "title": ["x"]}', 'title must be a string, in quotes, not ["x"]'),
        ("corpus.jsonl", '{"_id": "a", "text": "", "text": "x"}', "line 1: the key 'text' is there twice"),
        ("corpus.jsonl", '{"_id": "a", "text": "\\ud800"}', "line 1: text is not valid Unicode"),
        ("corpus.jsonl", '{"_id": "a", "text": ""}\n\n{"_id": "a", "text": ""}', "line 3: _id 'a' was"),
        ("corpus.jsonl", "\n", "corpus.jsonl: empty"),
        ("corpus.jsonl", '{"_id": "a", "text": ""}', "none of the judged documents is in corpus.jsonl, as 'd1'"),
        ("queries.jsonl", '{"_id": "q1"}', "queries.jsonl line 1: text must be a string"),
        ("queries.jsonl", "", "queries.jsonl: empty"),
        ("dataset.json", "{", "dataset.json: not JSON"),
        ("dataset.json", "[]", "dataset.json: expected an object"),
        ("dataset.json", '{"drop_self": "false"}', 'dataset.json: `drop_self` must be true or false, and is "false"'),
        ("dataset.json", '{"drop_self": 0}', "dataset.json: `drop_self` must be true or false, and is 0"),
        ("dataset.json", '{"revision": 5}', "dataset.json: `revision` must be a string, in quotes, and is 5"),
    ],
)  # fmt: skip
def test_a_broken_file_is_refused_by_file_and_line(folder, file, content, message):
    (folder / file).write_text(content)
    with pytest.raises(LmshapeError) as refusal:
        datasets.read(folder)
    assert message in str(refusal.value)


HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "test.tsv: expected the header"),
        ("q1\td1\t1\n", "test.tsv line 1: expected the header"),
        ("query_id\tcorpus_id\tscore\nq1\td1\t1\n", "line 1: expected the header"),
        ("q1 0 d1 1\nq2 0 d2 1\n", "lines of TREC's kind (query, 0, document, grade)"),
        ("q1\t0\td1\t1\n", "lines of TREC's kind (query, 0, document, grade)"),
        (HEADER, "no judgements"),
        (HEADER + "q1 d1 1\n", "line 2: expected three fields"),
        (HEADER + "q1\td1\t1\t\n", "line 2: expected three fields"),
        (HEADER + "q9\td1\t1\n", "line 2: query 'q9' is not in"),
        (HEADER + '"q1"\td1\t1\n', "line 2: query '\"q1\"' is not in"),
        (HEADER + 'q1\t"d1"\t1\n', "document '\"d1\"' is not in corpus.jsonl, but 'd1' is"),
        (HEADER + "q1\td2\t1\nq1\td1 \t1\n", "document 'd1 ' is not in corpus.jsonl, but 'd1' is"),
        (HEADER + "q1\td1\t1\nq1\td1\t2\n", "line 3: document 'd1' has grade 2 for query 'q1', and 1 in a line bef"),
        (HEADER + "q1\td9\t1\n", "none of the judged documents is in corpus.jsonl, as 'd9' is not"),
    ],
)  # fmt: skip
def test_judgements_that_cannot_be_meant_are_refused_by_line(folder, content, message):
    (folder / "qrels/test.tsv").write_text(content)
    with pytest.raises(DatasetError) as refusal:
        datasets.read(folder)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("written", "grade"), [("2", 2), ("1.0", 1), ("-3.000", -3), ("07", 7), ("4.", 4), ("-0", 0)]
)
def test_a_grade_may_have_a_decimal_point_where_it_is_whole(folder, written, grade):
    (folder / "qrels/test.tsv").write_text(f"{HEADER}q1\td1\t{written}\n")
    assert datasets.read(folder).qrels == {"q1": {"d1": grade}}


@pytest.mark.parametrize(
    "written",
    [
        "0.5",
        "1_0",
        " 1",
        "1 ",
        " +1",
        "+1",
        "１",
        "١",
        "²",
        "1e0",
        "inf",
        "nan",
        "",
        "x",
        "0x1",
        "1,0",
        "--1",
        "1.0.0",
    ],
)
def test_what_is_no_whole_number_to_everyone_is_no_grade(folder, written):
    (folder / "qrels/test.tsv").write_text(f"{HEADER}q1\td1\t1\nq1\td2\t{written}\n")
    with pytest.raises(
        DatasetError, match="qrels/test.tsv line 3: score must be a whole number of the digits"
    ):
        datasets.read(folder)


@pytest.mark.parametrize("grade", [2**63, ~(2**63), 10**29])
def test_a_grade_beyond_64_bits_is_refused(folder, grade):
    (folder / "qrels/test.tsv").write_text(f"{HEADER}q1\td1\t{grade}\n")
    with pytest.raises(DatasetError, match=f"line 2: score {grade} is beyond 64 bits"):
        datasets.read(folder)


def test_a_line_of_judgements_may_be_there_twice(folder):
    expected = datasets.read(folder)
    with (folder / "qrels/test.tsv").open("a") as file:
        file.write("q1\td1\t2\n")
    assert datasets.read(folder) == expected


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_may_end_as_on_any_system(folder, end):
    expected = datasets.read(folder)
    for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        content = (folder / file).read_text(encoding="utf-8").replace("\n", end)
        (folder / file).write_bytes(content.encode())
    assert datasets.read(folder) == expected


@pytest.mark.parametrize("id", ["a\tb", "a\nb", "a\r"])
def test_an_id_that_no_line_of_judgements_can_hold_is_not_written(tmp_path, id):
    with pytest.raises(DatasetError, match="holds a tab or a line end"):
        datasets.write(Dataset([Document(id, "", "x")], {"q": "x"}, {"q": {id: 1}}), tmp_path / "set")
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_refused_by_name(folder, file):
    (folder / file).unlink()
    with pytest.raises(LmshapeError, match="no such file; a BEIR folder has"):
        datasets.read(folder)


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_bytes_that_are_not_utf8_are_refused(folder, file):
    (folder / file).write_bytes((folder / file).read_bytes() + b"\xff")
    with pytest.raises(LmshapeError, match=f"{file}: not UTF-8"):
        datasets.read(folder)


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_byte_order_mark_is_no_part_of_a_file(folder, file):
    expected = datasets.read(folder)
    (folder / file).write_text((folder / file).read_text(), encoding="utf-8-sig")
    assert datasets.read(folder) == expected


def run_job(folder, source):
    """Run the job that makes a data set of a study's `source` in `folder`/made."""
    params = {"function": source.made_by, "settings": source.model_dump(exclude={"source"})}
    script_job.run("dataset", folder, params=params, output={"folder": "made"})


@pytest.mark.parametrize("drop_self", [False, True])
def test_trap_30_the_study_alone_says_whether_a_users_folder_has_the_queries_among_its_documents(
    folder, tmp_path, drop_self
):
    """A file beside the three of BEIR is no input of the job: a change of it must change nothing."""
    (folder / "dataset.json").write_text(json.dumps({"drop_self": not drop_self, "revision": "other"}))
    run_job(tmp_path, BeirFolder(source="folder", path=str(folder), drop_self=drop_self))
    assert datasets.read(tmp_path / "made") == Dataset(
        DOCUMENTS, QUERIES, QRELS, drop_self, Dataset(DOCUMENTS, QUERIES, QRELS, drop_self).sha256[:12]
    )


class Task:
    """As much of mteb.abstasks.AbsTaskRetrieval as an export reads."""

    ignore_identical_ids = True
    is_aggregate = False

    def __init__(
        self, subsets=("default",), queries=None, top_ranked=None, type="Retrieval", splits=("dev",)
    ):
        facts = {"dataset": {"path": "x/y", "revision": "r1"}, "eval_splits": splits}
        self.metadata = SimpleNamespace(name="Tiny", type=type, modalities=["text"], **facts)
        self.hf_subsets = list(subsets)
        self.data = {
            "corpus": [{"id": "d1", "title": None, "text": "lift"}, {"id": "d2", "text": "flow"}],
            "queries": queries or [{"id": "q1", "text": "wing"}, {"id": "q2", "text": "unjudged"}],
            "relevant_docs": {"q1": {"d1": 1}, "q2": {}},
            "top_ranked": top_ranked,
        }

    def filter_eval_splits(self, splits):
        self.eval_splits = splits

    def load_data(self):
        self.dataset = {
            subset: {split: self.data for split in self.eval_splits} for subset in self.hf_subsets
        }

    def convert_v1_dataset_format_to_v2(self, num_proc):
        pass


def test_a_task_of_mteb_becomes_a_folder_with_its_revision(tmp_path, monkeypatch):
    mteb = pytest.importorskip("mteb")
    monkeypatch.setattr(mteb, "get_task", lambda name, hf_subsets: {"Tiny": Task()}[name])
    datasets.export_mteb("Tiny", tmp_path / "tiny")
    assert datasets.read(tmp_path / "tiny") == Dataset(
        [Document("d1", "", "lift"), Document("d2", "", "flow")],
        {"q1": "wing"},
        {"q1": {"d1": 1}},
        True,
        "r1",
    )
    about = json.loads((tmp_path / "tiny" / "dataset.json").read_text())
    assert [about[key] for key in ("revision", "task", "subset", "split")] == ["r1", "Tiny", "default", "dev"]


@pytest.mark.parametrize(
    ("splits", "named", "taken"),
    [
        (("dev", "test"), None, "test"),
        (("dev", "test"), "dev", "dev"),
        (("test_256", "test_512"), None, "test_256"),
        (("test_256", "test_512"), "test_512", "test_512"),
    ],
)
def test_the_study_names_the_split_and_without_a_name_it_is_test_or_the_first(
    splits, named, taken, tmp_path, monkeypatch, caplog
):
    caplog.set_level("INFO")
    task = Task(splits=splits)
    monkeypatch.setattr(datasets, "mteb_task", lambda name, subset: task)
    datasets.export_mteb("Tiny", tmp_path / "made", named)
    assert json.loads((tmp_path / "made" / "dataset.json").read_text())["split"] == taken
    assert list(task.dataset["default"]) == [taken]  # no other was loaded
    assert (f"{taken} is taken" in caplog.text) == (named is None)


def test_a_split_that_a_task_lacks_is_refused_with_those_it_has_before_anything_is_loaded():
    task = Task(splits=("test_256", "test_512"))
    with pytest.raises(DatasetError, match="Tiny has no split test; it has test_256, test_512"):
        datasets.from_mteb(task, "test")
    assert not hasattr(task, "dataset")


@pytest.mark.slow
def test_the_job_exports_the_split_of_the_study(tmp_path):
    with pytest.raises(
        AssertionError, match="LEMBNeedleRetrieval has no split test; it has test_256, test_512"
    ):
        run_job(tmp_path, MtebTask(source="mteb", task="LEMBNeedleRetrieval", split="test"))


def test_a_task_that_mteb_lacks_is_refused_by_name(tmp_path):
    pytest.importorskip("mteb")
    with pytest.raises(DatasetError, match="mteb has no task SCIDOCZ"):
        datasets.export_mteb("SCIDOCZ", tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionError("no route\n  to host"), "ConnectionError: no route to host"),
        (RuntimeError("Dataset scripts are no longer supported, but found y.py"), "found y.py"),
        (FileNotFoundError("Couldn't find cache for x/y"), "find cache for x/y"),
        (LmshapeError("of our own"), "of our own"),
    ],
)
def test_what_a_task_raises_while_it_loads_is_one_message_with_its_name(error, said, monkeypatch):
    task = Task()

    def fail():
        raise error

    monkeypatch.setattr(task, "load_data", fail)
    with pytest.raises(LmshapeError) as refused:
        datasets.from_mteb(task)
    assert said in str(refused.value) and "\n" not in str(refused.value)
    if type(error) is not LmshapeError:
        assert str(refused.value).startswith("mteb task Tiny: its data, x/y on the hub, cannot be loaded: ")


def test_data_that_are_not_in_the_cache_are_asked_for_in_one_message(tmp_path, monkeypatch):
    """What `datasets` says without a network, not what we think that it says."""
    task = datasets.mteb_task("NFCorpus")
    for name, value in (
        ("HF_HUB_OFFLINE", True),
        ("HF_DATASETS_OFFLINE", True),
        ("HF_DATASETS_CACHE", tmp_path),
    ):
        monkeypatch.setattr(f"datasets.config.{name}", value, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DatasetError) as refused:
        datasets.from_mteb(task)
    said = str(refused.value)
    assert said.startswith("mteb task NFCorpus: its data, mteb/nfcorpus on the hub, cannot be loaded: ")
    assert "https://hf.co/datasets/mteb/nfcorpus" in said and "\n" not in said


def test_one_of_several_subsets_must_be_named_and_nothing_is_loaded_before():
    task = Task(subsets=("en", "de"))
    with pytest.raises(DatasetError, match="subsets en, de: write Tiny:en"):
        datasets.from_mteb(task)
    assert not hasattr(task, "dataset")


def test_of_several_subsets_the_named_one_alone_is_loaded(tmp_path, monkeypatch):
    loaded = []

    def load_data(task):
        loaded.extend(task.hf_subsets)
        splits = {split: Task().data for split in task.eval_splits}
        task.dataset = {subset: splits for subset in task.hf_subsets}

    monkeypatch.setattr(type(datasets.mteb_task("MIRACLRetrieval")), "load_data", load_data)
    datasets.export_mteb("MIRACLRetrieval:de", tmp_path / "german")
    assert loaded == ["de"]
    assert datasets.read(tmp_path / "german").queries == {"q1": "wing"}


def test_a_subset_that_a_task_lacks_is_refused_with_those_it_has():
    with pytest.raises(DatasetError, match="MIRACLRetrieval has no subset xx; it has ar, bn, de,"):
        datasets.mteb_task("MIRACLRetrieval", "xx")


def test_an_aggregate_of_tasks_is_refused_with_its_parts():
    with pytest.raises(
        DatasetError, match="is an aggregate.*: CQADupstackAndroidRetrieval, CQADup.*Wordpress"
    ):
        datasets.mteb_task("CQADupstackRetrieval")


def test_instructions_follow_the_query_and_conversations_are_refused():
    asked = [{"id": "q1", "text": "wing", "instruction": "in short"}]
    assert datasets.from_mteb(Task(queries=asked)).queries == {"q1": "wing in short"}
    with pytest.raises(DatasetError, match="query q1 of an mteb task is a conversation"):
        datasets.from_mteb(Task(queries=[{"id": "q1", "text": ["a", "b"]}]))


def test_a_document_without_a_text_is_refused_and_not_called_none():
    with pytest.raises(DatasetError, match="document d1 of an mteb task has no text"):
        datasets.from_mteb_corpus([{"id": "d1", "title": "x", "text": None}])


@pytest.mark.parametrize(("grade", "kept"), [(1.0, 1), (True, 1), (2, 2), (0.5, None)])
def test_grades_of_a_task_are_whole_numbers(grade, kept):
    task = Task()
    task.data["relevant_docs"] = {"q1": {"d1": grade}}
    if kept is None:
        with pytest.raises(DatasetError, match="mteb task Tiny has a grade of 0.5"):
            datasets.from_mteb(task)
    else:
        assert datasets.from_mteb(task).qrels == {"q1": {"d1": kept}}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("STS12", "STS of text"),
        ("AskUbuntuDupQuestions", "Reranking of text"),
        ("SciDocsRR", "Reranking of text"),
        ("Core17InstructionRetrieval", "InstructionReranking of text"),
        ("VisRAGRetArxivQA", "Retrieval of text and image"),
    ],
)
def test_other_kinds_of_task_are_refused_and_sent_to_where_they_belong(name, kind):
    with pytest.raises(DatasetError, match=f"{name} is {kind}, not retrieval of text.* retrieval.tasks"):
        datasets.from_mteb(datasets.mteb_task(name))


def test_a_task_that_brings_candidates_is_refused_whatever_it_calls_itself():
    with pytest.raises(DatasetError, match="Tiny ranks given candidates: it goes under retrieval.tasks"):
        datasets.from_mteb(Task(top_ranked={"q1": ["d2", "d1"]}))


def test_retrieval_by_instruction_is_retrieval():
    assert datasets.from_mteb(Task(type="InstructionRetrieval")).queries == {"q1": "wing"}
