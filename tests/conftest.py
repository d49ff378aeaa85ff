"""Studies that are run once for all tests that look at their results."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import small_study

from lmshape.jobs import environment

environment.settle(os.environ)  # tests draw figures and run Snakemake, from a notebook's cell too
os.environ.pop("SNAKEMAKE_PROFILE", None)

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def embedded_study() -> Path:
    """The results folder of the finished embedded study; a run of minutes, unless it is there already."""
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/local"]
    ended = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert ended.returncode == 0, ended.stdout[-10_000:]
    return ROOT / "results" / "embedded"


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    """The tables of the small study after one run in which nothing happened."""
    folder = tmp_path_factory.mktemp("undisturbed")
    small_study.write(folder)
    small_study.finish(small_study.start(folder, "--cores", "2"), folder)
    return small_study.tables(folder)
