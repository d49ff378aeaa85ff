"""What the workflow itself costs: parsing and a dry run of 10,000 combinations, and every small job.

The peer is a bare Snakefile with as many jobs, so `ratio` says how much of the dry run is Snakemake's own. Ends with
an error if parsing or the dry run takes longer than a user should wait, or if parsing imports a heavy package.

A small job is one of `retrieve` in the study of the tests: a table of 300 rows and 16 columns on seventy short texts.
`script_seconds_per_job` is its script from the start of Python to its end, nearly all of it imports;
`overhead_seconds_per_job` is what Snakemake adds before and after. `cpu_seconds_of_parts` is what each part of such a
script takes of a processor, in a process of its own: they are what any job of `retrieve` takes beside scoring, which
is one of them. `main_seconds_per_job` is the CPU time of
Snakemake's own process for every job of a bare Snakefile, at 300 and at 3,000 jobs: it must not grow with the jobs
done, nor be more than a twentieth of what small jobs take. `unmended` is without `lmshape.jobs.scheduler`.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import polars as pl
import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import small_study  # noqa: E402

HEAVY = {"torch", "transformers", "mteb", "scipy", "seaborn", "polars"}
PARSE_LIMIT = 3.0  # seconds
DRY_RUN_LIMIT = 60.0
MAIN_LIMIT = 0.05  # of the CPU time of a study of small jobs
JOBS = (300, 3000)
COMBINATIONS = 10_000
STUDY = {
    "study": "large",
    "title": "Ten thousand combinations",
    "retrieval": {
        "models": {"pythia": {"checkpoints": "all"}, "cerebras-gpt": {}},
        "datasets": {f"task-{number}": {"source": "mteb", "task": "SCIDOCS"} for number in range(6)},
        "ablations": ["original", "random", "crop-64", "pad-6144", "centered"],
        "seeds": [0, 1, 2],
    },
}
BARE = """
rule all:
    input: expand("gathered/{group}", group=range(100))
