"""`make` installs into .venv what the lock files say, whatever a user's settings of Python and pip say."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A Python that makes no environment and installs nothing, and writes down what it was asked for and what it saw
PYTHON = f"""#!/bin/sh
case "$1 $2" in
"-m venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python; echo "$@" >> asked;;
"-m pip") echo "$@" >> asked; env >> seen; [ ! -e fails ];;
*) exec "{sys.executable}" "$@";;
esac
"""


@pytest.fixture
def make(tmp_path):
    """Runs make for the installation in a folder whose name has a space."""
    folder = tmp_path / "my checkout"
    folder.mkdir()
    for name in ("Makefile", "requirements.txt", "requirements-data.txt", "pyproject.toml"):
        shutil.copyfile(ROOT / name, folder / name)

    def run(python: str = PYTHON, **settings: str) -> subprocess.CompletedProcess:
        program = tmp_path / "python"
        program.write_text(python)
        program.chmod(0o755)
        command = ["make", f"PYTHON={program}", "install"]
        return subprocess.run(command, cwd=folder, env=os.environ | settings, capture_output=True, text=True)

    run.folder = folder
    return run


def asked(make) -> list[str]:
    return (make.folder / "asked").read_text().splitlines()


def test_both_lock_files_and_the_checkout_are_installed_into_an_environment_of_its_own(make):
    ended = make()
    assert ended.returncode == 0, ended.stderr
    environment, *installed = asked(make)
    assert environment == "-m venv --clear .venv"
    assert [line.split("--no-binary=:none: ")[1] for line in installed] == [
        "--requirement requirements.txt",
        "--no-deps --requirement requirements-data.txt",
        "--no-deps --no-build-isolation --editable .",
    ]
    assert all(f"--no-user --target= --prefix={make.folder}/.venv --root=/" in line for line in installed)
    assert make().returncode == 0 and asked(make) == [environment, *installed], "there was nothing to do"


def test_of_a_users_settings_those_stay_that_say_where_packages_come_from(make):
    kept = {
        "PIP_INDEX_URL": "https://mirror",
        "PIP_CERT": "/cert",
        "PIP_CONFIG_FILE": "/conf",
        "HOME": "/home/x",
    }
    dropped = {
        "PIP_TARGET": "/t",
        "PIP_USER": "1",
        "PIP_CONSTRAINT": "/c",
        "PIP_NO_DEPS": "1",
        "PIP_DRY_RUN": "1",
    }
    dropped |= {"PYTHONPATH": "/p", "PYTHONWARNINGS": "error", "SNAKEMAKE_PROFILE": "other"}
    assert make(**kept, **dropped).returncode == 0
    seen = dict(line.split("=", 1) for line in (make.folder / "seen").read_text().splitlines() if "=" in line)
    assert {name: seen[name] for name in kept} == kept
    assert not dropped.keys() & seen.keys()


def test_what_was_interrupted_begins_anew_and_what_was_finished_is_added_to(make):
    (make.folder / "fails").touch()
    assert make().returncode != 0
    (make.folder / "fails").unlink()
    assert make().returncode == 0
    os.utime(make.folder / ".venv/.installed", (0, 0))  # the lock files are newer
    assert make().returncode == 0
    environments = [line for line in asked(make) if line.startswith("-m venv")]
    assert environments == ["-m venv --clear .venv", "-m venv --clear .venv", "-m venv .venv"]


def test_a_python_that_is_too_old_is_named(make):
    older = "import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])"
    old = f'#!/bin/sh\nexec "{sys.executable}" -c "{older}" "$2"\n'
    ended = make(old)
    assert ended.returncode != 0 and not (make.folder / ".venv").exists()
    assert f"lmshape needs Python 3.11 or later, and {make.folder.parent}/python is 3.9" in ended.stderr


def test_packages_that_went_elsewhere_are_missed(make):
    ended = make(PYTHON.replace("*) exec", '*) [ "${2#import lmshape}" = "$2" ] || exit 1; exec'))
    assert ended.returncode != 0 and "pip put packages elsewhere" in ended.stdout
    assert not (make.folder / ".venv/.installed").exists()
