"""A real SLURM for the tests of this folder, and a study that runs on it while the other tests do."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lab
import pytest
import small_study
from skipping import skip

# Everything of the profile but its patience: a test need not wait for a shared file system.
QUICK = [
    "--profile",
    "profiles/slurm",
    "--slurm-init-seconds-before-status-checks=1",
    "--seconds-between-status-checks=2",
    "--latency-wait=5",
]


@dataclass
class Study:
    """The small study, on its way through the cluster, and the job that ended because its node died."""

    folder: Path
    process: subprocess.Popen
    victim: str | None = None


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which `sbatch`, `squeue` and Snakemake's SLURM executor reach the lab."""
    if reason := lab.install():
        skip(reason)
    with lab.running(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture(scope="session")
def quick() -> list[str]:
    return QUICK


@pytest.fixture(scope="session")
def study(slurm: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """Started first and looked at last: most of its time is Snakemake's waiting between two looks at the queue."""
    folder = tmp_path_factory.mktemp("study")
    small_study.write(folder)
    study = Study(folder, small_study.start(folder, *QUICK, environment=slurm))
    threading.Thread(target=kill_node, args=[slurm, study], daemon=True).start()
    yield study
    if study.process.poll() is None:
        os.killpg(study.process.pid, signal.SIGKILL)
        study.process.wait()


def kill_node(environment: dict[str, str], study: Study) -> None:
    """Take the GPU node down while it trains the study's model and nothing else, and bring it back."""
    options = ["--noheader", "--states=running", "--nodelist=gpu1", "--format=%A %k"]
    while study.process.poll() is None:
        running = lab.command(environment, "squeue", *options).split()
        if running[1:] == ["rule_pretrain_wildcards_grown_s"]:
            lab.command(environment, "scontrol", "update", "NodeName=gpu1", "State=DOWN", "Reason=test")
            time.sleep(1)
            lab.command(environment, "scontrol", "update", "NodeName=gpu1", "State=RESUME")
            study.victim = running[0]
            return
        time.sleep(0.5)
