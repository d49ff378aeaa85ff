"""Embedding tables are the checkpoint's own bytes, whatever the architecture, the format and the sharding."""

import json
import logging
import os
import pickle
import re
import subprocess
import sys
from collections import OrderedDict
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from lmshape.errors import LmshapeError
from lmshape.inputs.checkpoints import (
    CheckpointError,
    Embedding,
    architecture,
    embedding,
    information,
    load,
    require_described,
    save,
    verify,
)

ROWS, WIDTH, HIDDEN = 64, 8, 16
DECODER = {"num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": ROWS}
ENCODER = DECODER | {"hidden_size": HIDDEN, "intermediate_size": 32, "max_position_embeddings": 34}
T5 = {"d_model": WIDTH, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": ROWS}
# model type: (configuration, input tensor, output tensor of an untied model)
ARCHITECTURES = {
    "gpt_neox": (DECODER | {"hidden_size": WIDTH}, "gpt_neox.embed_in.weight", "embed_out.weight"),
    "opt": (
        DECODER | {"hidden_size": HIDDEN, "word_embed_proj_dim": WIDTH, "ffn_dim": 16},
        "model.decoder.embed_tokens.weight",
        "lm_head.weight",
    ),
    "gpt2": (
        {"n_embd": WIDTH, "n_layer": 1, "n_head": 2, "vocab_size": ROWS},
        "transformer.wte.weight",
        "lm_head.weight",
    ),
    "gptj": (
        {"n_embd": WIDTH, "n_layer": 1, "n_head": 2, "vocab_size": ROWS, "rotary_dim": 4},
        "transformer.wte.weight",
        "lm_head.weight",
    ),
    "bloom": (DECODER | {"hidden_size": WIDTH}, "transformer.word_embeddings.weight", "lm_head.weight"),
    "llama": (
        DECODER | {"hidden_size": WIDTH, "intermediate_size": 16},
        "model.embed_tokens.weight",
        "lm_head.weight",
    ),
    "falcon": (DECODER | {"hidden_size": WIDTH}, "transformer.word_embeddings.weight", "lm_head.weight"),
    "t5": (T5, "shared.weight", "lm_head.weight"),
    "mt5": (T5, "shared.weight", "lm_head.weight"),
    "bert": (
        ENCODER | {"hidden_size": WIDTH},
        "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.weight",
    ),
    "roberta": (
        ENCODER | {"hidden_size": WIDTH},
        "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.weight",
    ),
    "albert": (
        ENCODER | {"embedding_size": WIDTH},
        "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.weight",
    ),
    "rembert": (
        ENCODER | {"input_embedding_size": WIDTH, "output_embedding_size": WIDTH},
        "rembert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.weight",
    ),
    "electra": (
        ENCODER | {"embedding_size": WIDTH},
        "electra.embeddings.word_embeddings.weight",
        "generator_lm_head.weight",
    ),
}
HEADS = [
    transformers.AutoModelForCausalLM,
    transformers.AutoModelForSeq2SeqLM,
    transformers.AutoModelForMaskedLM,
]


def make(folder: Path, model_type: str, dtype=torch.float32, **changes) -> Path:
    """Save a small random model with its language-modelling head as transformers saves it."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **ARCHITECTURES[model_type][0] | changes)
    head = next(head for head in HEADS if type(config) in head._model_mapping)
    if model_type in ("bert", "roberta", "albert", "rembert", "electra"):
        head = transformers.AutoModelForMaskedLM
    model = head.from_config(config).to(dtype)
    model.save_pretrained(folder)
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def rewrite(folder: Path, tensors: dict[str, torch.Tensor], config: dict | None = None) -> None:
    """Replace a folder's tensors, and change its configuration."""
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | (config or {})))


def to_torch(folder: Path, **options) -> Path:
    """Turn a folder's safetensors file into a PyTorch file."""
    torch.save(OrderedDict(weights(folder)), folder / "pytorch_model.bin", **options)
    (folder / "model.safetensors").unlink()
    return folder


@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_input_table_is_the_tensor_that_transformers_saved(tmp_path, model_type):
    folder = make(tmp_path, model_type)
    name = ARCHITECTURES[model_type][1]
    found = embedding(folder)
    assert found.source == name
    assert found.table.shape == (ROWS, WIDTH)
    np.testing.assert_array_equal(found.table, weights(folder)[name].numpy())


