"""A study that is ended or killed again and again, or whose disk is full, ends with the tables of an unbroken run."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import small_study

ROOT = Path(__file__).parents[2]
SECONDS = 15  # in which one signal ends a run


class Runs:
    """Runs of the small study in one folder, one after another."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.started: list[subprocess.Popen] = []

    def start(self, unlock: bool = True) -> subprocess.Popen:
        """Start the study again; after a crash, as a user does then: unlock the folder first."""
        if unlock:
            command = [sys.executable, "-m", "snakemake", "--unlock"]
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
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


def end(number: signal.Signals, everybody: bool, times: int = 1) -> Callable[[subprocess.Popen], None]:
    """Ctrl-C in a terminal tells everybody, `kill` and many a scheduler the main process alone."""

    def told(run: subprocess.Popen) -> None:
        for _ in range(times):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, number) if everybody else run.send_signal(number)
        assert run.wait(SECONDS) != 0
        assert not processes(run.pid)

    return told


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


def processes(group: int) -> list[int]:
    """The processes of a group that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, _, of = stat.read_text().rpartition(")")[2].split()[:3]
            found += [int(stat.parent.name)] if int(of) == group and state != "Z" else []
    return found


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


TERM, INT = signal.SIGTERM, signal.SIGINT
KILLS = (kill_everything, kill_workflow, kill_job)
ENDS = tuple(
    end(number, everybody, times) for times in (1, 2) for everybody in (False, True) for number in (TERM, INT)
)


def test_a_study_ended_at_random_moments_ends_with_the_same_tables(runs, undisturbed):
    """By signals, after which nothing is left to unlock, and by what no program can prevent."""
    moments = random.Random(0)
    ways = moments.sample(KILLS + ENDS, len(KILLS + ENDS))
    killed = False
    while ways:
        run = runs.start(unlock=killed)
        killed = ways[-1] in KILLS
        try:
            assert run.wait(moments.uniform(1, 10)) == 0, (runs.folder / "snakemake.log").read_text()
            runs.end_everything()
            shutil.rmtree(runs.folder / "results")  # finished before its moment: once more from the start
        except subprocess.TimeoutExpired:
            ways.pop()(run)
            run.wait()
        assert_whole(runs.folder)
    runs.end_everything()
    runs.finish()
    assert_whole(runs.folder)
    small_study.assert_same(small_study.tables(runs.folder), undisturbed)


BUSY = f"""
import os
from snakemake.scheduling.job_scheduler import JobScheduler

include: {str(ROOT / "workflow/rules/running.smk")!r}

rule all:
    input: expand("made/{{number}}", number=range(40)), "long"

rule make:
    output: "made/{{number}}"
    shell: "touch {{output}}"

rule long:
    output: "long"
    priority: 1
    shell: "touch {{output}}; sleep 600"

take, looks = JobScheduler.update_available_resources, iter(range(20))

def take_and_be_ended(scheduler, jobs):
    if next(looks, None) is None:
        os.kill(os.getpid(), NUMBER)
    take(scheduler, jobs)

JobScheduler.update_available_resources = take_and_be_ended  # it has locked what Snakemake's own handler locks
"""


@pytest.mark.parametrize("number", [TERM, INT], ids=["TERM", "INT"])
def test_a_signal_ends_a_scheduler_at_work(number, tmp_path):
    """Left alone, Snakemake hangs for ever when SIGTERM comes there, which gets likelier the more it has to do."""
    (tmp_path / "Snakefile").write_text(BUSY.replace("NUMBER", str(int(number))))
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--quiet", "rules"]
    run = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        _, said = run.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    assert f"{number.name}: the running jobs are stopped" in said
    assert run.returncode == 1 and not processes(run.pid)
    assert not (tmp_path / "long").exists() and not (tmp_path / ".snakemake/locks").exists()


LOCKED = f"""
import os
from snakemake.scheduling.job_scheduler import JobScheduler

include: {str(ROOT / "workflow/rules/running.smk")!r}

rule all:
    input: "long"

rule long:
    output: "long"
    shell: "touch {{output}}; sleep 600"

make = JobScheduler.__init__

def be_ended_and_make(scheduler, *arguments):
    assert os.listdir(".snakemake/locks")
    os.kill(os.getpid(), {int(TERM)})
    make(scheduler, *arguments)

JobScheduler.__init__ = be_ended_and_make
"""


def test_a_signal_before_the_first_job_leaves_nothing_locked(snakemake, tmp_path):
    (tmp_path / "Snakefile").write_text(LOCKED)
    ended = snakemake(folder=tmp_path)
    assert ended.returncode == 1 and ended.stdout.endswith("ended by SIGTERM\n")
    assert not (tmp_path / "long").exists() and not (tmp_path / ".snakemake/locks").exists()


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
