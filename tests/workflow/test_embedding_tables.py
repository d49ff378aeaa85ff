"""Both embedding tables of a model through every measure of them.

Two toy suites are trained by the workflow; of a third, which has a wide output table, there are the tables alone.
"""

import csv
import json
import random
import shutil
from pathlib import Path

import documented
import numpy as np
import polars as pl
import pytest
import yaml
from hub_server import HubServer

from lmshape.inputs import tensor_files

ROOT = Path(__file__).parents[2]
WORDS = [
    f"{a}{b}" for a in ("ba", "do", "ki", "lu", "me") for b in ("fan", "gor", "his", "jut", "nol", "pex")
]
PARAMETERS = {("gpt_neox", 8): 6008, ("gpt_neox", 16): 13552, ("bert", 8): 4000}
SHAPE = {"vocabulary_rows": 320, "layers": 1, "heads": 1}


def suite(name: str, model_type: str, untied: bool, *widths: int) -> dict:
    return {
        "name": name,
        "title": name,
        "architecture": "encoder" if model_type == "bert" else "decoder",
        "tokenizer": f"{name}-words",
        "untied": untied,
        "pretraining": {"model_type": model_type, "sequence_length": 16, "batch_size": 2},
        "checkpoints": {"steps": [0, 2]},
        "sizes": {
            f"w{width}": {"parameters": PARAMETERS[model_type, width], "width": width, **SHAPE}
            for width in widths
        },
    }


WIDE = {
    "rembert.embeddings.word_embeddings.weight": (320, 8),
    "cls.predictions.decoder.weight": (328, 24),
}
SUITES = [
    suite("open", "gpt_neox", True, 8, 16),
    suite("shut", "bert", False, 8),
    {
        "name": "wide",
        "title": "A wide output table",
        "architecture": "encoder",
        "tokenizer": "open-words",
        "tokenizer_from": "open",
        "untied": True,
        "sizes": {
            "s": {"path": "wide", "parameters": 10432, "width": 8, "vocabulary_rows": 320, "layers": 1}
            | {"output_width": 24, "output_rows": 328}
        },
    },
]
SIDES = ["input", "output"]
STUDY = {
    "study": "toys",
    "title": "Toys",
    "text": {"corpus": {"source": "file", "path": "text.txt"}, "held_out": 0.2},
    "retrieval": {
        "models": {"open": {}, "shut": {}, "wide": {}},
        "datasets": {"docs": {"source": "folder", "path": "docs"}},
        "ablations": ["original", "crop-20"],
        "sides": SIDES,
    },
    "word_similarity": {
        "models": {"open": {}, "shut": {}},
        "datasets": {"own": "pairs.tsv"},
        "sides": SIDES,
    },
}


