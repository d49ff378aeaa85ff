"""The embedded study, brought up to date once for all tests that look at its results."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def embedded_study() -> Path:
    """The results folder of the finished embedded study; a run of minutes, unless it is there already."""
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/local"]
    ended = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert ended.returncode == 0, ended.stdout[-10_000:]
    return ROOT / "results" / "embedded"
