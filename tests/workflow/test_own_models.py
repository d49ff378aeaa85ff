"""Models of one's own, in a folder, through the workflow: a run as transformers' Trainer leaves it."""

import json
import pydoc_data.topics
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
import small_study
import torch
import yaml

from lmshape.inputs import checkpoints
from lmshape.models import pretraining

SHAPE = {"width": 16, "vocabulary_rows": 300, "layers": 2}
SUITE = {
    "name": "mine",
    "title": "My own",
    "architecture": "decoder",
    "tokenizer": "mine",
    "untied": True,
    "checkpoints": {"steps": [2], "revision": "checkpoint-{step}"},
    "sizes": {"s": {"path": "run", "parameters": 16192, **SHAPE}},
}
WHOLE = {"mine": {"checkpoints": "all"}}
STUDY = {
    **small_study.STUDY,
    "retrieval": small_study.STUDY["retrieval"] | {"models": WHOLE, "ablations": ["original"]},
    "hidden_states": small_study.STUDY["hidden_states"] | {"models": WHOLE},
}
TABLES = ("retrieval", "anisotropy")


def save_model(folder: Path, seed: int, texts: slice = slice(5)) -> None:
    """A model of random weights with its tokenizer, beside what Trainer keeps to go on with."""
    read = [" ".join(text.split()) for text in list(pydoc_data.topics.topics.values())[texts]]
    tokenizer = pretraining.train_tokenizer("gpt_neox", read, SHAPE["vocabulary_rows"])
    torch.manual_seed(seed)
    model = pretraining.build("gpt_neox", SHAPE | {"heads": 2}, 32, tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "optimizer.pt").write_bytes(b"not a model's")


