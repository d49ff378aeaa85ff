"""Running Snakemake as a user does."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import stub_study
from forked import Forked

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


@pytest.fixture(scope="session")
def forked() -> Iterator[Forked]:
    """Runs Snakemake as `snakemake` does, in a third of its time."""
    forked = Forked()
    yield forked
    forked.close()


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory, forked: Forked) -> stub_study.Copy:
    """A copy of the repository with the small study finished in it."""
    folder = tmp_path_factory.mktemp("copy")
    stub_study.write(folder)
    copy = stub_study.Copy(folder, forked)
    copy.finish()
    return copy


@pytest.fixture(scope="session")
def every_rule(copy: stub_study.Copy) -> stub_study.Copy:
    """The same copy with a study finished in it that has jobs of every rule."""
    every_rule = copy.of("every")
    every_rule.finish()
    return every_rule