@pytest.mark.parametrize("model_type", ARCHITECTURES)
def test_output_table_of_an_untied_model_is_its_own_tensor(tmp_path, model_type):
    folder = make(tmp_path, model_type)
    name = ARCHITECTURES[model_type][2]
    own = torch.arange(ROWS * WIDTH, dtype=torch.float32).reshape(ROWS, WIDTH)
    rewrite(folder, weights(folder) | {name: own}, {"tie_word_embeddings": False})
    found = embedding(folder, "output")
    assert (found.source, found.tied) == (name, False)
    np.testing.assert_array_equal(found.table, own.numpy())
    assert not embedding(folder, "input").tied


def test_trap_17_t5_v1_1_is_untied_in_its_own_words_and_in_those_of_transformers_5(tmp_path):
    """Its config.json says `tie_word_embeddings: false`; saved again, it says true."""
    for name, words in {
        "own": {"tie_word_embeddings": False},
        "saved": {"tie_word_embeddings": True},
    }.items():
        folder = make(tmp_path / name, "t5", tie_word_embeddings=False)
        rewrite(folder, weights(folder) | {"lm_head.weight": torch.ones(ROWS, WIDTH)}, words)
        assert embedding(folder, "output").source == "lm_head.weight"
        assert not embedding(folder, "output").tied
        held = weights(folder)
        del held["lm_head.weight"]
        rewrite(folder, held)
        with pytest.raises(CheckpointError, match="untied"):
            embedding(folder, "output")


@pytest.mark.parametrize("model_type", ["gpt2", "opt", "bloom", "bert", "t5"])
def test_trap_16_output_of_a_tied_model_is_the_input_and_says_so(tmp_path, model_type):
    folder = make(tmp_path, model_type)
    output, found = embedding(folder, "output"), embedding(folder, "input")
    assert output.tied and found.tied
    assert output.source == found.source == ARCHITECTURES[model_type][1]
    assert output.sha256() == found.sha256()


def test_trap_16_untied_model_without_an_output_tensor_is_refused(tmp_path):
    """transformers would leave the output embedding at random here and only warn."""
    folder = make(tmp_path, "gpt_neox")
    held = weights(folder)
    del held["embed_out.weight"]
    rewrite(folder, held)
    assert not embedding(folder, "input").tied
    with pytest.raises(CheckpointError, match=r"untied.*embed_out\.weight.*gpt_neox\.embed_in\.weight"):
        embedding(folder, "output")


def test_trap_16_tied_by_configuration_but_not_in_the_bytes_is_two_tables(tmp_path, caplog):
    folder = make(tmp_path, "gpt2")
    other = torch.ones(ROWS, WIDTH)
    rewrite(folder, weights(folder) | {"lm_head.weight": other})
    with caplog.at_level(logging.WARNING):
        found = embedding(folder, "output")
    assert not found.tied and "differ" in caplog.text
    np.testing.assert_array_equal(found.table, other.numpy())


@pytest.mark.parametrize("said", [True, False])
def test_a_table_that_is_stored_twice_is_one_table_whatever_the_configuration_says(tmp_path, said):
    folder = make(tmp_path, "gpt2")
    twice = {"lm_head.weight": weights(folder)["transformer.wte.weight"].clone()}
    rewrite(folder, weights(folder) | twice, {"tie_word_embeddings": said})
    assert embedding(folder, "output").tied and embedding(folder, "input").tied
    twice["lm_head.weight"][-1, -1] += 1
    rewrite(folder, weights(folder) | twice)
    assert not embedding(folder, "output").tied and not embedding(folder, "input").tied


def test_tied_model_may_store_its_table_under_the_output_name_only(tmp_path):
    folder = make(tmp_path, "opt")
    held = weights(folder)
    held["lm_head.weight"] = held.pop("model.decoder.embed_tokens.weight")
    rewrite(folder, held)
    assert embedding(folder, "input").source == "lm_head.weight"
    assert embedding(folder, "output").tied


@pytest.mark.parametrize(
    ("prefix", "replacement"), [("transformer.", ""), ("transformer.", "base_model.transformer.")]
)
def test_names_are_found_under_any_prefix(tmp_path, prefix, replacement):
    folder = make(tmp_path, "gpt2")
    rewrite(folder, {name.replace(prefix, replacement): tensor for name, tensor in weights(folder).items()})
    assert embedding(folder).source == replacement + "wte.weight"


def test_trap_14_width_is_the_tensors_and_not_the_hidden_size(tmp_path):
    folder = make(tmp_path, "opt")
    assert json.loads((folder / "config.json").read_text())["hidden_size"] == HIDDEN
    assert embedding(folder).table.shape == (ROWS, WIDTH)


