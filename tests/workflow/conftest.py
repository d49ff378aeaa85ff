"""Running Snakemake as a user does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def snakemake(*arguments: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess:
    """Run Snakemake in `folder`; stdout and stderr come together in `.stdout`."""
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@pytest.fixture(scope="session", name="snakemake")
def snakemake_fixture():
    return snakemake
