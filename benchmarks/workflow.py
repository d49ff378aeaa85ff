"""What the workflow itself costs: parsing and a dry run of 10,000 combinations, and every small job.

The peer is a bare Snakefile with as many jobs, so `ratio` says how much of the dry run is Snakemake's own. Ends with
an error if parsing or the dry run takes longer than a user should wait, or if parsing imports a heavy package.
"""

import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import yaml

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "transformers", "mteb", "scipy", "seaborn", "polars"}
PARSE_LIMIT = 3.0  # seconds
DRY_RUN_LIMIT = 60.0
SMALL_JOBS = 20
STUDY = {
    "study": "large",
    "title": "Ten thousand combinations",
    "retrieval": {
        "models": {"pythia": {"checkpoints": "all"}},
        "datasets": {f"task-{number}": {"source": "mteb", "task": "SCIDOCS"} for number in range(6)},
        "ablations": ["original", "random", "crop-64", "pad-6144", "centered"],
        "seeds": [0, 1, 2],
    },
}
BARE = """
rule all:
    input: expand("gathered/{group}", group=range(100))
rule gather:
    input: lambda wildcards: expand("made/{group}/{number}", group=wildcards.group, number=range(JOBS // 100))
    output: "gathered/{group}"
    shell: "touch {output}"
rule make:
    output: "made/{group}/{number}"
    shell: "touch {output}"
"""
SMALL = """
rule all:
    input: expand("made/{number}", number=range(JOBS))
rule make:
    output: "made/{number}"
    log: "logs/{number}"
    benchmark: "benchmarks/{number}"
    script: "job.py"
"""
JOB = """
import time
start = time.perf_counter()
time.sleep(0.05)
open(snakemake.output[0], "w").write(str(time.perf_counter() - start))
"""


def snakemake(folder: Path, *arguments: str, python: tuple[str, ...] = ()) -> tuple[float, str]:
    """Seconds that a Snakemake command takes in `folder`, and what it said."""
    command = [sys.executable, *python, "-m", "snakemake", *arguments]
    seconds, ended = measure.timed(
        lambda: subprocess.run(command, cwd=folder, capture_output=True, text=True)
    )
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)
    return seconds, ended.stdout + ended.stderr


def heavy_imports(folder: Path, *chosen: str) -> set[str]:
    """The heavy packages that parsing the workflow imports, as Python lists its imports."""
    _, said = snakemake(folder, *chosen, "--list-rules", python=("-X", "importtime"))
    modules = re.findall(r"(?m)^import time:.*\| *(\S+)$", said)
    return HEAVY & {name.partition(".")[0] for name in modules}


def overhead(folder: Path) -> float:
    """Seconds that a small job takes besides its own work, one job at a time."""
    (folder / "Snakefile").write_text(SMALL.replace("JOBS", str(SMALL_JOBS)))
    (folder / "job.py").write_text(JOB)
    idle, _ = snakemake(folder, "--dry-run")
    seconds, _ = snakemake(folder, "--cores", "1")
    work = sum(float(path.read_text()) for path in (folder / "made").iterdir())
    return (seconds - idle - work) / SMALL_JOBS


def main(folder: Path) -> None:
    study = folder / "study.yaml"
    study.write_text(yaml.safe_dump(STUDY, sort_keys=False))
    chosen = ["--snakefile", str(ROOT / "Snakefile"), "--configfile", str(study)]
    if heavy := heavy_imports(folder, *chosen):
        raise SystemExit(f"parsing the workflow imports {heavy}")
    parse = min(snakemake(folder, *chosen, "--list-rules")[0] for _ in range(3))  # the least disturbed
    seconds, said = snakemake(folder, "retrieval", *chosen, "--dry-run", "--quiet", "rules")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    jobs = int(re.search(r"(?m)^total +(\d+)$", said)[1])
    (folder / "bare").mkdir()
    (folder / "bare/Snakefile").write_text(BARE.replace("JOBS", str(jobs)))
    peer, _ = snakemake(folder / "bare", "--dry-run", "--quiet", "rules")
    (folder / "small").mkdir()
    measure.report(
        "workflow",
        seconds,
        "a bare Snakefile with as many jobs",
        peer,
        0.0,
        peak,
        jobs=jobs,
        parse_seconds=parse,
        overhead_seconds_per_job=overhead(folder / "small"),
    )
    for what, found, limit in (("parsing", parse, PARSE_LIMIT), ("the dry run", seconds, DRY_RUN_LIMIT)):
        if found > limit:
            raise SystemExit(f"{what} takes {found:.1f} s, more than {limit:.0f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
