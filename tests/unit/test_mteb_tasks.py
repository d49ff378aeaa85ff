"""Tasks of mteb: rows of a task that is defined here, and data that is fetched once and read without a network."""

import json
import os
import subprocess
import sys

import datasets as hugging_face
import numpy as np
import pytest
import word_tokenizer
from hub_server import HubServer
from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata

from lmshape import mteb_tasks
from lmshape.inputs import tokens
from lmshape.mteb_bridge import TableModel

TABLE = np.array([[0, 0], [1, 0], [0, 1], [3, 4]], dtype=np.float32)
STS12_REVISION = "a0d554a64d88156834ff5ae9920b964011b16384"  # the one that mteb pins


def metadata(name: str, kind: str, main_score: str) -> TaskMetadata:
    return TaskMetadata(
        name=name, description="local", reference=None, type=kind, category="t2t", modalities=["text"],
        eval_splits=["test"], eval_langs=["eng-Latn"], main_score=main_score, date=None, domains=None,
        task_subtypes=None, license=None, annotations_creators=None, dialect=None, sample_creation=None,
        bibtex_citation=None, dataset={"path": "local", "revision": "r1"},
    )  # fmt: skip


class Similarity(AbsTaskSTS):
    metadata = metadata("LocalSTS", "STS", "cosine_spearman")
    min_score, max_score = 0, 5
    pairs = {"sentence1": ["a", "a", "a"], "sentence2": ["b", "c", "a"], "score": [0.0, 3.0, 5.0]}

    def load_data(self, **_):
        self.dataset = {"test": hugging_face.Dataset.from_dict(self.pairs)}
        self.data_loaded = True


class Undecided(Similarity):
    """People find all pairs equally alike, so that nothing can be correlated."""

    pairs = Similarity.pairs | {"score": [2.0, 2.0, 2.0]}


class Clustering(AbsTaskClusteringLegacy):
    metadata = metadata("LocalClustering", "Clustering", "v_measure")

    def load_data(self, **_):
        texts = {"sentences": [["a", "b", "a a", "b b"]], "labels": [[0, 1, 0, 1]]}
        self.dataset = {"test": hugging_face.Dataset.from_dict(texts)}
        self.data_loaded = True


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = word_tokenizer.save(tmp_path_factory.mktemp("tokenizer"), ["a", "b", "c"])
    tokenizer = tokens.load_tokenizer(folder)
    return lambda table: TableModel([table], tokenizer, "lmshape/test", "r1")


def test_a_row_holds_the_main_score_and_the_revision_of_the_data(model):
    assert mteb_tasks.rows(model(TABLE), Similarity()) == [
        {
            "task_type": "STS",
            "metric": "cosine_spearman",
            "dataset_revision": "r1",
            "split": "test",
            "subset": "default",
            "value": pytest.approx(1),
            "reason": None,
        }
    ]


def test_other_kinds_of_task_are_scored_too(model):
    (row,) = mteb_tasks.rows(model(TABLE), Clustering())
    assert (row["task_type"], row["metric"], row["value"]) == ("Clustering", "v_measure", pytest.approx(1))


@pytest.mark.parametrize(
    ("table", "task", "reason"),
    [
        (TABLE, Undecided, "mteb's score is nan"),
        (TABLE[:2], Similarity, "token 3 has no row in a table of 2"),
        (np.full_like(TABLE, np.nan), Similarity, "the table holds values that are not finite"),
    ],
)
def test_what_cannot_be_scored_is_null_with_a_reason(model, table, task, reason):
    (row,) = mteb_tasks.rows(model(table), task())
    assert row["value"] is None and row["reason"].startswith(reason)
    assert set(row) == set(mteb_tasks.rows(model(TABLE), Similarity())[0])


def run(code: str, **environment: str) -> str:
    """What `code` prints in a process of its own: mteb reads its settings when it is imported."""
    command = [sys.executable, "-c", f"from lmshape import mteb_tasks; {code}"]
    ended = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_trap_9_data_is_fetched_once_and_read_without_a_network(tmp_path):
    pairs = [{"sentence1": "a", "sentence2": "b", "score": score} for score in (1, 2, 3)]
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "test.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    kept = tmp_path / "kept"
    with HubServer() as hub:
        hub.add("mteb/sts12-sts", STS12_REVISION, tmp_path / "served")
        home = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "home")}
        run(f"mteb_tasks.fetch('STS12', {str(kept)!r})", **home)
        asked = len(hub.requests)
        said = run(f"print(list(mteb_tasks.load('STS12', {str(kept)!r}).dataset['test']['score']))", **home)
        assert said.strip() == "[1, 2, 3]"
        assert len(hub.requests) == asked
