"""With the lines that lmshape puts in its place, Snakemake's scheduler leaves no chain of looks behind."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JOBS = 40
COUNT = "print('looks:', sum(type(each) is threading.Timer for each in threading.enumerate()), flush=True)"
SNAKEFILE = f"""
import threading

rule all:
    input: expand("made/{{number}}", number=range({JOBS}))

rule make:
    output: "made/{{number}}"
    shell: "touch {{output}}"

onsuccess:
    {COUNT}
"""
MENDED = f"include: {str(ROOT / 'workflow/rules/running.smk')!r}\n"


def looks(snakemake, tmp_path, snakefile: str, *options: str) -> int:
    """How many looks are ordered, each in a thread of its own, when the last of the jobs has ended."""
    (tmp_path / "Snakefile").write_text(snakefile)
    ended = snakemake("--quiet", "rules", "progress", *options, folder=tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert len(list((tmp_path / "made").iterdir())) == JOBS
    return int(ended.stdout.split("looks:")[1].split()[0])


def test_a_run_ends_without_a_look_ordered(snakemake, tmp_path):
    assert looks(snakemake, tmp_path, MENDED + SNAKEFILE) == 0


def test_a_limit_of_ones_own_is_kept_with_one_look_ordered(snakemake, tmp_path):
    assert looks(snakemake, tmp_path, MENDED + SNAKEFILE, "--max-jobs-per-timespan", "20/1s") <= 1


def test_snakemake_still_needs_it(snakemake, tmp_path):
    """The day this fails, `lmshape.jobs.scheduler`, its call in running.smk and these tests can go."""
    looked = looks(snakemake, tmp_path, SNAKEFILE)
    if looked <= 1:
        pytest.fail("Snakemake's scheduler orders no chains of looks any more: lmshape.jobs.scheduler can go")
