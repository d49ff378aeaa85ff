"""Results know what they were made of, all the way up, whether the files in between are there or not.

What must run follows from the graph of jobs alone: what comes after what changed, and before that, what is not there.
"""

import contextlib
import json
import os
import random
import re
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from stub_study import STUB, USERS_FILES, Copy, PlannedJob

ROOT = Path(__file__).parents[2]
# Inputs that must be there, and no more, and what reads them; what scripts those count as their own that make such
ORDER_ONLY = (("study.yaml", "tables/benchmarks"), ("random_tables/", ""), ("random_baseline/", "retrieval/"))
COUNTED = {"draw_random_table": {"draw_random_table", "random_baseline"}}


def scripts() -> dict[str, str]:
    """Rule -> its script."""
    texts = [path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk"))]
    parts = [part for text in texts for part in re.split(r"(?m)^rule ", text)[1:]]
    found = {part.partition(":")[0]: re.findall(r'script:\n        ".*/(\w+)\.py"', part) for part in parts}
    return {rule: names[0] for rule, names in found.items() if names}


SCRIPTS = scripts()


def order_only(path: str, reader: str) -> bool:
    return any(path.startswith(made) and reader.startswith(by) for made, by in ORDER_ONLY)


class Graph:
    """All jobs of a study, told by their first outputs."""

    def __init__(self, jobs: Iterable[PlannedJob], results: Path):
        self.jobs = {job.outputs[0]: job for job in jobs if job.outputs}
        self.targets = {path for job in jobs if not job.outputs for path in job.inputs}
        self.results = results
        self.maker = {path: first for first, job in self.jobs.items() for path in job.outputs}

    def between(self) -> set[str]:
        """The outputs on the way to what the study's targets ask for."""
        paths = {path for job in self.jobs.values() for path in job.outputs}
        return {path for path in paths - self.targets if self.after(self.maker[path])}

    def of_script(self, script: str) -> set[str]:
        """The jobs that count a script as their code."""
        scripts = COUNTED.get(script, {script})
        return {first for first, job in self.jobs.items() if SCRIPTS[job.rule] in scripts}

    def after(self, first: str) -> set[str]:
        """The jobs that read what a job makes."""
        outputs = set(self.jobs[first].outputs)
        return {
            other
            for other, job in self.jobs.items()
            if any(not order_only(path, other) for path in outputs & set(job.inputs))
        }

    def plan(self, changed: Iterable[str], results: Path | None = None) -> set[str]:
        """What a run must do: jobs, those after them, and those whose outputs it needs and that are not there."""
        results = results or self.results
        waiting, planned = list(changed), set()
        while waiting:
            first = waiting.pop()
            if first not in planned:
                planned.add(first)
                missing = [path for path in self.jobs[first].inputs if not (results / path).exists()]
                waiting += [*self.after(first), *(self.maker[path] for path in missing)]
        return planned


@pytest.fixture(scope="module")
def graph(every_rule: Copy) -> Graph:
    return Graph(every_rule.jobs("all", "--forceall"), every_rule.results)


def record_of(copy: Copy, output: str) -> Path:
    """Where Snakemake keeps what it knows of an output."""
    key = urlsafe_b64encode(f"results/{copy.results.name}/{output}".encode()).decode()
    return copy.folder / ".snakemake/metadata" / key


@contextlib.contextmanager
def lost(copy: Copy, outputs: Iterable[str], records: bool = True) -> Iterator[None]:
    """Without some outputs for a while, and without what Snakemake knows of them if `records` are lost too."""
    with contextlib.ExitStack() as back:
        for output in outputs:
            for path in (copy.results / output, *([record_of(copy, output)] if records else ())):
                if path.exists():
                    aside = path.with_name(f"{path.name}.aside")
                    back.callback(shutil.move, path.rename(aside), path)
        yield


def test_the_study_has_jobs_of_every_rule(graph):
    assert {job.rule for job in graph.jobs.values()} == SCRIPTS.keys()


@pytest.mark.parametrize("script", sorted({*SCRIPTS.values()}))
def test_a_change_is_seen_by_all_that_follows_though_what_it_made_stale_is_gone(every_rule, graph, script):
    """As after a run in which every job of the script failed: what those had made is no more."""
    jobs = graph.of_script(script)
    with (
        every_rule.changed(f"scripts/{script}.py", ("import pathlib", "import pathlib\n\nCHANGED = 1")),
        lost(every_rule, {path for first in jobs for path in graph.jobs[first].outputs}),
    ):
        assert every_rule.stale() == graph.plan(jobs)


@pytest.fixture
def again(every_rule: Copy, tmp_path: Path) -> Copy:
    """The whole checkout in another place, with its dates, for tests that run jobs."""
    shutil.copytree(every_rule.folder, tmp_path / "again", symlinks=True)
    return every_rule.at(tmp_path / "again")


def test_a_failed_job_leaves_nothing_that_counts_as_finished_and_taking_the_change_back_repeats_nothing(
    again, graph
):
    jobs = graph.of_script("embedding_table")
    table = "embeddings/pythia/s/main/input.safetensors"
    with again.changed("scripts/embedding_table.py", (STUB, "\nraise SystemExit(1)\n")):
        again.snakemake(f"results/every/{table}", fails=True)
        assert not (again.results / table).exists()
        assert again.stale() == graph.plan(jobs, again.results)
    assert again.stale() == set()  # all results were made with this code, as was the table that is gone
    with again.changed("scripts/embedding_table.py", ("import pathlib", "import pathlib\n\nCHANGED = 1")):
        assert again.stale() == graph.plan(jobs, again.results)


def test_no_file_on_the_way_is_missed_after_a_run_that_failed_and_a_change_that_was_taken_back(again, graph):
    """Snakemake keeps a record of what failed, with the settings that it failed with."""
    between = graph.between()
    assert len(between) > 50
    for path in between:
        remove(again.results / path)
        record = record_of(again, path)
        record.write_text(json.dumps(json.loads(record.read_text()) | {"params": ["'others'"]}))
    assert again.stale() == set()


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def test_a_run_of_some_rules_alone_knows_all_that_results_were_made_of(every_rule, graph):
    """As those that gather what there is after failures."""
    gathering = ("suite_table", "table", "summarize", "figure", "benchmarks", "write_report")
    target = "results/every/report.html"
    assert every_rule.jobs(target, "--allowed-rules", *gathering) == []
    with every_rule.changed("scripts/counts.py", ("import pathlib", "import pathlib\n\nCHANGED = 1")):
        planned = every_rule.jobs(target, "--allowed-rules", *gathering)
        affected = graph.plan(graph.of_script("counts"))
        assert {job.outputs[0] for job in planned} == {
            first for first in affected if graph.jobs[first].rule in gathering
        }


@pytest.mark.parametrize(
    "part",
    [
        ("--until", "embedding_table"),
        ("--omit-from", "retrieve"),
        ("results/every/retrieval/scidocs/pythia/s/main/input/original/none.parquet",),
        ("word_similarity",),
    ],
)
def test_nothing_is_stale_in_a_part_of_a_finished_study(every_rule, part):
    assert {job.rule for job in every_rule.jobs(*part)} <= {"word_similarity"}


def test_no_file_on_the_way_is_missed_when_it_is_deleted(every_rule, graph):
    with lost(every_rule, graph.between(), records=False):
        assert every_rule.stale() == set()


def test_what_was_made_again_makes_stale_what_follows_until_that_is_made(again, graph):
    """Such as after `--forcerun`, where the run ended early."""
    made = "counts/scidocs/pythia-words.npz"
    again.snakemake(f"results/every/{made}", "--force", WRITTEN="something else")
    assert again.stale() == graph.plan(graph.after(made))


def test_what_a_setting_is_of_counts_and_not_its_value_alone(every_rule, graph):
    """Two settings that change values would be the same set of values."""
    names = ("        precision=STUDY", "        bootstrap=STUDY")
    replaced = [(name, f"        was_{name.strip()}") for name in names]
    swapped = [(f"was_{names[0].strip()}", names[1].strip()), (f"was_{names[1].strip()}", names[0].strip())]
    with every_rule.changed("workflow/rules/retrieval.smk", *replaced, *swapped):
        assert every_rule.stale() == graph.plan(graph.of_script("retrieve"))


# --- dates and contents -----------------------------------------------------------------------------------


def everything(copy: Copy) -> list[Path]:
    """All files of a checkout, in any order."""
    paths = sorted(path for path in copy.folder.rglob("*") if ".snakemake/" not in str(path))
    random.Random(0).shuffle(paths)
    return paths


@pytest.mark.parametrize("dates", ["one", "falling", "rising"])
def test_a_copy_of_the_checkout_with_other_dates_has_nothing_to_do(again, dates):
    for number, path in enumerate(everything(again)):
        seconds = 1_700_000_000 + {"one": 0, "falling": -number, "rising": number}[dates]
        os.utime(path, (seconds, seconds), follow_symlinks=False)
    assert again.stale() == again.of("small").stale() == set()


FEEDS = {  # a file of the user's -> the job that reads it
    "pairs.tsv": "word_counts/pairs/our-words.npz",
    "ours/model/model.safetensors": "models/ours/s/main",
    "ours/model/step-5/model.safetensors": "models/ours/s/step5",
}


@pytest.mark.parametrize("path", FEEDS)
@pytest.mark.parametrize("age", [-(10**6), 0, 10**6], ids=["older", "as old", "newer"])
def test_another_file_of_the_users_makes_stale_what_it_feeds_however_old_it_is(every_rule, graph, path, age):
    old = (every_rule.folder / path).stat()
    text = USERS_FILES[path]
    with every_rule.changed(path, (text, text[::-1])):  # of the same size
        os.utime(every_rule.folder / path, ns=(old.st_atime_ns, old.st_mtime_ns + age * 10**9))
        assert every_rule.stale() == graph.plan({FEEDS[path]})
    os.utime(every_rule.folder / path, ns=(old.st_atime_ns, old.st_mtime_ns + age * 10**9))
    assert every_rule.stale() == set()


# --- sharing ---------------------------------------------------------------------------------------------


def test_what_the_job_of_a_cluster_put_into_the_cache_is_found_by_any_other_run(again, tmp_path):
    """Such a job is started with its own rule and no other; its inputs are folders."""
    cache, made = tmp_path / "cache", "results/every/counts/scidocs/pythia-words.npz"
    cache.mkdir()
    job = ("--target-jobs", "counts:dataset=scidocs,tokenizer=pythia-words", "--allowed-rules", "counts")
    remote = ("--mode", "remote", "--force", "--nolock", "--ignore-incomplete", "--cache", "counts")
    again.snakemake(*job, *remote, SNAKEMAKE_OUTPUT_CACHE=str(cache), WRITTEN="by the job")
    assert len(list(cache.iterdir())) == 1
    (again.folder / made).unlink()
    again.snakemake(made, "--cache", SNAKEMAKE_OUTPUT_CACHE=str(cache), WRITTEN="by this run")
    assert (again.folder / made).read_text() == "by the job"
