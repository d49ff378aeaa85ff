"""What jobs took, gathered from the files that Snakemake writes about them."""

import polars as pl
import pytest

from lmshape.report import benchmarks

HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time"
LONG = "75.50\t0:01:15\t812.25\t900.00\t800.00\t801.00\t0.00\t1.00\t95.00\t71.25"
SHORT = "0.37\t0:00:00\t2.65\t8.92\t1.23\t1.60\t0.00\t0.00\t0.00\t0.00"
UNSEEN = "3.00\t0:00:03\tNA\tNA\tNA\tNA\tNA\tNA\tNA\tNA"


@pytest.fixture
def collect(tmp_path):
    """Writes benchmark files, by name and content, and gathers them as two rules of a study with one model."""
    folder = tmp_path / "results/toys/benchmarks"
    paths = {"text": "text.tsv", "retrieve": "retrieve/{dataset}/{suite}/{size}/{seed}.tsv"}
    rules = {rule: f"{folder}/{path}" for rule, path in paths.items()}

    def collect(**files: str) -> pl.DataFrame:
        for name, content in files.items():
            path = folder / f"{name}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{HEADER}\n{content}\n")
        return benchmarks.collect(folder, rules, {("pythia", "14m"): 14_000_000})

    return collect


def test_a_job_is_a_row_with_what_its_rule_wildcards_and_model_are(collect):
    table = collect(**{"text": LONG, "retrieve/docs.v1/pythia/14m/none": LONG})
    assert table.schema == benchmarks.SCHEMA
    text, retrieve = table.to_dicts()
    assert (text["rule"], text["suite"], text["parameters"], text["job"]) == ("text", None, None, "text")
    wanted = {"rule": "retrieve", "suite": "pythia", "size": "14m", "parameters": 14_000_000, "dataset": "docs.v1",
              "seed": "none", "checkpoint": None, "job": "retrieve/docs.v1/pythia/14m/none"}  # fmt: skip
    assert wanted.items() <= retrieve.items()
    assert (retrieve["seconds"], retrieve["cpu_seconds"], retrieve["peak_memory_mib"]) == (
        75.5,
        71.25,
        812.25,
    )


@pytest.mark.parametrize(("content", "seconds"), [(SHORT, 0.37), (UNSEEN, 3.0)], ids=["short", "unseen"])
def test_memory_that_nobody_looked_at_is_null_and_not_a_number(collect, content, seconds):
    (row,) = collect(text=content).to_dicts()
    assert (row["seconds"], row["cpu_seconds"], row["peak_memory_mib"]) == (seconds, None, None)


@pytest.mark.parametrize(
    "text", ["", f"{HEADER}\n", f"{HEADER}\n75.50\t0:01"], ids=["empty", "header", "cut"]
)
def test_a_file_without_a_whole_row_is_a_job_that_nobody_saw(collect, tmp_path, text):
    collect(text=LONG)
    (tmp_path / "results/toys/benchmarks/text.tsv").write_text(text)
    (row,) = collect().to_dicts()
    assert row["job"] == "text" and row["seconds"] is row["cpu_seconds"] is row["peak_memory_mib"] is None


def test_left_over_files_are_not_rows(collect):
    """Of a rule that was renamed, and of a model that the study no longer has."""
    table = collect(**{"text": LONG, "score/docs": LONG, "retrieve/docs/pythia/70m/none": LONG})
    assert table["job"].to_list() == ["text"]


def test_a_study_without_files_is_an_empty_table_with_all_columns(collect):
    assert collect().is_empty() and collect().schema == benchmarks.SCHEMA
