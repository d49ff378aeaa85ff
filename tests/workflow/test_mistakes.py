"""A mistake ends at once, in one message that names the key and what is allowed, without a traceback."""

import pytest
import yaml

STUDY = {
    "study": "mistaken",
    "title": "A study with a mistake",
    "retrieval": {
        "models": {"minilm": {}},
        "datasets": {"d": {"source": "package-documentation", "packages": ["numpy"]}},
    },
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"seds": [0]},
            "retrieval.seds (line 9): there is no such key; did you mean `seeds`? allowed: ablations, bootstrap",
        ),
        (
            {"models": {"minilmm": {}}},
            "retrieval.models.minilmm: there is no such suite in suites/; did you mean `minilm`?",
        ),
        ({"models": {"minilm": {"sizes": ["9b"]}}}, "suite minilm has no size 9b; allowed: 22.7m"),
        ({"ablations": ["crop-9999"]}, "crop-9999 is possible for no table of this study"),
        (
            {"ablations": ["original", "corp-64"]},
            "there is no ablation 'corp-64'; allowed: original, random, crop-N",
        ),
    ],
    ids=["misspelt key", "unknown suite", "size the suite lacks", "crop too wide", "unknown ablation"],
)
def test_a_mistake_is_one_message(change, said, tmp_path, snakemake):
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY | {"retrieval": STUDY["retrieval"] | change}))
    ended = snakemake("--dry-run", "--configfile", str(path))
    assert ended.returncode != 0
    assert said in ended.stdout
    assert "Traceback" not in ended.stdout and len(ended.stdout.splitlines()) < 8


def test_a_study_given_as_configfile_replaces_the_default(tmp_path, snakemake):
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY))
    ended = snakemake("retrieval", "--dry-run", "--configfile", str(path))
    assert ended.returncode == 0, ended.stdout
    assert "results/mistaken/retrieval/d/minilm/22.7m/main/input/original/none.parquet" in ended.stdout
    assert "neox-small" not in ended.stdout and "results/embedded" not in ended.stdout


def test_a_study_may_score_tables_on_tasks_of_mteb_alone(tmp_path, snakemake):
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY | {"retrieval": {"models": {"minilm": {}}, "tasks": ["STS12"]}}))
    ended = snakemake("--dry-run", "--configfile", str(path))
    assert ended.returncode == 0, ended.stdout
    assert "results/mistaken/mteb_tasks/STS12/minilm/22.7m/main/input.parquet" in ended.stdout
    assert "results/mistaken/report.html" in ended.stdout and "retrieve" not in ended.stdout


def test_a_folder_of_the_users_is_an_input_and_missing_files_are_named(tmp_path, snakemake):
    path = tmp_path / "study.yaml"
    datasets = {"own": {"source": "folder", "path": str(tmp_path / "beir")}}
    path.write_text(yaml.safe_dump(STUDY | {"retrieval": STUDY["retrieval"] | {"datasets": datasets}}))
    ended = snakemake("retrieval", "--dry-run", "--configfile", str(path))
    assert ended.returncode != 0 and f"{tmp_path}/beir/corpus.jsonl" in ended.stdout
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (tmp_path / "beir" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "beir" / name).touch()
    assert snakemake("retrieval", "--dry-run", "--configfile", str(path)).returncode == 0
