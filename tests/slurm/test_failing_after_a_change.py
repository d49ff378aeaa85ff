"""After a change of settings, jobs that failed before they began leave no older result that counts as new."""

import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import lab

ROOT = Path(__file__).parents[2]
NAMES = {"held", *(f"grouped/{name}" for name in range(3))}
SNAKEFILE = """
rule all:
    input: "held", expand("grouped/{name}", name=range(3))

rule held:
    output: "held"
    resources: mem_mb=600, slurm_extra="--begin=now+1hour"
    retries: 0
    params: setting=config["setting"]
    shell: "echo {params.setting} > {output}"

rule retrieve:  # a name that the profile groups
    output: "grouped/{name}"
    resources: mem_mb=600
    retries: 0
    params: setting=config["setting"]
    shell: "test ! -e broken && echo {params.setting} > {output}"
"""


def snakemake(folder: Path, environment: dict[str, str], setting: int, *options: str) -> str:
    """Run the small workflow; returns what it said."""
    command = [sys.executable, "-m", "snakemake", "--config", f"setting={setting}", *options]
    return subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout


def planned(said: str) -> set[str]:
    return set(re.findall(r"(?m)^ *output: (.*)$", said))


def test_jobs_that_fail_before_they_begin_are_done_by_the_next_run(slurm, quick, study, tmp_path):
    """One is cancelled in the queue; of a group, the first fails, and the others are never started."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    snakemake(tmp_path, slurm, 1, "--cores", "1")
    assert planned(snakemake(tmp_path, slurm, 1, "--dry-run")) == set()
    (tmp_path / "broken").touch()
    canceller = threading.Thread(target=lab.cancel_when, args=[slurm, "pending", "rule_held"], daemon=True)
    canceller.start()
    said = snakemake(tmp_path, slurm, 2, *quick)
    canceller.join()
    assert "SLURM status is: 'CANCELLED'" in said
    assert "Error in group retrieve" in said
    assert planned(snakemake(tmp_path, slurm, 2, "--dry-run")) == NAMES
