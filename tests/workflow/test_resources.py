"""What jobs ask for follows from the models they run and the data sets they read."""

import json
import os
import re

import pytest
import yaml

GIGABYTE = 1000  # in the unit of mem_mb


@pytest.mark.parametrize(("dtype", "bytes_each"), [("float32", 4), ("bfloat16", 2)])
def test_a_job_that_runs_a_model_has_room_for_its_weights_once_in_the_precision_of_the_study(
    dtype, bytes_each, tmp_path, snakemake
):
    """13 billion parameters, and a small model, which needs room for the packages alone."""
    section = {"models": {"opt": {"sizes": ["125m", "13b"]}}, "dtype": dtype}
    study = {"study": "s", "title": "S", "text": {"corpus": {"source": "wikipedia-extract"}}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study | {"hidden_states": section}))
    said = snakemake("anisotropy", "--dry-run", "--configfile", str(tmp_path / "study.yaml")).stdout
    jobs = re.findall(r"(?m)^rule hidden_states:\n((?:    .*\n)+)", said)
    memory = {
        re.search(r"size=(\w+)", job)[1]: int(re.search(r"mem_mb=(\d+)", job)[1]) / GIGABYTE for job in jobs
    }
    weights = 12.85 * bytes_each
    assert weights + 2 < memory["13b"] < 1.3 * weights + 3
    assert 2 < memory["125m"] < 4


def asked(said, rule, resource, of="dataset"):
    """What the jobs of a rule ask for, by a wildcard."""
    jobs = re.findall(rf"(?m)^rule {rule}:\n((?:    .*\n)+)", said)
    return {
        re.search(rf"\b{of}=([^,\s]+)", job)[1]: int(re.search(rf"{resource}=(\d+)", job)[1]) for job in jobs
    }


def beir_folder(path, corpus):
    """The files of a BEIR folder whose corpus has this many bytes, of which none are on the disk."""
    (path / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (path / name).touch()
    os.truncate(path / "corpus.jsonl", corpus)
    return str(path)


def study_of(datasets, folder):
    retrieval = {"models": {"minilm": {}}, "datasets": datasets}
    (folder / "study.yaml").write_text(yaml.safe_dump({"study": "s", "title": "S", "retrieval": retrieval}))
    return ("--directory", str(folder), "--configfile", str(folder / "study.yaml"))


def test_a_job_that_makes_a_data_set_has_room_and_time_for_its_texts(tmp_path, snakemake):
    """FEVER is 2.9 GB of text: one size for all data sets would be too small, or too large."""
    datasets = {
        "small": {"source": "folder", "path": beir_folder(tmp_path / "small", 10**6)},
        "large": {"source": "folder", "path": beir_folder(tmp_path / "large", 3 * 10**9)},
        "scidocs": {"source": "mteb", "task": "SCIDOCS"},
        "fever": {"source": "mteb", "task": "FEVER"},
        "train": {"source": "mteb", "task": "TopiOCQA", "split": "train"},
        "german": {"source": "mteb", "task": "MIRACLRetrieval:de"},
    }
    said = snakemake(*study_of(datasets, tmp_path), "--dry-run").stdout
    memory, minutes = asked(said, "dataset", "mem_mb"), asked(said, "dataset", "runtime")
    assert memory["small"] < 2.5 * GIGABYTE > memory["scidocs"]
    assert min(memory["large"], memory["fever"]) > 12 * GIGABYTE
    assert 2 * memory["fever"] < memory["german"] < memory["train"]  # 6.6 and 12 billion characters
    assert 60 == minutes["small"] <= minutes["scidocs"] < 65 < 150 < minutes["fever"]


def test_jobs_that_count_and_score_have_room_and_time_for_the_data_set(tmp_path, snakemake):
    """As large as FEVER, which the core that scores were measured on ranks in 80 minutes at a width of 4096."""
    given = {"large": {"source": "folder", "path": beir_folder(tmp_path / "large", 10)}}
    options = (*study_of(given, tmp_path), "--dry-run", "--rerun-triggers", "mtime")
    results = tmp_path / "results/s"
    beir_folder(results / "datasets/large", 33 * 10**8)
    sizes = {"documents": 5423234, "queries": 123142, "judged": 6666}  # the others are those of other splits
    (results / "datasets/large/dataset.json").write_text(json.dumps(sizes))
    (results / "tokenizers/bert-uncased").mkdir(parents=True)
    said = snakemake("results/s/counts/large/bert-uncased.npz", *options).stdout
    assert asked(said, "counts", "mem_mb")["large"] > 20 * GIGABYTE
    assert asked(said, "counts", "runtime")["large"] > 150

    table, counts = "embeddings/minilm/22.7m/main/input.safetensors", "counts/large/bert-uncased.npz"
    for name, size in ((table, 10**7), (counts, 375 * 10**7)):
        (results / name).parent.mkdir(parents=True)
        (results / name).touch()
        os.truncate(results / name, size)
    target = "results/s/retrieval/large/minilm/22.7m/main/input/original/none.parquet"
    minutes = asked(snakemake(target, *options).stdout, "retrieve", "runtime")["large"]
    assert 3 * 80 * 384 / 4096 < minutes < 6 * 80 * 384 / 4096 + 10
