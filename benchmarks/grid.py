"""Sixty combinations through the workflow, from counted tokens to the finished table, on two cores.

Five tables of 50,304 x 1,024, four ablations and three seeds, on 5,000 documents of about 200 tokens. The peer is a
loop over the same combinations in one warm process: sentence-transformers' mean pooling with mteb, over tables that
are ablated and drawn before the clock starts. It is measured table by table for as many seconds as the first argument
says (900), and scaled to all tables; `peer_combinations` says how many it was. `difference` is that of nDCG@10.

The workflow's CPU time is parted: `imports_share` is what Python, Snakemake's preamble and the imports of a job's
script take, measured once and taken for each job; `scripts_share` the rest of the jobs' scripts, drawing and scoring;
`snakemake_share` what Snakemake takes besides. A random table is one for all five: `jobs` is how many were scored.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import measure
import numpy as np
import polars as pl
import yaml
from retrieval import ROWS, WIDTH, synthetic
from safetensors.numpy import save_file

from lmshape.inputs import datasets
from lmshape.numerics import ablation
from lmshape.study.ablation_names import Ablation

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "parity")]
import small_study  # noqa: E402
import word_tokenizer  # noqa: E402

TABLES = [f"t{number}" for number in range(5)]
ABLATIONS = ["random", "shuffled", "pad-1536", "pad-2048"]
SEEDS = [0, 1, 2]
SECONDS = 900.0
SUITE = {
    "name": "five",
    "title": "Five tables",
    "architecture": "decoder",
    "tokenizer": "words",
    "sizes": {
        name: {
            "path": f"models/{name}",
            "parameters": 10**8,
            "width": WIDTH,
            "vocabulary_rows": ROWS,
            "layers": 1,
        }
        for name in TABLES
    },
}
STUDY = {
    "study": "grid",
    "title": "Sixty combinations",
    "retrieval": {
        "models": {"five": {}},
        "datasets": {"topics": {"source": "folder", "path": "topics"}},
        "ablations": ABLATIONS,
        "seeds": SEEDS,
    },
}
IMPORTS = """
from snakemake import script
from lmshape.jobs import job
import polars
from lmshape import results, retrieval
from lmshape.inputs import checkpoints, datasets, tokens
"""


def table(name: str) -> np.ndarray:
    return np.random.default_rng(TABLES.index(name)).standard_normal((ROWS, WIDTH), dtype=np.float32)


def write(folder: Path) -> None:
    """The study, its data set and its models, of which there is no more than an embedding table."""
    small_study.write(folder)
    (folder / "suites/grown.yaml").unlink()
    shutil.rmtree(folder / "topics")
    (folder / "suites/five.yaml").write_text(yaml.safe_dump(SUITE, sort_keys=False))
    (folder / "config.yaml").write_text(yaml.safe_dump(STUDY, sort_keys=False))
    datasets.write(synthetic(5000, 50), folder / "topics")
    for name in TABLES:
        model = folder / "models" / name
        model.mkdir(parents=True)
        (model / "config.json").write_text(json.dumps({"model_type": "gpt2", "tie_word_embeddings": True}))
        save_file({"wte.weight": table(name)}, model / "model.safetensors")
        word_tokenizer.save(model, [f"w{number}" for number in range(1, ROWS)])


def snakemake(folder: Path, *targets: str) -> tuple[float, float]:
    """Seconds of a run by the clock, and of processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "snakemake", *targets, "--cores", "2"]
    seconds, ended = measure.timed(
        lambda: subprocess.run(command, cwd=folder, capture_output=True, text=True)
    )
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports() -> float:
    """Seconds of CPU of a job's script until it begins its work: the least of a few."""
    code = f"{IMPORTS}\nimport time; print(time.process_time())"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    runs = (
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True) for _ in range(5)
    )
    return min(float(run.stdout) for run in runs)


def scripts(folder: Path) -> list[float]:
    """Seconds of CPU of each job of the run, from the files in which Snakemake noted them."""
    noted = (folder / "results/grid/benchmarks").rglob("*.tsv")
    rules = ("retrieve", "draw_random_table", "suite_table", "table")
    paths = [path for path in noted if path.relative_to(folder / "results/grid/benchmarks").parts[0] in rules]
    return [pl.read_csv(path, separator="\t")["cpu_time"].item() for path in paths]


def ablated(name: str, ablated_as: str, seed: int) -> np.ndarray:
    """A table under an ablation, as one array."""
    panels = ablation.apply(Ablation.parse(ablated_as), table(name), ROWS, seed)
    return np.hstack([panel if isinstance(panel, np.ndarray) else panel.array() for panel in panels])


def peer(folder: Path, limit: float) -> dict[tuple[str, str, int], tuple[float, float]]:
    """(table, ablation, seed) -> seconds and nDCG@10 of the peer, for whole tables until the limit is passed."""
    from peers import by_mteb, sentence_transformer

    dataset, found, began = datasets.read(folder / "topics"), {}, time.perf_counter()
    by_mteb(sentence_transformer(table("t0"), folder / "models/t0"), dataset)  # warm
    for name in TABLES:
        for kind, seed in product(ABLATIONS, SEEDS):
            rows = ablated(name, kind, seed)
            seconds, scores = measure.timed(
                lambda rows=rows: by_mteb(sentence_transformer(rows, folder / "models/t0"), dataset)
            )
            found[name, kind, seed] = seconds, scores["ndcg_at_10"]
        if time.perf_counter() - began > limit:
            break
    return found


def main(folder: Path, limit: float) -> None:
    write(folder)
    results = folder / "results/grid"
    embeddings = [f"{results}/embeddings/five/{name}/main/input.safetensors" for name in TABLES]
    compared = [f"{results}/compared_tokenizers/five/{name}.json" for name in TABLES[1:]]
    ready = [f"{results}/counts/topics/words.npz", *embeddings, *compared]
    snakemake(folder, *(str(Path(path).relative_to(folder)) for path in ready))
    seconds, cpu = snakemake(folder, "retrieval")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # of any process of the run
    jobs = scripts(folder)
    scored = pl.read_parquet(results / "tables/retrieval.parquet").filter(metric="ndcg_at_10")
    values = {
        (size, kind, seed): x
        for size, kind, seed, x in scored.select("size", "ablation", "seed", "value").iter_rows()
    }
    theirs = peer(folder, limit)
    ours = {
        key: values.get(key, values.get((TABLES[0], *key[1:]))) for key in theirs
    }  # one random table for all
    differences = [abs(ours[key] - value) for key, (_, value) in theirs.items()]
    peer_seconds = (
        sum(seconds for seconds, _ in theirs.values())
        * len(TABLES)
        * len(ABLATIONS)
        * len(SEEDS)
        / len(theirs)
    )
    fixed = imports() * len(jobs)
    measure.report(
        "grid",
        seconds,
        "sentence-transformers with mteb, in a loop",
        peer_seconds,
        max(differences),
        peak,
        combinations=len(TABLES) * len(ABLATIONS) * len(SEEDS),
        jobs=scored.height,
        peer_combinations=len(theirs),
        cpu_seconds=cpu,
        imports_share=fixed / cpu,
        scripts_share=(sum(jobs) - fixed) / cpu,
        snakemake_share=(cpu - sum(jobs)) / cpu,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "grid").mkdir()
        main(Path(scratch) / "grid", float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
