"""Studies that are run once for all tests that look at their results, and the order of the tests for that.

The embedded study takes longer than anything else. It is begun beside the tests that do not look at it, which leave
a processor idle, and ended and taken up again with all processors by the first that does.
"""

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


STUDY = [sys.executable, "-m", "snakemake", "--profile", "profiles/local"]
BEGUN = pytest.StashKey[subprocess.Popen]()


def looks_at_the_study(item: pytest.Item) -> bool:
    return "embedded_study" in getattr(item, "fixturenames", ())


def wants_a_quiet_machine(item: pytest.Item) -> bool:
    """Whether it waits for what a signal or a cluster does, and for no longer than is promised."""
    return item.path.parent.name == "slurm" or item.path.name == "test_interruption.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (wants_a_quiet_machine(item), looks_at_the_study(item)))


def pytest_runtestloop(session: pytest.Session) -> None:
    looking = [looks_at_the_study(item) for item in session.items]
    if any(looking) and not looking[0] and not session.config.option.collectonly:
        idle = max(1, (os.cpu_count() or 1) - 2)
        session.config.stash[BEGUN] = subprocess.Popen(
            [*STUDY, "--cores", f"{idle}"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def end_the_study(config: pytest.Config) -> None:
    """If it was begun and is not over; what is finished of it stays."""
    if begun := config.stash.get(BEGUN, None):
        begun.terminate()
        begun.wait()


pytest_unconfigure = end_the_study


@pytest.fixture(scope="session")
def embedded_study(pytestconfig: pytest.Config) -> Path:
    """The results folder of the finished embedded study; a run of minutes, unless it is there already."""
    end_the_study(pytestconfig)
    ended = subprocess.run(STUDY, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert ended.returncode == 0, ended.stdout[-10_000:]
    return ROOT / "results" / "embedded"


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    """The tables of the small study after one run in which nothing happened."""
    folder = tmp_path_factory.mktemp("undisturbed")
    small_study.write(folder)
    small_study.finish(small_study.start(folder, "--cores", "2"), folder)
    return small_study.tables(folder)
