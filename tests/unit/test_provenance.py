"""Provenance names the commit of our own checkout, and the versions that were installed."""

import os
import shutil
import subprocess
from importlib import metadata

import pytest

import lmshape
from lmshape.report import provenance


def git(folder, *arguments):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def git_that(folder, script):
    """A program called git that runs a line of shell, where $GIT is the real one; returns a PATH that has it."""
    program = folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nGIT={shutil.which('git')}\n{script}\n")
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def package(tmp_path):
    """A folder that a checkout with one commit tracks."""
    folder = tmp_path / "checkout é" / "package"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text("x = 1\n")
    git(folder, "init", "-q", "..")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def test_commit_and_local_changes_of_a_checkout(tmp_path):
    git(tmp_path, "init", "-q")
    package = tmp_path / "package"
    package.mkdir()
    (package / "module.py").write_text("x = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert provenance.checkout(package)[:2] == (commit, False)
    (tmp_path / "untracked").write_text("results do not count as changes")
    assert provenance.checkout(package)[:2] == (commit, False)
    (package / "module.py").write_text("x = 2\n")
    assert provenance.checkout(package)[:2] == (commit, True)


def test_an_untracked_file_that_the_study_reads_is_a_local_change(tmp_path, monkeypatch):
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere.yaml"
    for folder in ("package", "suites", "results"):
        (checkout / folder).mkdir(parents=True)
    git(checkout, "init", "-q")
    for name in ("package/module.py", "suites/known.yaml", ".gitignore"):
        (checkout / name).write_text("/data.txt\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "first")
    package = checkout / "package"
    commit = git(checkout, "rev-parse", "HEAD")
    for name in (
        "suites/new.yaml",
        "data.txt",
        "results/report.html",
        "[ab].tsv",
        "a.tsv",
        "../elsewhere.yaml",
    ):
        (checkout / name).write_text("untracked")
    monkeypatch.chdir(checkout)
    read = ["suites/known.yaml", elsewhere]
    assert provenance.checkout(package, read)[:2] == (commit, False)
    for name in ("suites/new.yaml", checkout / "suites/new.yaml", "data.txt", "[ab].tsv"):
        assert provenance.checkout(package, [*read, name])[:2] == (commit, True)
    git(checkout, "add", "[[]ab].tsv", "suites/new.yaml")
    git(checkout, "commit", "-qm", "second")
    assert provenance.checkout(package, [*read, "suites/new.yaml", "[ab].tsv"])[1] is False


def test_a_package_installed_inside_the_checkout_of_another_project_has_no_commit(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "README").write_text("another project")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    package = tmp_path / "site-packages" / "package"
    package.mkdir(parents=True)
    assert provenance.checkout(package)[:2] == (None, False)


def test_a_folder_outside_git_has_no_commit(tmp_path):
    assert provenance.checkout(tmp_path)[:2] == (None, False)


def test_a_checkout_of_another_owner_has_a_commit(package, tmp_path, monkeypatch):
    """git tests this with a variable, as only a superuser can give files away."""
    monkeypatch.setenv("HOME", str(tmp_path))  # whose settings trust no folder
    monkeypatch.setenv("PATH", git_that(tmp_path, 'GIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec $GIT "$@"'))
    refused = subprocess.run(["git", "-C", package, "rev-parse", "HEAD"], capture_output=True, text=True)
    assert refused.returncode and "dubious ownership" in refused.stderr
    (package / "module.py").write_text("x = 2\n")
    found = provenance.checkout(package, [package / "new"])
    monkeypatch.undo()
    assert found == (git(package, "rev-parse", "HEAD"), True, None)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'fatal: no such\nluck' >&2; exit 128", "git refuses to name a commit: fatal: no such luck"),
        ("exit 1", "git refuses to name a commit: git ended with 1"),
    ],
)
def test_a_report_says_why_git_names_no_commit(package, tmp_path, monkeypatch, script, said):
    monkeypatch.setenv("PATH", git_that(tmp_path, script))
    assert provenance.checkout(package) == (None, False, said)


def test_a_report_says_that_there_is_no_git(package, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.checkout(package)[2] == "git cannot be run (No such file or directory)"


def test_a_checkout_without_a_commit_says_so(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "module.py").touch()
    git(tmp_path, "add", ".")
    assert "git refuses to name a commit: fatal:" in provenance.checkout(tmp_path)[2]


def test_a_package_without_a_checkout_says_so(tmp_path):
    assert provenance.checkout(tmp_path) == (None, False, "an installed package, no git checkout")


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_DIR": "{other}/.git"},
        {"GIT_DIR": "{other}/.git", "GIT_WORK_TREE": "{other}", "GIT_INDEX_FILE": "{other}/index", "GIT_PREFIX": "x"},
        {"GIT_CEILING_DIRECTORIES": "{package}"},
        {"GIT_TRACE": "1", "GIT_PAGER": "false", "LC_ALL": "tr_TR.UTF-8", "LANGUAGE": "de"},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true"},
        {"GIT_CONFIG_PARAMETERS": "'core.worktree'='/'"},
        {"GIT_ICASE_PATHSPECS": "1", "GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_SHALLOW_FILE": "/nowhere"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("modified", [False, True])
def test_the_environment_changes_nothing(package, tmp_path, monkeypatch, variables, modified):
    commit = git(package, "rev-parse", "HEAD")
    git(tmp_path, "init", "-q", "other")
    if modified:
        (package / "module.py").write_text("x = 2\n")
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(other=tmp_path / "other", package=package))
    assert provenance.checkout(package, ["é {x}"]) == (commit, modified, None)


def test_the_users_settings_of_git_change_nothing(package, tmp_path, monkeypatch):
    settings = """
    [core]
      fsmonitor = touch ran
      quotePath = true
      pager = false
    [color]
      ui = always
    [status]
      showUntrackedFiles = all
      branch = true
      short = false
    [diff]
      external = false
    [advice]
      statusHints = true
    """
    (tmp_path / ".gitconfig").write_text(settings)
    commit = git(package, "rev-parse", "HEAD")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(package)
    assert provenance.checkout(package) == (commit, False, None)
    (package / "größe.txt").write_text("untracked")
    assert provenance.checkout(package) == (commit, False, None)
    assert provenance.checkout(package, ["größe.txt"]) == (commit, True, None)
    assert list(tmp_path.rglob("ran")) == []


def test_a_second_worktree_and_a_submodule_have_their_own_commit(package, tmp_path):
    commit = git(package, "rev-parse", "HEAD")
    git(package, "worktree", "add", "-q", "../worktree")
    git(tmp_path, "init", "-q", "outer")
    git(
        tmp_path / "outer",
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        package.parent,
        "inner",
    )
    for inside in (package.parent / "worktree", tmp_path / "outer" / "inner"):
        assert provenance.checkout(inside / "package") == (commit, False, None)


def test_packages_are_lmshape_and_what_it_depends_on_at_the_installed_versions():
    found = provenance.packages()
    assert next(iter(found)) == lmshape.__name__
    assert found["polars"] == metadata.version("polars")
    assert "pytest" not in found


def test_gather_reads_what_the_workflow_wrote(tmp_path):
    (tmp_path / "study.yaml").write_text("study: {title: Größe}\n", encoding="utf-8")
    (tmp_path / "pruned.csv").write_text('combination,reason\na/b,"too wide, by far"\n')
    found = provenance.gather("Größe", tmp_path / "study.yaml", tmp_path / "pruned.csv")
    assert found.study == "study: {title: Größe}\n"
    assert list(found.pruned) == [("a/b", "too wide, by far")]
    assert found.time.endswith(" UTC")
