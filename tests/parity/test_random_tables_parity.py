"""The blockwise random table is the published study's, drawn whole by torch, bit for bit."""

import numpy as np
import pytest
import torch

from lmshape.numerics import random_tables
from lmshape.numerics.ablation import apply
from lmshape.numerics.random_tables import RandomColumns
from lmshape.study.ablation_names import RANDOM_WIDTH, Ablation


def whole(rows, columns, seed):
    torch.manual_seed(seed)
    weights = torch.empty((rows, columns), dtype=torch.bfloat16)
    return torch.nn.init.xavier_normal_(weights).float().numpy()


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(100, 64), (33, 16), (70, 48), (31, 17), (64, 30), (1, 40), (5, 3), (1000, 9), (40, RANDOM_WIDTH)],
)
@pytest.mark.parametrize("seed", [0, 42])
def test_blocks_are_the_whole_matrix_bit_for_bit(rows, columns, seed, monkeypatch):
    monkeypatch.setattr(random_tables, "BLOCK", 16)
    assert np.array_equal(RandomColumns(rows, columns, seed, 0, columns).array(), whole(rows, columns, seed))


def test_the_block_in_use_is_the_whole_matrix_bit_for_bit():
    rows = random_tables.BLOCK + 17
    assert np.array_equal(RandomColumns(rows, 1088, 42, 0, 1088).array(), whole(rows, 1088, 42))


@pytest.mark.parametrize("block", [16, 48, 112, 4096])
def test_the_random_ablation_is_the_first_columns_of_the_widest_table(block, monkeypatch):
    monkeypatch.setattr(random_tables, "BLOCK", block)
    table = np.zeros((150, 96), np.float32)
    (panel,) = apply(Ablation.parse("random"), table, 150, seed=42)
    assert np.array_equal(panel.array(), whole(150, RANDOM_WIDTH, 42)[:, :96])


@pytest.mark.parametrize("block", [16, 48, 112, 4096])
@pytest.mark.parametrize("padded", [97, 160, 1000])
def test_padding_is_the_last_columns_of_a_table_of_the_padded_width(block, padded, monkeypatch):
    monkeypatch.setattr(random_tables, "BLOCK", block)
    table = np.ones((150, 96), np.float32)
    first, padding = apply(Ablation.parse(f"pad-{padded}"), table, 150, seed=42)
    assert first is table
    assert np.array_equal(padding.array(), whole(150, padded, 42)[:, 96:])


def test_of_blooms_table_no_more_than_a_block_is_ever_there():
    rows, deviation = 250_880, (2 / (250_880 + RANDOM_WIDTH)) ** 0.5  # xavier_normal_
    _, block = next(RandomColumns(rows, RANDOM_WIDTH, 42, 0, RANDOM_WIDTH).blocks())
    assert block.untyped_storage().nbytes() == random_tables.BLOCK * RANDOM_WIDTH * 2  # 112 MiB, not 6.7 GiB
    start = torch.empty(64, RANDOM_WIDTH, dtype=torch.bfloat16)
    start.normal_(0, deviation, generator=torch.Generator().manual_seed(42))
    assert torch.equal(block[:64], start)
