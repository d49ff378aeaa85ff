"""The profiles name rules that exist, and Snakemake accepts them for the default study."""

import re
from pathlib import Path

import pytest
import yaml

from lmshape.jobs import runtime

PROFILES = Path(__file__).parents[2] / "profiles"
# a score on the published study's data set, at the largest width of any table
SCIDOCS = runtime.retrieve_minutes(documents=25_657, queries=1_000, counts=5, width=14_336)


def test_the_cluster_profile_names_rules_of_the_workflow(snakemake):
    rules = set(snakemake("--list-rules").stdout.split())
    profile = yaml.safe_load((PROFILES / "slurm/config.yaml").read_text())
    assert set(profile["groups"]) <= rules


def test_every_group_of_the_cluster_profile_is_one_rule_with_a_size():
    """Two rules in a group would tie all their jobs together."""
    profile = yaml.safe_load((PROFILES / "slurm/config.yaml").read_text())
    assert len(set(profile["groups"].values())) == len(profile["groups"])
    assert set(profile["group-components"]) == set(profile["groups"].values())


def test_a_group_asks_for_hours_not_days(snakemake):
    """It asks for the time of all its jobs together."""
    profile = yaml.safe_load((PROFILES / "slurm/config.yaml").read_text())
    said = snakemake("--dry-run", "--forceall", "--configfile", "studies/published.yaml").stdout
    for rule, group in profile["groups"].items():
        jobs = re.findall(rf"(?m)^rule {rule}:\n((?:    .*\n)+)", said)
        asked = {re.search(r"\bruntime=(\d+|<TBD>)", job)[1] for job in jobs}
        minutes = [SCIDOCS if time == "<TBD>" else int(time) for time in asked]
        assert 0 < max(minutes) * profile["group-components"][group] <= 240


@pytest.mark.parametrize("study", ["config.yaml", "studies/published.yaml"])
@pytest.mark.parametrize("name", ["local", "slurm"])
def test_a_profile_is_accepted_for_every_job_of_a_study(snakemake, name, study):
    """Snakemake refuses groups of which a part waits for another part by way of other jobs."""
    profile = ("--profile", f"profiles/{name}")
    ended = snakemake("--dry-run", "--forceall", "--quiet", "rules", "--configfile", study, *profile)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*/config.yaml")), ids=lambda path: path.parent.name)
def test_no_profile_keeps_what_a_failed_job_left(path):
    """It may be the older result of a job that failed before it began, and would count as new."""
    assert "keep-incomplete" not in yaml.safe_load(path.read_text())


@pytest.mark.parametrize("study", ["config.yaml", "studies/published.yaml"])
def test_every_job_asks_for_the_memory_of_snakemake_itself(snakemake, study):
    """Its two processes in every job of a cluster hold 270 MB before the script begins."""
    said = snakemake("--dry-run", "--forceall", "--configfile", study).stdout
    memory = [int(found) for found in re.findall(r"\bmem_mb=(\d+)", said)]
    assert min(memory) >= 600