def test_trap_14_padding_rows_are_kept(tmp_path):
    folder = make(tmp_path, "gpt2")
    held = weights(folder)
    held["transformer.wte.weight"] = torch.cat([held["transformer.wte.weight"], torch.zeros(3, WIDTH)])
    rewrite(folder, held)
    assert embedding(folder).table.shape == (ROWS + 3, WIDTH)


def test_unknown_architecture_names_those_known(tmp_path):
    folder = make(tmp_path, "gpt2")
    rewrite(folder, weights(folder), {"model_type": "mamba"})
    with pytest.raises(CheckpointError, match="mamba.*known: albert"):
        embedding(folder)


def test_missing_tensor_lists_the_candidates(tmp_path):
    folder = make(tmp_path, "gpt2")
    held = weights(folder)
    held["words.embedding"] = held.pop("transformer.wte.weight")
    rewrite(folder, held)
    with pytest.raises(CheckpointError, match=r"expected wte\.weight; candidates: .*words\.embedding"):
        embedding(folder)


def shard(folder: Path, suffix: str) -> dict[str, str]:
    """Split a folder's weights over two files with an index file; returns tensor name -> file."""
    held = weights(folder)
    stem, index = {
        ".safetensors": ("model", "model.safetensors.index.json"),
        ".bin": ("pytorch_model", "pytorch_model.bin.index.json"),
    }[suffix]
    files = {name: f"{stem}-0000{1 + number % 2}-of-00002{suffix}" for number, name in enumerate(held)}
    for file in set(files.values()):
        part = {name: tensor for name, tensor in held.items() if files[name] == file}
        save_file(part, folder / file) if suffix == ".safetensors" else torch.save(part, folder / file)
    (folder / index).write_text(json.dumps({"metadata": {}, "weight_map": files}))
    (folder / "model.safetensors").unlink()
    return files


@pytest.mark.parametrize("suffix", [".safetensors", ".bin"])
def test_trap_15_only_the_shard_that_the_index_names_is_opened(tmp_path, suffix):
    folder = make(tmp_path, "gpt2")
    held = weights(folder)
    files = shard(folder, suffix)
    name = "transformer.wte.weight"
    for file in set(files.values()) - {files[name]}:
        (folder / file).write_bytes(b"not weights: to open it would fail")
    (folder / f"zz_leftover{suffix}").write_bytes(b"not weights: a glob would find this")
    np.testing.assert_array_equal(embedding(folder).table, held[name].numpy())


def test_trap_15_shard_without_the_tensor_the_index_promises(tmp_path):
    folder = make(tmp_path, "gpt_neox")
    files = shard(folder, ".safetensors")
    wrong = folder / files["gpt_neox.embed_in.weight"]
    save_file({"other": torch.zeros(2)}, wrong)
    with pytest.raises(
        CheckpointError, match=f"{wrong.name} holds gpt_neox.embed_in.weight, and it does not"
    ):
        embedding(folder)


