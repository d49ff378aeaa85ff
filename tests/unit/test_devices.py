"""Claims of GPUs by real processes, from lists of devices that do not exist."""

import errno
import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmshape.errors import LmshapeError
from lmshape.jobs import devices

JOB = """
import json, logging, os, signal, sys
from pathlib import Path
from lmshape.jobs import devices
logging.basicConfig(level=logging.INFO, format="%(message)s")
count, known, folder, forks = json.loads(sys.argv[1])
name = devices.claim(count, installed=lambda: known, folder=Path(folder))
child = os.fork() if forks else None
if child == 0:
    signal.pause()
heavy = sorted({"torch", "numpy"} & set(sys.modules))
visible, order = map(os.environ.get, ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"))
print(json.dumps([name, visible, child, heavy, order]), flush=True)
sys.stdin.read()
"""


class Jobs:
    """Starts processes that claim devices and hold them until told, or killed."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.running: list[subprocess.Popen] = []

    def start(
        self, count: int, known: list[str], forks: bool = False, **environment: str
    ) -> subprocess.Popen:
        names = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", *devices.SCHEDULER_VARIABLES}
        clean = {name: value for name, value in os.environ.items() if name not in names}
        job = subprocess.Popen(
            [sys.executable, "-c", JOB, json.dumps([count, known, str(self.folder), forks])],
            env=clean | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(job)
        return job

    def claim(self, count: int, known: list[str], **environment: str) -> tuple[str, str | None]:
        """Start a job and wait for its answer: torch's device, CUDA_VISIBLE_DEVICES."""
        return answer(self.start(count, known, **environment))


def answer(job: subprocess.Popen) -> tuple[str, str | None]:
    name, visible, _, heavy, _ = json.loads(job.stdout.readline())
    assert heavy == []
    return name, visible


def assert_waits(job: subprocess.Popen) -> None:
    """A job logs one line when it finds no device free, and another when it has claimed one."""
    assert job.stderr.readline().startswith("waiting for")


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path)
    yield jobs
    for job in jobs.running:
        job.kill()
        job.wait()


def test_trap_5_jobs_at_once_get_devices_of_their_own_and_the_next_one_waits(jobs):
    known = ["GPU-a", "GPU-b"]
    first, second = jobs.start(1, known), jobs.start(1, known)
    claimed = {answer(first), answer(second)}
    assert claimed == {("cuda", "GPU-a"), ("cuda", "GPU-b")}
    third = jobs.start(1, known)
    assert_waits(third)
    first.stdin.close()  # it ends by itself
    assert first.wait() == 0
    assert answer(third) in claimed


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_trap_5_a_killed_job_gives_its_device_back(jobs, how):
    first = jobs.start(1, ["GPU-a"])
    assert answer(first) == ("cuda", "GPU-a")
    second = jobs.start(1, ["GPU-a"])
    assert_waits(second)
    first.send_signal(how)
    assert first.wait() == -how
    assert answer(second) == ("cuda", "GPU-a")


def test_twelve_jobs_in_a_hurry_never_share_a_device(tmp_path):
    """Each holds its device for a moment and would see another's mark if they shared it."""
    job = """
import os, sys, time
from pathlib import Path
from lmshape.jobs import devices
folder = Path(sys.argv[1])
devices.claim(int(sys.argv[2]), installed=lambda: ["GPU-a", "GPU-b", "GPU-c"], folder=folder)
marks = [folder / f"mark-{name}" for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",")]
for mark in marks:
    mark.touch(exist_ok=False)
time.sleep(0.05)
for mark in marks:
    mark.unlink()
"""
    command = [sys.executable, "-c", job, str(tmp_path)]
    started = [subprocess.Popen([*command, str(1 + number % 2)]) for number in range(12)]
    assert [process.wait(timeout=60) for process in started] == [0] * 12


def test_several_devices_are_claimed_together(jobs):
    known = ["GPU-a", "GPU-b", "GPU-c"]
    assert jobs.claim(2, known) == ("cuda", "GPU-a,GPU-b")
    pair = jobs.start(2, known)
    assert_waits(pair)
    assert jobs.claim(1, known) == ("cuda", "GPU-c")  # the waiting job keeps nothing for itself


def test_a_device_stays_claimed_while_a_fork_of_the_job_lives(jobs):
    job = jobs.start(1, ["GPU-a"], forks=True)
    child = json.loads(job.stdout.readline())[2]
    job.kill()
    job.wait()
    waiting = jobs.start(1, ["GPU-a"])
    assert_waits(waiting)
    os.kill(child, signal.SIGKILL)
    assert answer(waiting) == ("cuda", "GPU-a")


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("1", ["1"]),
        ("1,0", ["1", "0"]),
        ("GPU-b", ["GPU-b"]),
        ("GPU-bb", ["GPU-bb"]),  # the beginning of an identifier
        ("0,-1,1", ["0"]),  # CUDA stops at the first entry that names no device
        ("0,7,1", ["0"]),
    ],
)
def test_cuda_visible_devices_limits_the_choice(jobs, setting, expected):
    known = ["GPU-a0", "GPU-bb1"]
    for name in expected:
        assert jobs.claim(1, known, CUDA_VISIBLE_DEVICES=setting) == ("cuda", name)
    assert_waits(jobs.start(1, known, CUDA_VISIBLE_DEVICES=setting))