rule gather:
    input: lambda wildcards: expand("made/{group}/{number}", group=wildcards.group, number=range(COUNT // 100))
    output: "gathered/{group}"
    shell: "touch {output}"
rule make:
    output: "made/{group}/{number}"
    shell: "touch {output}"
"""
PARTS = """
import json, os, sys, time
marks = [("interpreter", time.process_time())]
def mark(part):
    marks.append((part, time.process_time()))
from snakemake import script
mark("preamble")
from lmshape.jobs import job
import polars as pl
from lmshape import results, retrieval
from lmshape.inputs import checkpoints, datasets, tokens
from lmshape.numerics.ablation import ablate
mark("imports")
folder = "results/small"
judgements = datasets.read_judgements(f"{folder}/datasets/topics")
counts = tokens.load(f"{folder}/counts/topics/grown.npz")
table = checkpoints.load(f"{folder}/embeddings/grown/s/step2/input.safetensors")
mark("reading")
panels = ablate(job.function("numerics.ablation.original"), "original", table, counts.vocabulary)
scores = retrieval.score(counts, panels, judgements.qrels, "float32", judgements.drop_self)
mark("scoring")
rows = retrieval.rows(scores, 1000)
mark("bootstrap")
results.save_rows(rows, {"suite": "grown"}, "rows.parquet")
results.write(pl.DataFrame({"query": scores.query_ids, "ndcg_at_10": scores.values["ndcg_at_10"]}), "queries.parquet")
mark("writing")
print(json.dumps({part: after - before for (part, after), (_, before) in zip(marks, [("", 0.0), *marks])}))
"""
TOLD = """
import threading, time
onsuccess: print("main:", time.process_time(), threading.active_count(), flush=True)
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


def small_jobs(folder: Path) -> tuple[float, float]:
    """Seconds that a small job's script takes, and those that the job takes besides, one job at a time."""
    folder.mkdir()
    small_study.write(folder)
    snakemake(folder, "retrieval", "--cores", "1")
    again = ("retrieval", "--forcerun", "retrieve", "--until", "retrieve")
    idle, _ = snakemake(folder, *again, "--dry-run")
    seconds, _ = snakemake(folder, *again, "--cores", "1")
    measured = (folder / "results/small/benchmarks/retrieve").rglob("*.tsv")
    script = [pl.read_csv(path, separator="\t")["s"].item() for path in measured]
    return sum(script) / len(script), (seconds - idle - sum(script)) / len(script)


def parts(folder: Path) -> dict[str, float]:
    """Seconds of CPU of each part of a small job's script, in the folder of the study: of the quickest of a few."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-c", PARTS]
    ended = (subprocess.run(command, cwd=folder, env=environment, capture_output=True) for _ in range(5))
    return min((json.loads(each.stdout) for each in ended), key=lambda found: sum(found.values()))


def bare(folder: Path, jobs: int, more: str = "") -> Path:
    """A new folder with the bare Snakefile of so many jobs, and `more` lines in it."""
    folder.mkdir()
    (folder / "Snakefile").write_text(more + BARE.replace("COUNT", str(jobs)))
    return folder


def main_process(folder: Path, jobs: int, mended: bool = True) -> dict[str, float]:
    """Seconds of CPU that Snakemake's own process takes for each of so many jobs, and its threads at the end."""
    rounds = f"include: {str(ROOT / 'workflow/rules/running.smk')!r}\n" if mended else ""
    profile = ("--workflow-profile", str(ROOT / "profiles/default"))
    said = [
        snakemake(bare(folder / f"{name}-{jobs}-{mended}", count, rounds + TOLD), "--cores", "2", *profile)[1]
        for name, count in (("idle", 100), ("busy", 100 + jobs))
    ]
    idle, busy = (re.search(r"main: (\S+) (\d+)", each).groups() for each in said)
    return {"seconds": (float(busy[0]) - float(idle[0])) / jobs, "threads": int(busy[1])}


def job_counts(said: str) -> dict[str, int]:
    """Jobs by rule, and in `total`, as a dry run lists them."""
    return {rule: int(count) for rule, count in re.findall(r"(?m)^(\w+) +(\d+)$", said)}


def main(folder: Path) -> None:
    study = folder / "study.yaml"
    study.write_text(yaml.safe_dump(STUDY, sort_keys=False))
    chosen = ["--snakefile", str(ROOT / "Snakefile"), "--configfile", str(study)]
    if heavy := heavy_imports(folder, *chosen):
        raise SystemExit(f"parsing the workflow imports {heavy}")
    parse = min(snakemake(folder, *chosen, "--list-rules")[0] for _ in range(3))  # the least disturbed
    seconds, said = snakemake(folder, "retrieval", *chosen, "--dry-run", "--quiet", "rules")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    jobs = job_counts(said)
    if jobs["retrieve"] < COMBINATIONS:
        raise SystemExit(f"the study has {jobs['retrieve']} combinations, fewer than {COMBINATIONS}")
    peer, _ = snakemake(bare(folder / "bare", jobs["total"]), "--dry-run", "--quiet", "rules")
    script, overhead = small_jobs(folder / "small")
    of_parts = {part: float(f"{seconds:.2g}") for part, seconds in parts(folder / "small").items()}
    own = {count: main_process(folder, count) for count in JOBS}
    chained = main_process(folder, JOBS[0], mended=False)
    share = own[JOBS[-1]]["seconds"] / (own[JOBS[-1]]["seconds"] + script)
    measure.report(
        "workflow",
        seconds,
        "a bare Snakefile with as many jobs",
        peer,
        0.0,
        peak,
        jobs=jobs["total"],
        combinations=jobs["retrieve"],
        parse_seconds=parse,
        script_seconds_per_job=script,
        overhead_seconds_per_job=overhead,
        cpu_seconds_of_parts=of_parts,
        main_seconds_per_job={count: each["seconds"] for count, each in own.items()},
        main_threads={count: each["threads"] for count, each in own.items()},
        main_share=share,
        unmended={JOBS[0]: chained},
    )
    for what, found, limit in (("parsing", parse, PARSE_LIMIT), ("the dry run", seconds, DRY_RUN_LIMIT)):
        if found > limit:
            raise SystemExit(f"{what} takes {found:.1f} s, more than {limit:.0f}")
    if share > MAIN_LIMIT:
        raise SystemExit(f"Snakemake's own process takes {share:.0%} of the CPU time of small jobs")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
