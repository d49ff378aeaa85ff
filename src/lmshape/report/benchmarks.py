"""What every job of a study took, from the files in which Snakemake notes it: one row per job.

Snakemake looks at a job's processes every half second, after about a quarter of a minute every thirty seconds.
Peak memory and CPU time are what it saw, so the truth may lie above, and a job of less than a second has none.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

SAMPLED_SECONDS = 1.0  # a job shorter than this was seen while it started, if at all
SCHEMA = {
    "rule": pl.String,
    "suite": pl.String,
    "size": pl.String,
    "parameters": pl.Int64,
    "checkpoint": pl.String,
    "side": pl.String,
    "dataset": pl.String,
    "task": pl.String,
    "tokenizer": pl.String,
    "ablation": pl.String,
    "seed": pl.String,
    "job": pl.String,  # the file's path: rule and wildcards
    "seconds": pl.Float64,  # by the clock
    "cpu_seconds": pl.Float64,  # user and system, of all the job's processes
    "peak_memory_mib": pl.Float64,  # resident, of all the job's processes at once
}


def collect(
    folder: str | Path, rules: Mapping[str, str], parameters: Mapping[tuple[str, str], int]
) -> pl.DataFrame:
    """The rows of all benchmark files below `folder` that belong to the study, by rule and then by name.

    `rules`: rule -> the path of its benchmark files, with wildcards. `parameters`: (suite, size) -> the model's
    number of parameters. Left over files of other rules, or of models that the study no longer has, are not read.
    """
    files = sorted(Path(folder).rglob("*.tsv"))
    rows = []
    for rule, path in rules.items():
        for file, names in _matching(files, path):
            model = (names.get("suite"), names.get("size"))
            if None in model or model in parameters:
                job = file.relative_to(folder).with_suffix("").as_posix()
                facts = {"rule": rule, "parameters": parameters.get(model), "job": job}
                rows.append(names | facts | read(file))
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)


def _matching(files: Iterable[Path], path: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """The files whose names `path` gives, each with the wildcards in it."""
    pattern = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path)))
    for file in files:
        if found := pattern.fullmatch(file.as_posix()):
            yield file, found.groupdict()


def read(path: Path) -> dict[str, float | None]:
    """Seconds, CPU seconds and peak memory (MiB) of one job; null where Snakemake saw nothing of it.

    A file without a whole row, as Snakemake leaves it when it is killed or the disk full, says as little.
    """
    lines = [line.split("\t") for line in path.read_text().splitlines()[:2]]
    if len(lines) < 2 or len(lines[0]) != len(lines[1]):
        return {"seconds": None, "cpu_seconds": None, "peak_memory_mib": None}
    found = dict(zip(*lines, strict=True))
    seconds = float(found["s"])
    seen = seconds >= SAMPLED_SECONDS
    return {
        "seconds": seconds,
        "cpu_seconds": _number(found["cpu_time"]) if seen else None,
        "peak_memory_mib": _number(found["max_rss"]) if seen else None,
    }


def _number(text: str) -> float | None:
    return None if text in ("NA", "-") else float(text)
