"""Jobs of every fate through profiles/slurm: what runs where, what is reported, and what the next run repeats."""

import json
import re
import shutil
import subprocess
import sys
import threading
from itertools import combinations
from pathlib import Path

import lab
import pytest

ROOT = Path(__file__).parents[2]
SNAKEFILE = """
NAMES = ["failing", "cancelled", "endless"]

rule all:
    input:
        expand("cpu/{name}.json", name=range(2)),
        expand("gpu/{name}.json", name=range(4)),
        expand("retrieve/{name}.json", name=range(6)),
        expand("grouped/{name}.json", name=range(4)),
        "hungry.json",
        expand("after/{name}.json", name=NAMES),

rule cpu:
    output: "cpu/{name}.json"
    resources: mem_mb=600, runtime=3
    params: does="nothing"
    script: "job.py"

rule gpu:
    output: "gpu/{name}.json"
    resources: mem_mb=600, runtime=3, gpu=1
    params: does="claim"
    script: "job.py"

rule retrieve:  # a name that the profile groups
    output: "retrieve/{name}.json"
    resources: mem_mb=600, runtime=10
    params: does="nothing"
    script: "job.py"

rule suite_table:  # another
    output: "grouped/{name}.json"
    resources: mem_mb=600
    retries: 0
    params: does="fail as the third"
    script: "job.py"

rule hungry:
    output: "hungry.json"
    resources: mem_mb=lambda wildcards, attempt: 700 * attempt, runtime=3
    params: does="eat 700 MB"
    script: "job.py"

rule doomed:
    output: "doomed/{name}.json"
    resources: mem_mb=600, runtime=1
    retries: 0
    params: does="{name}"
    script: "job.py"

rule after:
    input: "doomed/{name}.json"
    output: "after/{name}.json"
    resources: mem_mb=600, runtime=3
    params: does="nothing"
    script: "job.py"
"""
JOB = """
import json, os, sys, time
from pathlib import Path
from lmshape.jobs import devices

def claim():
    return devices.claim(snakemake.resources.gpu, installed=lambda: ["GPU-a", "GPU-b"])

def hold():
    "Until another GPU job was there at the same time, once; no longer than a minute, if none comes."
    mine, met = Path(f"holding-{os.environ['SLURM_JOB_ID']}"), Path("met")
    mine.touch()
    end = time.time() + 60
    while not met.exists() and time.time() < end:
        if len(list(Path().glob("holding-*"))) > 1:
            met.touch()
        time.sleep(0.1)
    time.sleep(4)
    mine.unlink()

start, does, device = time.time(), snakemake.params.does, None
if does == "claim":
    device = claim()
    hold()
elif does == "eat 700 MB":
    food = bytearray(os.urandom(1)) * 700_000_000
    time.sleep(3)
elif not Path("mended").exists():
    if does == "failing":
        sys.exit("this combination fails")
    if does in ("cancelled", "endless"):
        time.sleep(1000)
    if does == "fail as the third" and len(list(Path("grouped").iterdir())) == 2:
        sys.exit("this job of a group fails")
row = {
    "start": start,
    "end": time.time(),
    "device": device,
    "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
    "job": os.environ["SLURM_JOB_ID"],
    "node": os.environ["SLURMD_NODENAME"],
}
Path(snakemake.output[0]).write_text(json.dumps(row))
"""


class Run:
    """A folder with the small workflow, and what became of its first run."""

    def __init__(self, folder: Path, environment: dict[str, str], options: list[str]):
        self.folder = folder
        self.environment = environment
        self.options = options
        (folder / "Snakefile").write_text(SNAKEFILE)
        (folder / "job.py").write_text(JOB)
        shutil.copytree(ROOT / "profiles", folder / "profiles")

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "snakemake", *self.options, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def rows(self, pattern: str) -> list[dict]:
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob(pattern))]


