"""What a job refuses for good is said, and not tried again; a job that was killed or lacked a network is."""

from pathlib import Path

import pytest

from lmshape.jobs.attempts import FINAL

ROOT = Path(__file__).parents[2]
SNAKEFILE = f"""
include: {str(ROOT / "workflow/rules/running.smk")!r}

rule all:
    input: expand("{{kind}}.made", kind=["refused", "killed", "lacking"])

LAST = {{"refused": "NoTable: m/s: no table\\n" + {FINAL!r}, "killed": "", "lacking": "HubError: cannot be reached"}}

rule fail:
    output: "{{kind}}.made"
    log: "{{kind}}.log"
    params: last=lambda wildcards: LAST[wildcards.kind]
    shell:
        "echo once >> {{wildcards.kind}}.attempts; "
        "test -z '{{params.last}}' || echo '{{params.last}}' > {{log}}; exit 1"
"""


def test_only_what_may_pass_is_tried_again(snakemake, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "killed.log").write_text(f"{FINAL}\n")  # of an earlier run
    ended = snakemake("--keep-going", "--retries", "2", folder=tmp_path)
    assert ended.returncode == 1
    attempts = {path.stem: len(path.read_text().splitlines()) for path in tmp_path.glob("*.attempts")}
    assert attempts == {"refused": 1, "killed": 3, "lacking": 3}
    assert ended.stdout.count("Trying to restart") == 4
    assert said(ended.stdout) == 1


@pytest.mark.parametrize("shown", [("--logger", "rich"), ("--show-failed-logs",)], ids=["rich", "logs"])
def test_a_refusal_is_said_once_where_logs_are_shown(snakemake, tmp_path, shown):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    assert said(snakemake("refused.made", *shown, folder=tmp_path).stdout) == 1


def said(words: str) -> int:
    """How often a run says what was refused; Snakemake prints the command, too, which holds it."""
    return [line.strip() for line in words.splitlines()].count("NoTable: m/s: no table")
