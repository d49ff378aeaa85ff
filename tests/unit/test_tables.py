"""Rows gathered: types agreed, repeated tables flagged."""

import polars as pl

from lmshape import results
from lmshape.report import tables


def test_a_column_without_values_takes_the_type_it_has_elsewhere(tmp_path):
    results.save_rows([{"step": None, "reason": "too few"}], {}, tmp_path / "a.parquet")
    results.save_rows([{"step": 8, "reason": None}], {}, tmp_path / "b.parquet")
    frame = tables.collect([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert frame["step"].to_list() == [None, 8] and frame["reason"].to_list() == ["too few", None]


def test_what_a_suite_says_of_a_model_joins_its_rows_after_the_columns_that_name_it():
    rows = pl.DataFrame(
        {
            "suite": "p",
            "size": ["a", "b", "b"],
            "checkpoint": ["main", "main", "step16"],
            "stack": [None, None, "encoder"],
            "value": [1.0, 2.0, 3.0],
        }
    )
    frame = tables.describe(rows, "decoder", "main", {"a": 10, "b": 20})
    assert frame.columns == [
        "suite", "size", "parameters", "architecture", "checkpoint", "step", "final", "stack", "value",
    ]  # fmt: skip
    assert frame["parameters"].to_list() == [10, 20, 20]
    assert frame["step"].to_list() == [None, None, 16]
    assert frame["final"].to_list() == [True, True, False]
    assert frame["stack"].to_list() == ["decoder", "decoder", "encoder"]
    nowhere = rows.with_columns(stack=None)  # no file of theirs has several stacks
    assert (
        tables.describe(nowhere, "decoder", "main", {"a": 10, "b": 20})["stack"].unique().item() == "decoder"
    )
    assert "stack" not in tables.describe(rows.drop("stack"), "decoder", "main", {"a": 10, "b": 20}).columns


def test_checkpoints_that_serve_one_table_are_flagged():
    """Trap: step branches that hold the weights of another step."""
    rows = [
        {
            "suite": "p",
            "size": size,
            "side": "input",
            "checkpoint": checkpoint,
            "step": step,
            "table_sha256": digest,
        }
        for size, checkpoint, step, digest in [
            ("a", "main", None, "x"),
            ("a", "step8", 8, "y"),
            ("a", "step4", 4, "y"),
            ("a", "step16", 16, "x"),
            ("b", "step16", 16, "y"),
        ]
    ]
    frame = tables.flag_repeats(pl.DataFrame(rows))
    assert frame["same_table_as"].to_list() == ["step16", "step4", None, None, None]
    assert tables.flag_repeats(pl.DataFrame({"a": [1]})).columns == ["a"]


def test_trap_12_whole_models_are_flagged_by_their_input_table_and_never_for_want_of_a_hash():
    steps = {"step4": ("x", 4), "step8": ("x", 8), "step16": (None, 16), "main": (None, None)}
    rows = [
        {"suite": "p", "size": "a", "checkpoint": name, "step": step, "layer": layer, "table_sha256": digest}
        for name, (digest, step) in steps.items()
        for layer in (0, 1)
    ]
    frame = tables.flag_repeats(pl.DataFrame(rows))
    flags = frame.select("checkpoint", "same_table_as").unique(maintain_order=True)
    assert dict(flags.iter_rows()) == {"step4": None, "step8": "step4", "step16": None, "main": None}
