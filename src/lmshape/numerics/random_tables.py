"""Random embedding tables, the published study's exact stream, of which no more than a block is ever in memory.

Drawing one takes as long as scoring thousands of documents: what texts use of it is kept in a temporary file.

The study draws `torch.manual_seed(seed)`, a bfloat16 matrix of (vocabulary, 14336) and `xavier_normal_`, and
takes the first d columns, so that a token's row is the same whatever d is. Padding to N draws (vocabulary, N) and
takes columns d to N. torch fills a matrix row by row in groups of 16 numbers: blocks of a multiple of 16 rows,
drawn one after another, are the whole matrix bit for bit.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array

if TYPE_CHECKING:
    import torch

BLOCK = 4096  # rows drawn at once: 112 MiB at 14,336 columns; a multiple of 16
TILE = 512  # columns turned to float32 at once


@dataclass(frozen=True)
class RandomColumns:
    """Columns `start` to `stop` of the random matrix of (rows, length) that `seed` draws, as float32."""

    rows: int
    length: int
    seed: int
    start: int
    stop: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.stop - self.start

    def blocks(self) -> Iterator[tuple[int, torch.Tensor]]:
        """(first row, bfloat16 block of rows), all columns drawn and ours kept, from the first row on."""
        import torch  # 3 s: only what draws numbers pays for it

        generator = torch.Generator().manual_seed(self.seed)
        deviation = math.sqrt(2 / (self.rows + self.length))  # xavier_normal_
        # fewer than 16 numbers at once would be drawn another way
        step = BLOCK if self.length >= 16 else self.rows
        for first in range(0, self.rows, step):
            block = torch.empty(min(step, self.rows - first), self.length, dtype=torch.bfloat16)
            yield first, block.normal_(0, deviation, generator=generator)[:, self.start : self.stop]

    def array(self) -> np.ndarray:
        """The whole, (rows, stop - start): for tables that fit in memory."""
        return np.concatenate([block.float().numpy() for _, block in self.blocks()])

    @contextmanager
    def drawn(self, used: np.ndarray) -> Iterator[DrawnRows]:
        """The rows that are `used` (ascending, distinct), drawn once, until the context ends.

        They lie in a file without a name, 2 bytes a number, where temporary files go (TMPDIR).
        """
        import torch

        with tempfile.TemporaryFile() as file:
            tokens = []
            for first, block in self.blocks():
                tokens.append(used[(first <= used) & (used < first + len(block))])
                block[tokens[-1] - first].view(torch.int16).numpy().tofile(file)
            yield DrawnRows(file, tokens, self.shape)


@dataclass(frozen=True)
class DrawnRows:
    """Rows of a random table of `shape` in `file`, block after block; `tokens` says of each block which rows."""

    file: IO[bytes]
    tokens: list[np.ndarray]
    shape: tuple[int, int]

    def sums(self, counts: csr_array) -> np.ndarray:
        """counts @ table, (texts, width) float32, for counts (texts, rows) float32 of tokens that were drawn."""
        sums = np.zeros((counts.shape[0], self.shape[1]), np.float32)
        by_token = csc_array(counts)
        self.file.seek(0)
        for tokens in self.tokens:
            block = np.fromfile(self.file, np.uint16, len(tokens) * self.shape[1]).reshape(-1, self.shape[1])
            of_block = by_token[:, tokens]
            for left in range(0, self.shape[1], TILE):
                # a bfloat16 is the upper half of the same number in float32
                tile = block[:, left : left + TILE].astype(np.uint32) << 16
                sums[:, left : left + TILE] += of_block @ tile.view(np.float32)
        return sums
