"""Provenance names the commit of our own checkout, and the versions that were installed."""

import subprocess
from importlib import metadata

import lmshape
from lmshape.report import provenance


def git(folder, *arguments):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_commit_and_local_changes_of_a_checkout(tmp_path):
    git(tmp_path, "init", "-q")
    package = tmp_path / "package"
    package.mkdir()
    (package / "module.py").write_text("x = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert provenance.checkout(package) == (commit, False)
    (tmp_path / "untracked").write_text("results do not count as changes")
    assert provenance.checkout(package) == (commit, False)
    (package / "module.py").write_text("x = 2\n")
    assert provenance.checkout(package) == (commit, True)


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
    assert provenance.checkout(package, read) == (commit, False)
    for name in ("suites/new.yaml", checkout / "suites/new.yaml", "data.txt", "[ab].tsv"):
        assert provenance.checkout(package, [*read, name]) == (commit, True)
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
    assert provenance.checkout(package) == (None, False)


def test_a_folder_outside_git_has_no_commit(tmp_path):
    assert provenance.checkout(tmp_path) == (None, False)


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
