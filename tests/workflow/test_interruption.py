"""A workflow that is killed again and again, or runs out of disk, ends with the tables of an undisturbed run."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import small_study

KILLS = 10


class Runs:
    """Runs of the small study in one folder, one after another."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.started: list[subprocess.Popen] = []

    def start(self) -> subprocess.Popen:
        """Start the study again, as a user does after a crash: unlock the folder, then run."""
        subprocess.run(
            [sys.executable, "-m", "snakemake", "--unlock"], cwd=self.folder, check=True, capture_output=True
        )
        self.started.append(small_study.start(self.folder, "--cores", "2"))
        return self.started[-1]

    def finish(self) -> str:
        return small_study.finish(self.start(), self.folder)

    def end_everything(self) -> None:
        """Kill what is left of all runs: a job outlives the workflow that started it."""
        for run in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    small_study.write(tmp_path)
    runs = Runs(tmp_path)
    yield runs
    runs.end_everything()


def kill_everything(run: subprocess.Popen) -> None:
    """What a power cut does."""
    os.killpg(run.pid, signal.SIGKILL)


def kill_workflow(run: subprocess.Popen) -> None:
    """Its jobs go on, beside those of the next run."""
    run.kill()


def kill_job(run: subprocess.Popen) -> None:
    """Kill the processes of one job, as soon as one is running; the workflow sees it fail."""
    while not (jobs := children(run.pid)) and run.poll() is None:
        time.sleep(0.05)
    for child in jobs[:1]:
        for process in [child, *children(child)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def children(process: int) -> list[int]:
    """The processes that a process started, and those that they did."""
    direct = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may have ended
        for task in Path(f"/proc/{process}/task").iterdir():
            direct += [int(child) for child in (task / "children").read_text().split()]
    return direct + [grandchild for child in direct for grandchild in children(child)]


def assert_whole(folder: Path) -> None:
    """Every result that has its final name can be read."""
    for path in folder.glob("results/**/*.parquet"):
        pl.read_parquet(path)
    for path in folder.glob("results/**/*.npz"):
        with np.load(path) as arrays:
            assert all(arrays[name].nbytes >= 0 for name in arrays)


def test_a_study_killed_at_ten_random_moments_ends_with_the_same_tables(runs, undisturbed):
    moments, kills = random.Random(0), cycle((kill_everything, kill_workflow, kill_job))
    killed = 0
    while killed < KILLS:
        run = runs.start()
        try:
            assert run.wait(moments.uniform(1, 12)) == 0, (runs.folder / "snakemake.log").read_text()
            runs.end_everything()
            shutil.rmtree(runs.folder / "results")  # finished before its moment: once more from the start
        except subprocess.TimeoutExpired:
            next(kills)(run)
            run.wait()
            killed += 1
        assert_whole(runs.folder)
    runs.end_everything()
    runs.finish()
    assert_whole(runs.folder)
    small_study.assert_same(small_study.tables(runs.folder), undisturbed)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1000 KB where the results go."""
    results = tmp_path / "results"
    results.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1000k", "tmpfs", str(results)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root, and a machine that allows it")
    yield results
    subprocess.run(["umount", "--lazy", str(results)], check=True)


def test_a_full_disk_stops_the_study_and_room_lets_it_end_with_the_same_tables(small_disk, runs, undisturbed):
    """Jobs cannot always say why they failed: their logs are on the full disk, too."""
    assert runs.start().wait() != 0
    assert "Error in rule" in (runs.folder / "snakemake.log").read_text()
    assert_whole(runs.folder)
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    runs.finish()
    small_study.assert_same(small_study.tables(runs.folder), undisturbed)
