"""One signal ends a run whose jobs are on a cluster, and cancels them, though the next look at the queue is far."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import lab
import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 15  # in which one signal ends a run
SNAKEFILE = f"""
include: {str(ROOT / "workflow/rules/running.smk")!r}

rule all:
    input: expand("{{name}}", name=range(3))

rule endless:
    output: "{{name}}"
    resources: mem_mb=600, runtime=10
    shell: "touch {{output}}; sleep 600"
"""


def ours(environment: dict[str, str], state: str) -> list[str]:
    """The jobs of this test in the queue."""
    listed = lab.command(environment, "squeue", "--noheader", f"--states={state}", "--format=%A %k")
    return [line.split()[0] for line in listed.splitlines() if "rule_endless" in line]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_a_signal_ends_a_run_on_a_cluster_and_cancels_its_jobs(number, slurm, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/slurm"]
    run = subprocess.Popen(
        command, cwd=tmp_path, env=slurm, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        while not ours(slurm, "running") and run.poll() is None:
            time.sleep(0.2)
        run.send_signal(number)
        said, _ = run.communicate(timeout=SECONDS)
    finally:
        run.kill()
    assert run.returncode == 1 and f"{number.name}: the running jobs are stopped" in said, said
    for _ in range(100):
        if not (left := ours(slurm, "pending,running,completing")):
            break
        time.sleep(0.2)
    assert left == []
    assert not (tmp_path / ".snakemake/locks").exists()
