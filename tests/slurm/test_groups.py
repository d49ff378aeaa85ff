"""Jobs that share a submission with one that refuses for good, or that waits for it, are done without it."""

import shutil
import subprocess
import sys
from pathlib import Path

from lmshape.jobs.attempts import FINAL

ROOT = Path(__file__).parents[2]
SNAKEFILE = f"""
include: {str(ROOT / "workflow/rules/running.smk")!r}

rule all:
    input: expand("scores/{{name}}", name=["good", "bad"])

rule embedding_table:  # two names that the profile groups
    output: "tables/{{name}}"
    log: "{{name}}.log"
    resources: mem_mb=600, runtime=3
    shell:
        "echo once >> {{wildcards.name}}.attempts; "
        "case {{wildcards.name}} in bad) echo '{FINAL}' > {{log}}; exit 1;; esac; touch {{output}}"

rule retrieve:
    input: "tables/{{name}}"
    output: "scores/{{name}}"
    resources: mem_mb=600, runtime=3
    shell: "touch {{output}}"
"""


def test_a_job_that_refuses_costs_nothing_but_what_waits_for_it(slurm, quick, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    command = [sys.executable, "-m", "snakemake", *quick]
    ended = subprocess.run(command, cwd=tmp_path, env=slurm, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "Error in group embedding_table" in ended.stderr
    assert [path.name for path in (tmp_path / "scores").iterdir()] == ["good"], ended.stderr
    assert (tmp_path / "bad.attempts").read_text() == "once\n"
