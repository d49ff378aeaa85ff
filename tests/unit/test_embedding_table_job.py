"""The job that reads an embedding table compares it with what the suite says, on either side."""

import json

import numpy as np
import pytest
import script_job

from lmshape.inputs import checkpoints, revisions, tensor_files

INPUT, OUTPUT = "rembert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
ARRAYS = {INPUT: np.ones((6, 2), np.float32), OUTPUT: np.full((7, 5), 2, np.float32)}


@pytest.fixture
def read(tmp_path):
    """Run the job on a model whose output table is wider and longer than its input table."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "rembert"}))
    arrays = {name: (array, "float32") for name, array in ARRAYS.items()}
    tensor_files.write(tmp_path / "model.safetensors", arrays, {})
    revisions.write(tmp_path, "here", "r1", "r1")

    def run(side: str, shape: tuple[int, int], untied: bool = True) -> np.ndarray:
        script_job.run(
            "embedding_table",
            tmp_path,
            input={"folder": str(tmp_path)},
            output={"table": "table.safetensors"},
            params={
                "within": ".",
                "model": "suite wide, size s",
                "side": side,
                "shape": shape,
                "untied": untied,
            },
        )
        return checkpoints.load(tmp_path / "table.safetensors")

    return run


@pytest.mark.parametrize(("side", "name"), [("input", INPUT), ("output", OUTPUT)])
def test_each_side_has_a_shape_of_its_own(read, side, name):
    assert np.array_equal(read(side, ARRAYS[name].shape), ARRAYS[name])
    with pytest.raises(
        AssertionError, match=rf"suite wide, size s: the {side} embedding .* shape \(\d, \d\)"
    ):
        read(side, (6, 5))


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_suite_that_takes_two_tables_for_one_is_refused_whichever_is_read(read, side):
    with pytest.raises(
        AssertionError, match="suite wide, size s: .* tables of their own: write `untied: true`"
    ):
        read(side, (6, 2), untied=False)