@pytest.fixture(scope="module")
def run(slurm, quick, study, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("fates"), slurm, quick)
    canceller = threading.Thread(
        target=lab.cancel_when, args=[slurm, "running", "rule_doomed_wildcards_cancelled"], daemon=True
    )
    canceller.start()
    run.first = run.snakemake()
    canceller.join()
    return run


def test_jobs_run_on_the_nodes_that_they_ask_for(run):
    assert {row["node"] for row in run.rows("cpu/*.json")} == {"cpu1"}
    assert {row["node"] for row in run.rows("gpu/*.json")} == {"gpu1"}
    assert len(run.rows("cpu/*.json")) == 2
    assert len(run.rows("gpu/*.json")) == 4


def test_two_gpu_jobs_at_most_run_at_once_and_on_different_devices(run):
    rows = run.rows("gpu/*.json")
    assert {(row["device"], row["visible"]) for row in rows} == {("cuda", "0"), ("cuda", "1")}
    together = [(a, b) for a, b in combinations(rows, 2) if a["start"] < b["end"] and b["start"] < a["end"]]
    assert together, "no two GPU jobs ran at once"
    assert all(a["visible"] != b["visible"] for a, b in together)


def test_a_job_that_outgrows_its_memory_gets_more_at_its_second_attempt(run):
    logs = (run.folder / ".snakemake/slurm_logs/rule_hungry").glob("*.log")  # kept of jobs that failed
    failed = {log.stem: log.read_text() for log in logs}
    assert len(failed) == 1
    (first,) = failed
    assert "exceeded memory limit" in failed[first]
    assert "mem=700M" in lab.finished(run.environment)[first]["Tres"]
    (row,) = run.rows("hungry.json")
    assert "mem=1400M" in lab.finished(run.environment)[row["job"]]["Tres"]


def test_short_jobs_share_a_submission_and_run_one_after_another(run):
    rows = run.rows("retrieve/*.json")
    assert len(rows) == 6
    assert len({row["job"] for row in rows}) == 1
    assert all(a["end"] <= b["start"] or b["end"] <= a["start"] for a, b in combinations(rows, 2))
    submitted = lab.finished(run.environment)[rows[0]["job"]]
    assert submitted["TimeLimit"] == "60"  # six times the ten minutes of one
    assert "cpu=1,mem=600M" in submitted["Tres"]


@pytest.mark.parametrize(
    ("name", "status"), [("failing", "FAILED"), ("cancelled", "CANCELLED"), ("endless", "TIMEOUT")]
)
def test_a_job_that_fails_is_reported_by_its_combination(run, name, status):
    assert run.first.returncode == 1
    errors = re.split(r"(?m)^Error in rule ", run.first.stdout)[1:]
    mine = [error for error in errors if f"output: doomed/{name}.json" in error]
    assert len(mine) == 1
    assert f"SLURM status is: '{status}'" in mine[0]


def test_nothing_of_a_failed_group_is_kept(run):
    """Snakemake records all its jobs as if they had ended, so that older results would be taken for theirs."""
    assert "Error in group suite_table" in run.first.stdout
    assert run.rows("grouped/*.json") == []


def test_the_next_run_repeats_only_what_failed_and_what_follows(run):
    (run.folder / "mended").touch()
    names = ("failing", "cancelled", "endless")
    wanted = {f"{folder}/{name}.json" for folder in ("doomed", "after") for name in names}
    wanted |= {f"grouped/{number}.json" for number in range(4)}
    dry = run.snakemake("--dry-run")
    assert set(re.findall(r"(?m)^ *output: (.*)$", dry.stdout)) == wanted
    done = {path: path.stat().st_mtime_ns for path in run.folder.glob("*/*.json")}
    again = run.snakemake()
    assert again.returncode == 0, again.stdout
    assert {path for path in done if path.stat().st_mtime_ns != done[path]} == set()
    assert all((run.folder / path).exists() for path in wanted)
