"""Checkpoints that are one and the same model are told by the hash of their input embedding table."""

import hashlib
import json
import logging

import gguf
import numpy as np
import polars as pl
import pytest
import torch
import transformers as tf

from lmshape import anisotropy, intrinsic_dimension
from lmshape.errors import LmshapeError
from lmshape.inputs import checkpoints, revisions
from lmshape.models.hidden_states import HiddenStates, collect
from lmshape.models.identity import identity
from lmshape.report import tables

CONFIG = tf.GPTNeoXConfig(
    vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64
)


def save_checkpoint(folder, seed, dtype=torch.float32):
    """A model folder as the hub serves it: weights that depend on `seed` alone, and its own commit."""
    torch.manual_seed(seed)
    tf.AutoModelForCausalLM.from_config(CONFIG).to(dtype).save_pretrained(folder)
    revisions.write(folder, "owner/name", folder.name, f"commit of {folder.name}")
    return folder


def test_trap_12_two_steps_that_serve_the_same_weights_are_flagged_in_the_tables_of_hidden_states(tmp_path):
    text = [np.random.default_rng(i).integers(0, 60, 20).astype(np.int32) for i in range(8)]
    rows = {"anisotropy": [], "intrinsic_dimension": []}
    for step, seed in {1: 0, 2: 1, 4: 0}.items():  # step 4 serves step 1 again
        folder = save_checkpoint(tmp_path / f"step{step}", seed)
        collect(
            folder, text, tmp_path / "states", name=f"toy step{step}", batch_size=60,
            identity=identity(folder),
        )  # fmt: skip
        states, columns = HiddenStates(tmp_path / "states"), {"suite": "toy", "size": "s", "step": step}
        columns |= {"checkpoint": f"step{step}"}
        rows["anisotropy"] += [columns | row for row in anisotropy.rows(states)]
        rows["intrinsic_dimension"] += [
            columns | row for row in intrinsic_dimension.rows(states, ["twonn"], [0.9])
        ]
    for table in rows.values():
        frame = tables.flag_repeats(pl.DataFrame(table, infer_schema_length=None))
        known = frame.select("checkpoint", "same_table_as", "model_revision").unique(maintain_order=True)
        assert known.rows() == [
            ("step1", None, "commit of step1"),
            ("step2", None, "commit of step2"),
            ("step4", "step1", "commit of step4"),
        ]


def test_the_hash_is_that_of_the_table_that_is_scored_in_the_checkpoints_own_type(tmp_path):
    folder = save_checkpoint(tmp_path / "step1", 0, torch.bfloat16)
    checkpoints.save(checkpoints.embedding(folder), tmp_path / "input.safetensors", "commit")
    found = identity(folder)
    assert found["table_sha256"] == checkpoints.information(tmp_path / "input.safetensors").sha256
    assert found["table_sha256"] != identity(save_checkpoint(tmp_path / "step2", 0))["table_sha256"]


def test_of_a_quantised_gguf_file_the_values_are_hashed_that_it_stands_for(tmp_path):
    table = np.random.default_rng(0).standard_normal((60, 32)).astype(np.float32)
    kind = gguf.GGMLQuantizationType.Q8_0
    stored = gguf.quantize(table, kind)
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_tensor("token_embd.weight", stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    revisions.write(tmp_path, "package", "1.0", "package 1.0")
    values = gguf.dequantize(stored, kind)
    assert identity(tmp_path) == {
        "table_sha256": hashlib.sha256(values.tobytes()).hexdigest(),
        "model_revision": "package 1.0",
    }


def test_a_family_whose_embeddings_have_no_known_name_is_measured_without_a_hash_and_the_log_says_so(
    tmp_path, caplog
):
    folder = save_checkpoint(tmp_path / "step1", 0)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "unheard-of"}))
    with caplog.at_level(logging.WARNING):
        assert identity(folder) == {"table_sha256": None, "model_revision": "commit of step1"}
    assert "unheard-of" in caplog.text and "no table_sha256" in caplog.text


def test_a_folder_that_does_not_say_its_revision_is_an_error(tmp_path):
    folder = save_checkpoint(tmp_path / "step1", 0)
    (folder / revisions.RECORD).unlink()
    with pytest.raises(LmshapeError, match="no revision.json"):
        identity(folder)
