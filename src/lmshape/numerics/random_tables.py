"""Random embedding tables, the published study's exact stream, of which no more than a block is ever in memory.

Drawing one takes as long as scoring thousands of documents: it is drawn once, into a file.

The study draws `torch.manual_seed(seed)`, a bfloat16 matrix of (vocabulary, 14336) and `xavier_normal_`, and
takes the first d columns, so that a token's row is the same whatever d is. Padding to N draws (vocabulary, N) and
takes columns d to N. torch fills a matrix row by row in groups of 16 numbers: blocks of a multiple of 16 rows,
drawn one after another, are the whole matrix bit for bit.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array

from lmshape.errors import LmshapeError
from lmshape.files import writing
from lmshape.numerics import threads

if TYPE_CHECKING:
    import torch

BLOCK = 4096  # rows drawn at once: 112 MiB at 14,336 columns; a multiple of 16
TILE = 512  # columns that lie together in a file, and are turned to float32 at once
PIECE = 2**20  # bytes of sums that scipy makes at once, which stay in the cache


@dataclass(frozen=True)
class RandomColumns:
    """Columns `start` to `stop` of the random matrix of (rows, length) that `seed` draws, as float32.

    `file` is where `save` has put its first columns, if it has.
    """

    rows: int
    length: int
    seed: int
    start: int
    stop: int
    file: Path | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.stop - self.start

    @property
    def step(self) -> int:
        """Rows drawn, and added up, at once: fewer than 16 numbers at once would be drawn another way."""
        return BLOCK if self.length >= 16 else self.rows

    def blocks(self) -> Iterator[tuple[int, torch.Tensor]]:
        """(first row, bfloat16 block of rows), all columns drawn and ours kept, from the first row on."""
        import torch  # 3 s: only what draws numbers pays for it

        generator = torch.Generator().manual_seed(self.seed)
        deviation = math.sqrt(2 / (self.rows + self.length))  # xavier_normal_
        for first in range(0, self.rows, self.step):
            block = torch.empty(min(self.step, self.rows - first), self.length, dtype=torch.bfloat16)
            yield first, block.normal_(0, deviation, generator=generator)[:, self.start : self.stop]

    def array(self) -> np.ndarray:
        """The whole, (rows, stop - start): for tables that fit in memory."""
        return np.concatenate([block.float().numpy() for _, block in self.blocks()])

    def write(self, file: IO[bytes], kept: np.ndarray) -> None:
        """Draw the rows that are `kept` (ascending) into a file, 2 bytes a number, one tile after another."""
        import torch

        for first, block in self.blocks():
            low, high = np.searchsorted(kept, (first, first + len(block)))
            rows = block[kept[low:high] - first].view(torch.int16).numpy()
            for left in range(0, self.shape[1], TILE):
                tile = np.ascontiguousarray(rows[:, left : left + TILE])
                file.seek(2 * (len(kept) * left + low * tile.shape[1]))
                file.write(tile)
        file.flush()

    @contextmanager
    def drawn(self, used: np.ndarray) -> Iterator[DrawnRows]:
        """The rows that are `used` (ascending, distinct), until the context ends.

        They are those of `file`. Without one they are drawn into a file without a name, where temporary files go
        (TMPDIR). LmshapeError where `file` has not all of our columns.
        """
        if self.file:
            with self.file.open("rb") as file:
                columns, rest = divmod(os.fstat(file.fileno()).st_size, 2 * self.rows)
                if columns < self.stop or rest:
                    raise LmshapeError(
                        f"{self.file}: {columns} columns of {self.rows} rows, and {rest} bytes: the first "
                        f"{self.stop} columns of a random table are needed; delete it, so that it is drawn again"
                    )
                yield DrawnRows(file, self, used, used, self.rows, 0, columns)
        else:
            with tempfile.TemporaryFile() as file:
                self.write(file, used)
                places = np.arange(len(used))
                yield DrawnRows(file, self, used, places, len(used), self.start, self.stop)


def save(table: RandomColumns, path: str | Path) -> None:
    """Draw the first columns of a random matrix into a file, for any number of readers (`from_file`)."""
    with writing(path) as temporary, temporary.open("wb") as file:
        table.write(file, np.arange(table.rows))


def from_file(panels: Sequence, path: str | Path | None) -> list:
    """The panels of a table, those that are random with the numbers that `save` put into a file, if there is one."""
    file = Path(path) if path else None
    return [replace(panel, file=file) if isinstance(panel, RandomColumns) else panel for panel in panels]


@dataclass(frozen=True)
class DrawnRows:
    """Rows of random `columns` in a file that has `rows` rows of the columns from `left` to `right`, tile by tile.

    `tokens` (ascending) are those that are there, in the file's rows `places`.
    """

    file: IO[bytes]
    columns: RandomColumns
    tokens: np.ndarray
    places: np.ndarray
    rows: int
    left: int
    right: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.columns.shape

    def tiles(self) -> Iterator[tuple[int, np.ndarray]]:
        """(first column, numbers (rows, columns) as they lie in the file, mapped into memory) of what we need."""
        for first in range(self.left, self.right, TILE):
            width = min(TILE, self.right - first)
            if first < self.columns.stop and first + width > self.columns.start and self.rows:
                offset = 2 * self.rows * (first - self.left)
                yield first, np.asarray(np.memmap(self.file, np.uint16, "r", offset, (self.rows, width)))

    def sums(self, counts: csr_array) -> np.ndarray:
        """counts @ table, (texts, width) float32, for counts (texts, rows) float32 of tokens that were drawn.

        A block of rows after another: the last digits of a sum do not depend on which rows or columns a file has.
        """
        start, stop = self.columns.start, self.columns.stop
        sums = np.zeros((counts.shape[0], stop - start), np.float32)
        step = PIECE // (4 * min(stop - start, TILE))
        texts = [slice(first, first + step) for first in range(0, counts.shape[0], step)]
        by_token = [csc_array(counts[some]) for some in texts]
        cuts = np.searchsorted(self.tokens, range(0, self.columns.rows, self.columns.step))
        blocks = [
            (places, [piece[:, tokens] for piece in by_token])
            for tokens, places in zip(np.split(self.tokens, cuts), np.split(self.places, cuts), strict=True)
            if len(tokens)
        ]
        for first, tile in self.tiles():
            low, high = max(first, start), min(first + tile.shape[1], stop)
            for places, pieces in blocks:
                # a bfloat16 is the upper half of the same number in float32
                bits = tile[places, low - first : high - first].astype(np.uint32) << 16
                part, numbers = sums[:, low - start : high - start], bits.view(np.float32)

                def add(number: int, part=part, numbers=numbers, pieces=pieces) -> None:
                    part[texts[number]] += pieces[number] @ numbers

                threads.each(add, range(len(texts)))
        return sums