def write_inputs(folder: Path) -> None:
    """A text, a BEIR folder and word pairs of random words."""
    draw = random.Random(0)
    sentences = [" ".join(draw.choices(WORDS, k=12)) for _ in range(120)]
    (folder / "text.txt").write_text("\n\n".join(sentences))
    (folder / "docs" / "qrels").mkdir(parents=True)
    documents = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(sentences[:40])]
    queries = [{"_id": f"q{i}", "text": text[:30]} for i, text in enumerate(sentences[:12])]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / "docs" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = "".join(f"q{i}\td{i}\t1\n" for i in range(12))
    (folder / "docs" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    pairs = (f"{a}\t{b}\t{draw.random():.2f}\n" for a, b in zip(WORDS, WORDS[1:], strict=False))
    (folder / "pairs.tsv").write_text("".join(pairs))
    (folder / "wide").mkdir()
    (folder / "wide" / "config.json").write_text(json.dumps({"model_type": "rembert"}))
    rng = np.random.default_rng(0)
    arrays = {name: (rng.standard_normal(shape, np.float32), "float32") for name, shape in WIDE.items()}
    tensor_files.write(folder / "wide" / "model.safetensors", arrays, {})


@pytest.fixture(scope="module")
def results(tmp_path_factory, snakemake) -> Path:
    """The finished study, run in a copy of the repository."""
    folder = tmp_path_factory.mktemp("toys")
    shutil.copy(ROOT / "Snakefile", folder)
    for name in ("workflow", "scripts", "profiles", "envs"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "suites").mkdir()
    for content in SUITES:
        (folder / "suites" / f"{content['name']}.yaml").write_text(yaml.safe_dump(content))
    (folder / "config.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    write_inputs(folder)
    targets = ("study", "retrieval", "word_similarity")
    ended = snakemake(*targets, folder=folder)
    assert ended.returncode == 0, ended.stdout[-10_000:]
    return folder / "results" / "toys"


@pytest.fixture(scope="module")
def table(results):
    return lambda name: pl.read_parquet(results / "tables" / f"{name}.parquet")


def tables_scored(rows: pl.DataFrame) -> set[tuple[str, str]]:
    return set(rows.select("suite", "side").unique().iter_rows())


def test_the_output_table_is_scored_where_a_model_has_one_of_its_own(table):
    both = {("open", "input"), ("open", "output"), ("shut", "input")}
    assert tables_scored(table("word_similarity")) == both
    assert tables_scored(table("retrieval")) == both | {("wide", "input"), ("wide", "output")}


def test_an_output_table_is_cropped_scored_and_described_by_its_own_width_and_rows(table):
    rows = table("retrieval").filter(suite="wide", metric="ndcg_at_10")
    facts = rows.select("side", "ablation", "width", "embedding_width", "vocabulary_rows")
    assert sorted(facts.iter_rows()) == [
        ("input", "original", 8, 8, 320),
        ("output", "crop-20", 20, 24, 328),
        ("output", "original", 24, 24, 328),
    ]
    assert rows["value"].null_count() == 0


def test_both_sides_of_a_model_are_tables_of_their_own(table):
    for name in ("retrieval", "word_similarity"):
        rows = table(name).filter(suite="open", size="w16", checkpoint="step2")
        hashes = dict(rows.select("side", "table_sha256").unique().iter_rows())
        assert hashes["input"] != hashes["output"]
        assert rows["embedding_width"].unique().to_list() == [16]


def test_tied_output_tables_and_crops_of_narrow_ones_are_reported_as_pruned(results):
    with (results / "pruned.csv").open(newline="") as file:
        pruned = {row["combination"]: row["reason"] for row in csv.DictReader(file)}
    tied = {name for name, reason in pruned.items() if reason.startswith("tied")}
    assert tied == {
        "retrieval/docs/shut/w8/step2/output/original/none",
        "retrieval/docs/shut/w8/step2/output/crop-20/none",
        "word_similarity/own/shut/w8/step2/output",
    }
    models = {"open/w8/step2/input": 8, "open/w8/step2/output": 8, "shut/w8/step2/input": 8}
    models |= {"open/w16/step2/input": 16, "open/w16/step2/output": 16, "wide/s/main/input": 8}
    assert {name: reason for name, reason in pruned.items() if name not in tied} == {
        f"retrieval/docs/{model}/crop-20/none": f"crop-20 is wider than the table ({width})"
        for model, width in models.items()
    }


def test_word_similarity_counts_every_pair_once(table):
    rows = table("word_similarity")
    assert set(rows["pairs"] + rows["missing"]) == {len(WORDS) - 1}
    assert rows["spearman"].is_between(-1, 1).all() and rows["spearman"].null_count() == 0
    assert set(rows["checkpoint"]) == {"step2"} and rows["final"].all()


def test_word_similarity_has_the_columns_of_the_design(table):
    wanted = "suite size parameters checkpoint step final side dataset spearman pairs missing reason"
    assert set(wanted.split()) <= set(table("word_similarity").columns)


def test_sizes_are_compared_where_a_suite_has_several(table):
    rows = table("comparisons")
    assert set(rows.select("suite", "first", "second").iter_rows()) == {("open", "w16", "w8")}
    assert sorted(rows["side"]) == SIDES
    scores = table("retrieval").filter(metric="ndcg_at_10", suite="open")
    for side in SIDES:
        large, small = (scores.filter(side=side, size=size)["value"].item() for size in ("w16", "w8"))
        assert rows.filter(side=side)["difference"].item() == pytest.approx(large - small)


STS12_REVISION = "a0d554a64d88156834ff5ae9920b964011b16384"  # the one that mteb pins


def test_a_task_of_mteb_is_fetched_once_and_scores_both_tables(results, table, snakemake, tmp_path):
    folder = results.parents[1]
    scored = {"models": {"open": {"sizes": ["w8"]}}, "ablations": ["original"], "tasks": ["STS12"]}
    (folder / "tasks.yaml").write_text(yaml.safe_dump(STUDY | {"retrieval": STUDY["retrieval"] | scored}))
    draw = random.Random(1)
    pairs = [
        {
            "sentence1": " ".join(draw.sample(WORDS, 5)),
            "sentence2": " ".join(draw.sample(WORDS, 5)),
            "score": i % 6,
        }
        for i in range(24)
    ]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    target = "results/toys/tables/mteb_tasks.parquet"
    with HubServer() as hub:
        hub.add("mteb/sts12-sts", STS12_REVISION, tmp_path)
        environment = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "home")}
        ended = snakemake(target, "--configfile", "tasks.yaml", folder=folder, **environment)
        sent = [
            request for request in hub.requests if request.content and request.path.endswith("test.jsonl")
        ]
    assert ended.returncode == 0, ended.stdout[-10_000:]
    assert len(sent) == 1
    rows = table("mteb_tasks")
    assert sorted(rows["side"]) == SIDES and rows["value"].n_unique() == 2
    assert set(rows.select("task", "metric", "dataset_revision").iter_rows()) == {
        ("STS12", "cosine_spearman", STS12_REVISION)
    }
    assert rows["value"].is_between(-1, 1).all()
    assert set(rows.columns) == documented.tables()["mteb_tasks"]
