"""A copy of the repository with a study so small that it can be run, whole, many times."""

import json
import pydoc_data.topics
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import yaml
from polars.testing import assert_frame_equal

ROOT = Path(__file__).parents[1]
TARGETS = ("retrieval", "anisotropy", "intrinsic_dimension")  # all that is computed; figures take far longer
SUITE = {
    "name": "grown",
    "title": "Trained here",
    "architecture": "decoder",
    "tokenizer": "grown",
    "untied": True,
    "pretraining": {"model_type": "gpt_neox", "sequence_length": 32, "batch_size": 4, "warmup": 1},
    "checkpoints": {"steps": [0, 2]},
    "sizes": {"s": {"parameters": 16192, "width": 16, "vocabulary_rows": 300, "layers": 2, "heads": 2}},
}
STUDY = {
    "study": "small",
    "title": "A small study",
    "text": {"corpus": {"source": "file", "path": "text.txt"}, "held_out": 0.5},
    "retrieval": {
        "models": {"grown": {"checkpoints": "all"}},
        "datasets": {"topics": {"source": "folder", "path": "topics"}},
        "ablations": ["original", "random", "crop-8"],
        "seeds": [0],
        "bootstrap": 10,
    },
    "hidden_states": {
        "models": {"grown": {}},
        "sequence_length": 32,
        "batch_size": 64,
        "batches": 2,
        "tokens": 512,
    },
}


def write(folder: Path) -> None:
    """Put the workflow, its code, one suite, the study and its texts into `folder`."""
    shutil.copy(ROOT / "Snakefile", folder)
    for name in ("workflow", "scripts", "profiles", "envs"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "suites").mkdir()
    (folder / "suites/grown.yaml").write_text(yaml.safe_dump(SUITE, sort_keys=False))
    (folder / "config.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    topics = dict(sorted(pydoc_data.topics.topics.items()))
    (folder / "text.txt").write_text("\n\n".join(" ".join(text.split()) for text in topics.values()))
    write_topics(folder / "topics", {name: text for name, text in topics.items() if len(text) > 500})


def write_topics(folder: Path, topics: dict[str, str]) -> None:
    """Retrieval of a topic of Python's documentation by its beginning, in BEIR layout."""
    (folder / "qrels").mkdir(parents=True)
    documents = [{"_id": name, "title": "", "text": text[300:1300]} for name, text in topics.items()]
    queries = [{"_id": name, "text": text[:100]} for name, text in topics.items()]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = "".join(f"{name}\t{name}\t1\n" for name in topics)
    (folder / "qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")


def start(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.Popen:
    """Start a run in a session of its own, so that all its processes can be ended together.

    What it says goes to `snakemake.log` in its folder.
    """
    with open(folder / "snakemake.log", "w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *TARGETS, *arguments],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def finish(running: subprocess.Popen, folder: Path) -> str:
    """Wait for a run and return what it said; a failure of it fails the test."""
    running.wait()
    said = (folder / "snakemake.log").read_text()
    assert running.returncode == 0, said
    return said


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    """The study's finished tables by name."""
    paths = sorted((folder / "results/small/tables").glob("*.parquet"))
    return {path.stem: pl.read_parquet(path) for path in paths}


def assert_same(found: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> None:
    """Both hold the same tables: the same rows in the same order, numbers equal but for rounding."""
    assert found.keys() == expected.keys()
    for name, frame in expected.items():
        assert_frame_equal(found[name], frame, rel_tol=1e-6)
