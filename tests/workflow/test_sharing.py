"""Snakemake's between-workflow cache: what one study computed, another with the same settings need not.

Snakemake says which outputs it moves into the cache, after a job that was run, and which it takes from there.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import small_study
import yaml
from hub_server import HubServer
from safetensors.numpy import save_file

from lmshape.inputs import checkpoints
from lmshape.inputs.tokens import load_tokenizer

ROOT = Path(__file__).parents[2]
SHARED = {
    "text", "fetch_text", "dataset", "counts", "token_ids", "train_tokenizer", "copy_tokenizer", "fetch_tokenizer",
    "pretrain", "copy_model", "fetch_model", "fetch_embeddings", "embedding_table", "count_words", "fetch_task",
}  # fmt: skip
FAR = {
    "name": "far",
    "title": "On a hub",
    "architecture": "decoder",
    "tokenizer": "far",
    "untied": True,
    "sizes": {"s": {"hub": "owner/far", "parameters": 24, "width": 3, "vocabulary_rows": 4, "layers": 1}},
}


def rules() -> dict[str, str]:
    """Every rule that runs a script, with its text."""
    texts = [path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk"))]
    parts = [part for text in texts for part in re.split(r"(?m)^rule ", text)[1:] if "    script:" in part]
    return {part.partition(":")[0]: part for part in parts}


def test_the_shared_rules_are_those_that_the_page_for_clusters_names():
    assert {name for name, text in rules().items() if "    cache: SHARED\n" in text} == SHARED
    page = (ROOT / "docs/cluster.md").read_text()
    (listed,) = re.findall(r"(?m)^    snakemake --profile profiles/slurm --cache (.*)$", page)
    assert set(listed.split()) == SHARED


@pytest.mark.parametrize("name", sorted(SHARED))
def test_what_tells_two_shared_outputs_apart_is_among_the_params(name):
    """Studies name their combinations as they like: a script that read a name would share nothing."""
    text = rules()[name]
    (script,) = re.findall(r'script:\n        "\.\./\.\./(scripts/.*)"', text)
    assert "wildcards" not in (ROOT / script).read_text()


def computed(said: str) -> set[str]:
    """The folders of the study to which jobs of shared rules, that were run, wrote."""
    return set(re.findall(r"Moving output file results/small/(\w+)/\S+ to cache", said))


def taken(said: str) -> set[str]:
    """The folders of the study with outputs that came from the cache."""
    linked = set(re.findall(r"Symlinking output file results/small/(\w+)/\S+ from cache", said))
    return linked - computed(said)


@pytest.fixture(scope="module")
def run(snakemake, tmp_path_factory):
    """Runs the small study in a folder, with one cache for all tests; returns what Snakemake said."""
    cache = tmp_path_factory.mktemp("cache")

    def run(folder: Path, *arguments: str, **environment: str) -> str:
        environment["SNAKEMAKE_OUTPUT_CACHE"] = str(cache)
        ended = snakemake(*arguments, "--cache", folder=folder, **environment)
        assert ended.returncode == 0, ended.stdout
        return ended.stdout

    return run


@pytest.fixture(scope="module")
def first(run, tmp_path_factory) -> Path:
    """A study that has filled the cache."""
    folder = tmp_path_factory.mktemp("first")
    small_study.write(folder)
    filled = {"text", "datasets", "tokenizers", "counts", "token_ids", "models", "pretraining", "embeddings"}
    assert computed(run(folder, *small_study.TARGETS)) == filled
    return folder


def test_a_second_study_takes_from_the_cache_and_ends_with_the_same_tables(
    run, snakemake, first, tmp_path, undisturbed
):
    small_study.write(tmp_path)
    said = run(tmp_path, *small_study.TARGETS)
    assert computed(said) == set() and {"text", "models", "counts", "embeddings"} <= taken(said)
    for folder in (first, tmp_path):
        small_study.assert_same(small_study.tables(folder), undisturbed)
        assert "Nothing to be done" in run(folder, *small_study.TARGETS, "--dry-run")
        assert "Nothing to be done" in snakemake(*small_study.TARGETS, "--dry-run", folder=folder).stdout


def test_another_setting_is_not_served_from_the_cache(run, first, tmp_path):
    small_study.write(tmp_path)
    text = small_study.STUDY["text"] | {"held_out": 0.4}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(small_study.STUDY | {"text": text}))
    said = run(tmp_path, "results/small/tokenizers/grown", "results/small/datasets/topics")
    assert (computed(said), taken(said)) == ({"text", "tokenizers"}, {"datasets"})


def test_another_text_of_the_same_name_is_not_served_from_the_cache(run, first, tmp_path):
    small_study.write(tmp_path)
    with (tmp_path / "text.txt").open("a") as file:
        file.write("\n\nAnother article, which the first study did not have.")
    assert computed(run(tmp_path, "results/small/text/held_out.jsonl")) == {"text"}


def test_a_result_from_the_cache_that_becomes_stale_leaves_the_cache_as_it_is(run, first, tmp_path):
    """It is a link into the cache: the new result replaces the link, not what it leads to."""
    small_study.write(tmp_path)
    assert taken(run(tmp_path, "results/small/tokenizers/grown")) == {"text", "tokenizers"}
    smaller = small_study.SUITE["sizes"]["s"] | {"vocabulary_rows": 290, "parameters": 15872}
    suite = small_study.SUITE | {"sizes": {"s": smaller}}
    (tmp_path / "suites/grown.yaml").write_text(yaml.safe_dump(suite))
    assert computed(run(tmp_path, "results/small/tokenizers/grown")) == {"tokenizers"}
    sizes = [len(load_tokenizer(folder / "results/small/tokenizers/grown")) for folder in (first, tmp_path)]
    assert sizes == [300, 290]


def test_a_temporary_download_is_in_the_cache_for_studies_that_cannot_reach_the_hub(run, tmp_path):
    """The tensors of a hub's model are deleted from the study that fetched them, not from the cache."""
    table = "results/small/embeddings/far/s/main/input.safetensors"
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"model_type": "gpt_neox", "tie_word_embeddings": False}))
    embedding = np.arange(12, dtype=np.float32).reshape(4, 3)
    tables = {"gpt_neox.embed_in.weight": embedding, "embed_out.weight": embedding + 1}
    save_file(tables, model / "model.safetensors")
    with HubServer() as hub:
        hub.add("owner/far", "main", model)
        for number in range(2):
            folder = tmp_path / f"study{number}"
            folder.mkdir()
            small_study.write(folder)
            (folder / "suites/far.yaml").write_text(yaml.safe_dump(FAR))
            retrieval = small_study.STUDY["retrieval"] | {"models": {"far": {}}, "ablations": ["original"]}
            (folder / "config.yaml").write_text(yaml.safe_dump(small_study.STUDY | {"retrieval": retrieval}))
            said = run(folder, table, HF_ENDPOINT=hub.endpoint, HF_HOME=str(tmp_path / "home"))
            hub.gated.add("owner/far")
            assert checkpoints.load(folder / table).shape == (4, 3)
            assert not (folder / "results/small/tensors").exists()
    assert taken(said) == {"tensors", "embeddings"}