def in_shards(folder: Path, **files: str) -> Path:
    """A folder whose index has the tensors named in the files named, where each is a single number."""
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    for file in set(files.values()):
        save_file({name: torch.ones(1) for name, place in files.items() if place == file}, folder / file)
    index = {"metadata": {}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


@pytest.mark.parametrize("other", ["a", "c"], ids=["in two shards", "in no index"])
def test_shards_of_several_saves_are_refused(tmp_path, other):
    """transformers reads each tensor of each shard, so the index does not say what the model is."""
    folder = in_shards(tmp_path / "model", a="1.safetensors", b="2.safetensors")
    verify(folder)
    save_file({"b": torch.ones(1), other: torch.zeros(1)}, folder / "2.safetensors")
    said = f"{folder}: 2.safetensors holds {other}, which model.safetensors.index.json does not have there"
    with pytest.raises(CheckpointError, match=said):
        verify(folder)


def test_what_cannot_be_true_of_any_weight_file_is_refused_by_its_path(tmp_path):
    folder = in_shards(tmp_path / "model", a="1.safetensors", b="2.safetensors")
    cut = folder / "2.safetensors"
    cut.write_bytes(cut.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=f"{cut}: cut short"):
        verify(folder)


def test_a_checkpoint_of_two_models_is_refused_by_the_names_of_both_tables(tmp_path):
    folder = make(tmp_path, "gpt2")
    held = weights(folder)
    both = {
        f"{model}.{name}": tensor.clone() for model in ("student", "teacher") for name, tensor in held.items()
    }
    rewrite(folder, both)
    names = r"student.transformer.wte.weight and teacher.transformer.wte.weight may both be the table"
    with pytest.raises(CheckpointError, match=f"{folder}: {names}"):
        embedding(folder)


DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("container", ["safetensors", "zip", "stream"])
def test_table_keeps_the_checkpoints_type_bit_for_bit(tmp_path, dtype, container):
    folder = make(tmp_path, "gpt2", dtype)
    truth = weights(folder)["transformer.wte.weight"]
    if container != "safetensors":
        to_torch(folder, _use_new_zipfile_serialization=container == "zip")
    found = embedding(folder)
    assert found.dtype == str(dtype).removeprefix("torch.")
    assert found.table.tobytes() == truth.view(torch.uint8).numpy().tobytes()
    np.testing.assert_array_equal(found.float32(), truth.float().numpy())


def test_torch_tensor_that_is_a_window_on_a_larger_storage(tmp_path):
    folder = make(tmp_path, "gpt2")
    storage = torch.arange(3 * ROWS * WIDTH, dtype=torch.float32).reshape(3, ROWS, WIDTH)
    held = weights(folder) | {"transformer.wte.weight": torch.nn.Parameter(storage[1])}
    torch.save(held, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    np.testing.assert_array_equal(embedding(folder).table, storage[1].numpy())


@pytest.mark.parametrize(
    "view",
    [
        lambda whole: whole.T,
        lambda whole: whole[3:, 2:6],
        lambda whole: whole[::2],
        lambda whole: whole[5].expand(4, WIDTH),
        lambda whole: whole[:0],
    ],
    ids=["transposed", "part", "every second row", "one row repeated", "nothing"],
)
@pytest.mark.parametrize("container", ["zip", "stream"])
def test_torch_tensor_that_is_a_view_is_what_torch_reads(tmp_path, view, container):
    folder = make(tmp_path, "gpt2")
    (folder / "model.safetensors").unlink()
    state = {"wte.weight": view(torch.randn(ROWS, WIDTH)), "other": torch.ones(2)}
    path = folder / "pytorch_model.bin"
    torch.save(state, path, _use_new_zipfile_serialization=container == "zip")
    np.testing.assert_array_equal(embedding(folder).table, torch.load(path)["wte.weight"].numpy())


def test_trap_15_old_torch_stream_is_read_whole_and_says_so(tmp_path, caplog):
    folder = to_torch(make(tmp_path, "gpt2"), _use_new_zipfile_serialization=False)
    with caplog.at_level(logging.WARNING):
        embedding(folder)
    assert "old PyTorch file" in caplog.text


class Bomb:
    """A pickle that would make a file if it were run."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("zip_file", [True, False], ids=["zip", "stream"])
def test_trap_21_pickles_that_run_code_are_refused_and_not_run(tmp_path, zip_file):
    folder, trace = make(tmp_path, "gpt2"), tmp_path / "it ran"
    state = weights(folder) | {"bomb": Bomb(trace)}
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zip_file)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="refused"):
        embedding(folder)
    with pytest.raises(CheckpointError, match="refused") if zip_file else nullcontext():
        verify(folder)  # which does not look into the other, as that takes loading it
    assert not trace.exists()


def test_trap_21_a_bare_pickle_is_refused_and_not_run(tmp_path):
    folder, trace = make(tmp_path, "gpt2"), tmp_path / "it ran"
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(trace)))
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="refused"):
        embedding(folder)
    assert not trace.exists()


@pytest.mark.parametrize("kept", [4, 100, 0.5, 0.999])
@pytest.mark.parametrize("container", ["safetensors", "zip", "stream"])
def test_file_cut_short_is_an_error_that_names_it(tmp_path, kept, container):
    """The table is made the last tensor, so that wherever the file ends, it is hit."""
    folder = make(tmp_path, "gpt2")
    rewrite(folder, {"wte.weight": torch.randn(ROWS, WIDTH)})
    path = folder / "model.safetensors"
    if container != "safetensors":
        path = to_torch(folder, _use_new_zipfile_serialization=container == "zip") / "pytorch_model.bin"
    data = path.read_bytes()
    path.write_bytes(data[: kept if kept > 1 else int(len(data) * kept)])
    with pytest.raises(CheckpointError, match=path.name):
        embedding(folder)


def test_folder_without_weights_names_what_it_lacks(tmp_path):
    folder = make(tmp_path, "gpt2")
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="no weights: expected one of model.safetensors"):
        embedding(folder)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match="has no config.json; it has generation_config.json"):
        embedding(folder)


@pytest.mark.parametrize("quantised", [False, True])
def test_gguf_table_is_the_dequantised_tensor(tmp_path, quantised):
    import gguf

    table = np.random.default_rng(0).standard_normal((ROWS, 32), dtype=np.float32)
    kind = gguf.GGMLQuantizationType.Q8_0 if quantised else gguf.GGMLQuantizationType.F32
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    data = gguf.quantize(table, kind) if quantised else table
    writer.add_tensor("token_embd.weight", data, raw_dtype=kind if quantised else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    for path in (tmp_path, tmp_path / "model.gguf"):
        found = embedding(path)
        assert (found.source, found.dtype, found.tied) == ("token_embd.weight", "float32", True)
        assert found.stored == kind.name
        np.testing.assert_allclose(found.table, table, atol=0.02 if quantised else 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_saved_table_holds_the_same_bytes_and_where_they_came_from(tmp_path, dtype):
    found = embedding(make(tmp_path / "model", "gpt2", dtype))
    path = tmp_path / "tables" / "input.safetensors"
    save(found, path, "commit")
    held = load_file(path)
    assert list(held) == ["embedding"] and held["embedding"].dtype == dtype
    assert held["embedding"].view(torch.uint8).numpy().tobytes() == found.table.tobytes()
    np.testing.assert_array_equal(load(path), held["embedding"].float().numpy())
    facts = information(path)
    assert (facts.rows, facts.width, facts.dtype) == (ROWS, WIDTH, found.dtype)
    assert (facts.source, facts.model_revision, facts.tied) == ("transformer.wte.weight", "commit", True)
    assert facts.sha256 == found.sha256()


def test_hash_tells_tables_apart_and_equal_ones_together(tmp_path):
    """Trap 12 rests on this: revisions that serve one table are known by their hash."""
    first, second = make(tmp_path / "a", "gpt2"), to_torch(make(tmp_path / "b", "gpt2"))
    assert embedding(first).sha256() == embedding(second).sha256()
    held = weights(first)
    held["transformer.wte.weight"][0, 0] += 1
    rewrite(first, held)
    assert embedding(first).sha256() != embedding(second).sha256()


def test_file_that_is_no_table_is_refused_by_name(tmp_path):
    save_file({"other": torch.zeros(2, 2)}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match="x.safetensors: no tensor embedding"):
        load(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"model_type": ["llama"]}, '`model_type` must be a string, in quotes, and is ["llama"]'),
        (
            {"model_type": "llama", "tie_word_embeddings": "false"},
            "`tie_word_embeddings` must be true or false",
        ),
    ],
)
def test_a_value_of_another_type_is_refused_by_file_and_key(said, message):
    with pytest.raises(LmshapeError, match=f"^toy: {re.escape(message)}"):
        architecture(said, "toy")


def test_scoring_a_table_imports_no_torch():
    code = "import lmshape.inputs.checkpoints, sys; assert not {'torch', 'transformers', 'gguf'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("side", "rows", "width", "right"),
    [
        ("input", 6, 3, "`vocabulary_rows: 5`, `width: 3`"),
        ("input", 5, 4, "`vocabulary_rows: 5`, `width: 3`"),
        ("output", 3, 5, "`output_rows: 5`, `output_width: 3`"),
    ],
)
def test_a_table_of_another_shape_than_the_suite_says_is_refused_with_the_right_one(side, rows, width, right):
    table = Embedding(np.ones((5, 3), np.float32), "float32", "F32", "embed", False)
    require_described(table, "suite own, size 1m", side, True, 5, 3)
    with pytest.raises(CheckpointError) as refusal:
        require_described(table, "suite own, size 1m", side, True, rows, width)
    assert str(refusal.value) == (
        f"suite own, size 1m: the {side} embedding of the checkpoint has shape (5, 3), and the suite says "
        f"{(rows, width)}: write {right}"
    )


@pytest.mark.parametrize(("tied", "right"), [(True, "untied: false"), (False, "untied: true")])
def test_a_suite_that_takes_one_table_for_two_or_two_for_one_is_refused(tied, right):
    table = Embedding(np.ones((5, 3), np.float32), "float32", "F32", "embed", tied)
    require_described(table, "suite own, size 1m", "input", not tied, 5, 3)
    with pytest.raises(CheckpointError, match=f"suite own, size 1m: .* input and output .*: write `{right}`"):
        require_described(table, "suite own, size 1m", "input", tied, 5, 3)