@pytest.fixture(scope="module")
def study(tmp_path_factory, snakemake):
    """The folder of the study, after one run of it, and how to run it again."""
    folder = tmp_path_factory.mktemp("local")
    small_study.write(folder)
    (folder / "suites/grown.yaml").unlink()
    (folder / "suites/mine.yaml").write_text(yaml.safe_dump(SUITE, sort_keys=False))
    (folder / "config.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    save_model(folder / "run", seed=1)
    save_model(folder / "run/checkpoint-2", seed=2)

    def run(*arguments: str):
        return snakemake(*arguments, folder=folder)

    ended = run(*TABLES)
    assert ended.returncode == 0, ended.stdout[-10_000:]
    return folder, run


def planned(said: str) -> set[str]:
    """The outputs of the jobs that a dry run would do."""
    return set(re.findall(r"(?m)^    output: results/small/([^,\n]*)", said))


def test_every_measure_reads_the_bytes_of_the_users_own_files(study):
    folder, _ = study
    own = {"main": folder / "run", "step2": folder / "run/checkpoint-2"}
    hashes = {checkpoint: checkpoints.embedding(path).sha256() for checkpoint, path in own.items()}
    assert hashes["main"] != hashes["step2"]
    for name in TABLES:
        rows = pl.read_parquet(folder / f"results/small/tables/{name}.parquet")
        assert dict(rows.select("checkpoint", "table_sha256").unique().iter_rows()) == hashes
        assert (
            set(rows["model_revision"].str.head(7)) == {"sha256:"} and rows["model_revision"].n_unique() == 2
        )
        assert rows["reason"].null_count() == len(rows)


def test_models_are_linked_to_and_not_copied(study):
    folder, _ = study
    linked = folder / "results/small/models/mine/s/main"
    assert (linked / "model.safetensors").samefile(folder / "run/model.safetensors")
    assert {path.name for path in linked.iterdir() if not path.is_symlink()} <= {
        "revision.json",
        ".snakemake_timestamp",
    }
    assert not (linked / "optimizer.pt").exists()


def test_other_weights_of_the_model_that_a_tokenizer_is_read_from_touch_no_other_model(study):
    folder, run = study
    save_model(folder / "run", seed=9)
    stale = planned(run(*TABLES, "--dry-run").stdout)
    save_model(folder / "run", seed=1)
    assert "retrieval/topics/mine/s/main/input/original/none.parquet" in stale
    counted = ("tokenizers/", "counts/", "word_counts/", "token_ids/", "random_baseline/")
    assert not [output for output in stale if output.startswith(counted) or "/step2" in output]


def test_nothing_is_stale_until_a_file_of_the_model_changes(study):
    folder, run = study
    (folder / "run/optimizer.pt").write_bytes(b"something else")
    assert "Nothing to be done" in run(*TABLES, "--dry-run").stdout
    before = json.loads((folder / "results/small/models/mine/s/step2/revision.json").read_text())["commit"]
    save_model(folder / "run/checkpoint-2", seed=3)
    stale = planned(run(*TABLES, "--dry-run").stdout)
    assert {"models/mine/s/step2", "retrieval/topics/mine/s/step2/input/original/none.parquet"} <= stale
    assert not any("/main" in output for output in stale if not output.startswith("tables/"))
    assert run("results/small/models/mine/s/step2", "--until", "link_model").returncode == 0
    after = json.loads((folder / "results/small/models/mine/s/step2/revision.json").read_text())["commit"]
    assert before != after


def test_what_lies_beside_a_model_is_said_and_makes_nothing_stale(study):
    folder, run = study
    beside = {
        "adapter_config.json": '{"peft_type": "LORA", "base_model_name_or_path": "owner/base"}',
        "adapter_model.safetensors": "of the adapter",
        "pytorch_model.bin": "of another time",
    }
    for name, content in beside.items():
        (folder / "run" / name).write_text(content)
    assert "Nothing to be done" in run("results/small/models/mine/s/main", "--dry-run").stdout
    forced = run("results/small/models/mine/s/main", "--force")
    for name in beside:
        (folder / "run" / name).unlink()
    assert forced.returncode == 0
    assert "run: model.safetensors is read, as transformers does, and not pytorch_model.bin" in forced.stdout
    assert "an adapter (LORA) of owner/base beside it is not applied" in forced.stdout


def test_weights_that_contradict_themselves_are_refused_under_the_users_own_path(study):
    folder, run = study
    weights = folder / "run/model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole.replace(b'"shape":[300,16]', b'"shape":[301,16]'))
    assert weights.read_bytes() != whole
    ended = run("results/small/models/mine/s/main", "--force")
    weights.write_bytes(whole)
    assert ended.returncode != 0 and "Traceback" not in ended.stdout
    said = (folder / "results/small/logs/link_model/mine/s/main.log").read_text()
    assert said.startswith(
        "CheckpointError: run/model.safetensors: the header contradicts itself: embed_out.weight"
    )
    assert run("results/small/models/mine/s/main", "--force").returncode == 0


@pytest.mark.parametrize("gone", ["run", "run/checkpoint-2"])
def test_a_folder_that_is_not_there_is_refused_before_anything_runs(study, gone):
    folder, run = study
    shutil.move(folder / gone, folder / "aside")
    try:
        ended = run(*TABLES, "--dry-run")
    finally:
        shutil.move(folder / "aside", folder / gone)
    assert ended.returncode != 0 and "Traceback" not in ended.stdout
    assert f"suite mine: there is no {gone}" in ended.stdout and str(folder) in ended.stdout


def scored(study, suite: str, sizes: Iterable[str]) -> list[bool]:
    """Whether each size of another suite is scored, when it is asked for with the study's own, and some are not."""
    folder, run = study
    models = STUDY["retrieval"]["models"] | {suite: {}}
    changed = STUDY | {"retrieval": STUDY["retrieval"] | {"models": models}}
    (folder / "config.yaml").write_text(yaml.safe_dump(changed, sort_keys=False))
    tables = [
        f"results/small/retrieval/topics/{suite}/{size}/main/input/original/none.parquet" for size in sizes
    ]
    assert run(*tables, "--keep-going").returncode == 1
    return [(folder / path).exists() for path in tables]


def test_trap_20_a_model_with_a_tokenizer_of_its_own_is_not_read_with_another_suites(study):
    """Its ids are other tokens, and every score would be of the wrong rows; one without any is taken at its word."""
    folder, _ = study
    save_model(folder / "other", seed=4, texts=slice(5, 10))
    save_model(folder / "bare", seed=5)
    for path in (folder / "bare").glob("tokenizer*"):
        path.unlink()
    sizes = {name: SUITE["sizes"]["s"] | {"path": name} for name in ("other", "bare")}
    lent = {key: value for key, value in SUITE.items() if key != "checkpoints"}
    lent |= {"name": "lent", "tokenizer_from": "mine", "sizes": sizes}
    (folder / "suites/lent.yaml").write_text(yaml.safe_dump(lent, sort_keys=False))
    assert scored(study, "lent", sizes) == [False, True]
    said = (folder / "results/small/logs/compare_tokenizers/lent/other.log").read_text()
    assert "lent/other: its own tokenizer is not mine, which the suite names" in said
    said = (folder / "results/small/logs/compare_tokenizers/lent/bare.log").read_text()
    assert "lent/bare came without a tokenizer" in said


def test_trap_20_sizes_of_ones_own_suite_are_not_read_with_the_tokenizer_of_another_size(study):
    folder, _ = study
    save_model(folder / "second", seed=6)
    save_model(folder / "foreign", seed=7, texts=slice(5, 10))
    sizes = {name: SUITE["sizes"]["s"] | {"path": name} for name in ("run", "second", "foreign")}
    several = {key: value for key, value in SUITE.items() if key != "checkpoints"}
    several |= {"name": "several", "tokenizer": "several", "sizes": sizes}
    (folder / "suites/several.yaml").write_text(yaml.safe_dump(several, sort_keys=False))
    assert scored(study, "several", sizes) == [True, True, False]
    said = (folder / "results/small/logs/compare_tokenizers/several/foreign.log").read_text()
    assert "several/foreign: its own tokenizer is not several" in said
    assert not (folder / "results/small/compared_tokenizers/several/run.json").exists()  # nothing to compare