def test_workflows_that_name_a_device_differently_still_share_its_lock(jobs):
    known = ["GPU-a", "GPU-b"]
    assert jobs.claim(1, known, CUDA_VISIBLE_DEVICES="1") == ("cuda", "1")
    assert_waits(jobs.start(1, known, CUDA_VISIBLE_DEVICES="GPU-b"))
    assert jobs.claim(1, known) == ("cuda", "GPU-a")


@pytest.mark.parametrize(
    ("environment", "order"),
    [
        ({"CUDA_VISIBLE_DEVICES": "1"}, "PCI_BUS_ID"),
        ({"CUDA_VISIBLE_DEVICES": "1", "SLURM_JOB_ID": "7"}, "PCI_BUS_ID"),
        ({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, "FASTEST_FIRST"),
    ],
)
def test_trap_5_cuda_numbers_devices_as_the_list_that_locks_go_by_unless_told_otherwise(
    jobs, environment, order
):
    """By default CUDA counts from the fastest, so that number 1 would be another device than the one locked."""
    job = jobs.start(1, ["GPU-slow", "GPU-fast"], **environment)
    assert json.loads(job.stdout.readline())[-1] == order


@pytest.mark.parametrize("setting", ["", "-1", "NoDevFiles"])
def test_hidden_devices_are_not_used(jobs, setting):
    assert jobs.claim(1, ["GPU-a"], CUDA_VISIBLE_DEVICES=setting) == ("cpu", setting)


def test_without_a_gpu_the_job_runs_on_the_cpu_and_says_so_once(jobs):
    job = jobs.start(1, [])
    assert answer(job) == ("cpu", None)
    assert job.communicate()[1].count("runs on the CPU") == 1


def test_more_devices_than_there_are_is_an_error_that_gives_both_numbers(jobs):
    job = jobs.start(3, ["GPU-a", "GPU-b"])
    assert "LmshapeError: 3 GPUs asked for, 2 usable" in job.communicate()[1]


def test_under_slurm_the_schedulers_choice_is_used_as_it_is(jobs):
    """Two jobs on one node may both see their device as number 0."""
    job = {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "0"}
    assert jobs.claim(1, ["GPU-a"], **job) == ("cuda", "0")
    assert jobs.claim(1, ["GPU-a"], **job) == ("cuda", "0")


def test_under_slurm_jobs_that_share_an_allocation_get_devices_of_their_own(jobs):
    allocation = {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "0,1"}
    known = ["GPU-a", "GPU-b"]
    assert {jobs.claim(1, known, **allocation) for _ in range(2)} == {("cuda", "0"), ("cuda", "1")}


def test_under_slurm_a_job_that_was_given_no_gpu_takes_none(jobs):
    assert jobs.claim(1, ["GPU-a"], SLURM_JOB_ID="7") == ("cpu", None)


def test_no_gpu_asked_for():
    assert devices.claim(0, installed=lambda: ["GPU-a"]) == "cpu"


def test_a_claim_after_torch_was_imported_is_refused(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(LmshapeError, match="before torch is imported"):
        devices.claim(1, installed=lambda: ["GPU-a"], folder=tmp_path)


def test_a_second_claim_is_refused_instead_of_waiting_for_the_first(monkeypatch, tmp_path):
    monkeypatch.setattr(devices, "_held", [0])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(LmshapeError, match="once"):
        devices.claim(1, installed=lambda: ["GPU-a"], folder=tmp_path)


def test_the_drivers_list_with_divided_and_whole_gpus():
    printed = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1a)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2b)
  MIG 1g.5gb      Device  0: (UUID: MIG-3c)
  MIG 1g.5gb      Device  1: (UUID: MIG-4d)
GPU 2: NVIDIA A100-SXM4-40GB (UUID: GPU-5e)
"""
    assert devices._listed(printed) == ["GPU-1a", "MIG-3c", "MIG-4d", "GPU-5e"]
    assert devices._listed("No devices were found\n") == []


@pytest.mark.parametrize(
    ("build", "program", "expected"),
    [
        ("cuda = '12.8'", "echo 'GPU 0: A (UUID: GPU-1a)'", ["GPU-1a"]),
        ("cuda = None", "echo 'GPU 0: A (UUID: GPU-1a)'", []),  # a torch for CPUs can use none
        ("cuda = '12.8'", "echo 'no driver' >&2; exit 9", []),
        ("cuda = '12.8'", None, []),
    ],
)
def test_installed_asks_the_driver_and_torchs_build(tmp_path, monkeypatch, build, program, expected):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "version.py").write_text(build)
    if program:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{program}\n")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=None)
    spec = importlib.util.spec_from_file_location("torch", package / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert devices.installed() == expected


def test_a_machine_without_room_for_locks_is_told_of(monkeypatch):
    def refuse(*arguments, **names):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(devices.Path, "mkdir", refuse)
    with pytest.raises(
        LmshapeError, match="cannot be made .Read-only file system., and GPUs are claimed in it"
    ):
        devices._lock_folder()


def test_the_lock_folder_is_this_users_and_private():
    folder = devices._lock_folder()
    assert (folder.stat().st_uid, stat.S_IMODE(folder.stat().st_mode)) == (os.getuid(), 0o700)
