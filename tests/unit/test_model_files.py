"""Which files of a folder are the model: those that transformers loads, whose own code decides; all else is said."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from lmshape.errors import LmshapeError
from lmshape.inputs import checkpoints, local_models, model_files

WEIGHTS = {  # name -> the number that its embedding table is filled with
    "model.safetensors": 1,
    "model-00001-of-00001.safetensors": 2,
    "pytorch_model.bin": 3,
    "pytorch_model-00001-of-00001.bin": 4,
    "consolidated.safetensors": 5,
}
INDEX = {
    "model.safetensors.index.json": "model-00001-of-00001.safetensors",
    "pytorch_model.bin.index.json": "pytorch_model-00001-of-00001.bin",
}


@pytest.fixture(scope="module")
def every_form(tmp_path_factory) -> Path:
    """A folder with one model in every form, each with other numbers in its embedding table."""
    folder = tmp_path_factory.mktemp("forms")
    config = transformers.GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_positions=8)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    state = load_file(folder / "model.safetensors")
    for name, number in WEIGHTS.items():
        held = state | {"transformer.wte.weight": torch.full((20, 8), float(number))}
        save = torch.save if name.endswith(".bin") else save_file
        save(held, folder / name)
    for name, shard in INDEX.items():
        content = {"metadata": {}, "weight_map": dict.fromkeys(state, shard)}
        (folder / name).write_text(json.dumps(content))
    return folder


def having(every_form: Path, folder: Path, names: set[str], **configuration: str) -> Path:
    """A folder of some of the files, with their shards."""
    folder.mkdir()
    config = json.loads((every_form / "config.json").read_text()) | configuration
    (folder / "config.json").write_text(json.dumps(config))
    for name in names | {INDEX[name] for name in names if name in INDEX}:
        (folder / name).symlink_to(every_form / name)
    return folder


SHARDED, BIN, SHARDED_BIN = (
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


@pytest.mark.parametrize(
    ("names", "configuration"),
    [
        ({"model.safetensors", SHARDED, BIN, SHARDED_BIN}, {}),
        ({SHARDED, BIN, SHARDED_BIN}, {}),
        ({BIN, SHARDED_BIN}, {}),
        ({SHARDED_BIN}, {}),
        (
            {"model.safetensors", "consolidated.safetensors"},
            {"transformers_weights": "consolidated.safetensors"},
        ),
        ({"model.safetensors", SHARDED}, {"transformers_weights": SHARDED}),
    ],
    ids=["all", "no whole safetensors", "no safetensors", "shards of .bin", "one named", "an index named"],
)
def test_of_several_sets_of_weights_transformers_table_is_read_linked_and_hashed(
    every_form, tmp_path, names, configuration
):
    folder = having(every_form, tmp_path / "model", names, **configuration)
    theirs = transformers.AutoModel.from_pretrained(folder).get_input_embeddings().weight[0, 0].item()
    local_models.link(folder, tmp_path / "linked")
    linked = transformers.AutoModel.from_pretrained(tmp_path / "linked").get_input_embeddings()
    tables = [checkpoints.embedding(place).table for place in (folder, tmp_path / "linked")]
    assert {theirs, linked.weight[0, 0].item(), *(table[0, 0] for table in tables)} == {theirs}
    said = model_files.passed_over(folder, [path.name for path in folder.iterdir()])
    passed = names & {*model_files.WEIGHT_FILES} - {path.name for path in (tmp_path / "linked").iterdir()}
    assert all(name in said[0] for name in passed) if passed else not said


def refused(folder: Path) -> str:
    with pytest.raises(LmshapeError) as error:
        local_models.files(folder)
    return str(error.value)


def test_shards_that_the_index_lists_and_are_not_there_are_named(every_form, tmp_path):
    folder = having(every_form, tmp_path / "model", {SHARDED, BIN})
    (folder / INDEX[SHARDED]).unlink()
    assert (
        refused(folder)
        == f"{folder}: {SHARDED} lists {INDEX[SHARDED]}, which is not there; fetch the model again"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ("{}", "no `weight_map`"),
        ('{"weight_map": {}}', "no `weight_map`"),
        ('{"weight_map": ["a"]}', "no `weight_map`"),
        ('{"weight_map": {"a": "../elsewhere.safetensors"}}', "no `weight_map`"),
        ('{"weight_map": {"a": 1}}', "no `weight_map`"),
        ("", "an empty file"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "a Git LFS pointer"),
        ("<!DOCTYPE html><html><body>Not found</body></html>", "a web page"),
    ],
)
def test_an_index_that_is_none_is_named(every_form, tmp_path, content, said):
    folder = having(every_form, tmp_path / "model", set())
    (folder / SHARDED).write_text(content)
    assert refused(folder).startswith(f"{folder / SHARDED}: {said}")


@pytest.mark.parametrize(
    "name",
    ["model.fp16.safetensors", "consolidated.00.pth", "flax_model.msgpack", "tf_model.h5", "model.onnx",
     "Model.safetensors", "model.ckpt.index.json", "training_args.bin"],
)  # fmt: skip
def test_weights_that_transformers_does_not_load_are_named_in_one_message(every_form, tmp_path, name):
    folder = having(every_form, tmp_path / "model", set())
    (folder / name).write_bytes(b"weights of another form")
    (folder / "original").mkdir()
    said = refused(folder)
    assert said.startswith(
        f"{folder}: no weights: expected one of {', '.join(model_files.WEIGHT_FILES)}; it has {name}"
    )
    assert "save_pretrained" in said


def test_shards_without_an_index_ask_for_it(every_form, tmp_path):
    folder = having(every_form, tmp_path / "model", {"model-00001-of-00001.safetensors"})
    assert "it has model-00001-of-00001.safetensors: shards without the index" in refused(folder)


def test_a_folder_of_many_files_that_are_no_model_names_some(tmp_path):
    for number in range(25):
        (tmp_path / f"{number:02}.txt").touch()
    assert "it has 00.txt, 01.txt" in refused(tmp_path) and "09.txt and 15 more" in refused(tmp_path)


ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "owner/base"}


@pytest.mark.parametrize("others", [["adapter_model.safetensors"], ["adapter_model.bin", "config.json"]])
def test_an_adapter_alone_is_named_with_the_model_that_it_is_of(tmp_path, others):
    (tmp_path / "adapter_config.json").write_text(json.dumps(ADAPTER))
    for name in others:
        (tmp_path / name).write_text("{}")
    assert "it is an adapter (LORA) of owner/base, and no model" in refused(tmp_path)


def test_what_cannot_be_read_of_an_adapter_is_not_the_models_fault(every_form, tmp_path):
    folder = having(every_form, tmp_path / "model", {"model.safetensors"})
    (folder / "adapter_config.json").write_text("{")
    said = model_files.passed_over(folder, [path.name for path in folder.iterdir()])
    assert said == [f"{folder}: what is read is the model alone; an adapter beside it is not applied"]


def test_a_folder_of_sentence_transformers_points_to_the_one_inside(tmp_path):
    (tmp_path / "modules.json").write_text("[]")
    (tmp_path / "0_Transformer").mkdir()
    assert "laid out by sentence-transformers: give the folder in it of the transformer" in refused(tmp_path)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a.gguf"], ["a.gguf"]),
        (["a-00002-of-00002.gguf", "a-00001-of-00002.gguf", "README.md"],
         ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"]),
        (["a-00001-of-00003.gguf", "a-00003-of-00003.gguf"], "a-00002-of-00003.gguf is not beside it"),
        (["a.gguf", "b.gguf"], "several GGUF models: give the path of a.gguf or b.gguf"),
        (["a-Q4-00001-of-00002.gguf", "a-Q4-00002-of-00002.gguf", "a-Q8.gguf"],
         "several GGUF models: give the path of a-Q4-00001-of-00002.gguf or a-Q8.gguf"),
        (["a-00001-of-00001.gguf", "a-00001-of-00002.gguf"], "several GGUF models"),
        (["a-00001-of-00000.gguf"], ["a-00001-of-00000.gguf"]),
        (["a-00003-of-00002.gguf"], ["a-00003-of-00002.gguf"]),
    ],
)  # fmt: skip
def test_a_folder_of_gguf_files_is_one_model_or_names_them(tmp_path, names, found):
    for name in names:
        (tmp_path / name).touch()
    if isinstance(found, list):
        assert [path.name for path in local_models.files(tmp_path)] == found
        for name in found:  # given by any of its files, it is all of them
            assert [path.name for path in local_models.files(tmp_path / name)] == found
    else:
        assert found in refused(tmp_path)


def test_what_transformers_loads_of_a_folder_is_itself_or_its_one_gguf_file(every_form, tmp_path):
    folder = having(every_form, tmp_path / "model", {"model.safetensors"})
    (folder / "beside.gguf").touch()
    assert model_files.loaded(folder) == folder
    for name in ("a-00001-of-00002.gguf", "a-00002-of-00002.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(LmshapeError, match="a-00001-of-00002.gguf: one of 2 files.*llama-gguf-split --merge"):
        model_files.loaded(tmp_path)
    (tmp_path / "a-00002-of-00002.gguf").unlink()
    (tmp_path / "a-00001-of-00002.gguf").rename(tmp_path / "a.gguf")
    assert model_files.loaded(tmp_path) == tmp_path / "a.gguf"


def test_a_configuration_beside_gguf_files_alone_says_how_they_are_given(every_form, tmp_path):
    folder = having(every_form, tmp_path / "model", set())
    (folder / "model-Q8_0.gguf").touch()
    assert "it has model-Q8_0.gguf: a GGUF file is a model by itself" in refused(folder)
