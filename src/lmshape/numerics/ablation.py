"""Ablations of an embedding table, each a small function; their names are in `lmshape.study.ablation_names`.

An ablated table is a list of panels that lie side by side: arrays, and columns of random tables that are drawn
when they are needed. The function of an ablation takes the table (rows, width) float32 and, by name, what else it
needs: `size`, the number in its name; `seed`; `vocabulary`, the number of rows that stand for tokens (rows from there
on are padding, which no text uses and no statistic here looks at). It raises AblationError where it cannot be.
"""

from collections.abc import Callable, Iterator
from inspect import signature

import numpy as np

from lmshape.errors import LmshapeError
from lmshape.numerics.random_tables import RandomColumns
from lmshape.study.ablation_names import RANDOM_WIDTH, Ablation, narrower, too_wide_to_draw, wider

Panel = np.ndarray | RandomColumns
BLOCK = 4096  # rows centred at once, in float64


class AblationError(LmshapeError):
    """A table that cannot be ablated so; the message says why."""


def apply(ablation: Ablation, table: np.ndarray, vocabulary: int, seed: int | None = None) -> list[Panel]:
    """The panels of `table` (rows, width) float32 under an ablation; AblationError where it cannot be."""
    return ablate(globals()[ablation.kind], str(ablation), table, vocabulary, ablation.size, seed)


def ablate(
    function: Callable[..., list[Panel]],
    name: str,
    table: np.ndarray,
    vocabulary: int,
    size: int | None = None,
    seed: int | None = None,
) -> list[Panel]:
    """What `function` makes of `table` (rows, width) float32; `name` is what messages call it.

    A tokenizer can have ids beyond the table that no text uses: only what looks at all tokens is refused then.
    """
    given = {"size": size, "seed": seed, "vocabulary": vocabulary}
    needed = {name: given[name] for name in signature(function).parameters if name in given}
    if needed.get("vocabulary", 0) > len(table):
        raise AblationError(f"{name}: {vocabulary} tokens do not fit in a table of {len(table)} rows")
    if "seed" in needed and seed is None:
        raise ValueError(f"{name} draws numbers and needs a seed")
    return function(table, **needed)


def require(reason: str | None) -> None:
    """AblationError with the reason, where there is one."""
    if reason:
        raise AblationError(reason)


def original(table: np.ndarray) -> list[Panel]:
    """The table as it is."""
    return [table]


def random(table: np.ndarray, seed: int) -> list[Panel]:
    """Noise of the table's shape."""
    rows, width = table.shape
    require(too_wide_to_draw("random", None, width))
    return [RandomColumns(rows, RANDOM_WIDTH, seed, 0, width)]


def crop(table: np.ndarray, size: int) -> list[Panel]:
    """The first `size` columns."""
    require(wider(f"crop-{size}", size, table.shape[1]))
    return [table[:, :size]]


def pad(table: np.ndarray, size: int, seed: int) -> list[Panel]:
    """The table, made `size` wide with noise."""
    rows, width = table.shape
    require(narrower(f"pad-{size}", size, width))
    padding = RandomColumns(rows, size, seed, width, size)
    return [table, padding] if padding.shape[1] else [table]


def pca(table: np.ndarray, size: int, vocabulary: int) -> list[Panel]:
    """The table in its `size` directions of largest variance."""
    require(wider(f"pca-{size}", size, table.shape[1]))
    return [principal(table, size, vocabulary)]


def centered(table: np.ndarray, vocabulary: int) -> list[Panel]:
    """The table less the mean of its tokens' rows."""
    return [table - mean_row(table, vocabulary)]


def shuffled(table: np.ndarray, seed: int, vocabulary: int) -> list[Panel]:
    """The rows in random order: the same geometry, with every token's meaning given to another."""
    order = np.arange(len(table))
    order[:vocabulary] = np.random.default_rng(seed).permutation(vocabulary)
    return [table[order]]


def mean_row(table: np.ndarray, vocabulary: int) -> np.ndarray:
    """The mean of the tokens' rows, (width,), summed in float64."""
    return table[:vocabulary].mean(axis=0, dtype=np.float64).astype(table.dtype)


def principal(table: np.ndarray, size: int, vocabulary: int) -> np.ndarray:
    """The centred table in its `size` directions of largest variance, (rows, size).

    All of them together are a rotation of the centred table, which cosines do not see. Centred by blocks of rows, so
    that no second table of the whole width is in memory; in float64, so that the last digits of a sum, which differ
    between processors, turn no direction that scores can see.
    """
    from scipy.linalg import eigh  # a tenth of a second, which other ablations need not spend

    width, mean = table.shape[1], mean_row(table, vocabulary)
    covariance = np.zeros((width, width))
    for rows in blocks(vocabulary):
        block = (table[rows] - mean).astype(np.float64)
        covariance += block.T @ block
    if not np.isfinite(covariance).all():
        raise AblationError(
            "the covariance of the table is not finite: it holds NaN, infinite or too large values"
        )
    _, directions = eigh(covariance, subset_by_index=(width - size, width - 1), overwrite_a=True)
    projected = np.empty((len(table), size), table.dtype)
    for rows in blocks(len(table)):
        projected[rows] = (table[rows] - mean).astype(np.float64) @ directions[:, ::-1]
    return projected


def blocks(rows: int) -> Iterator[slice]:
    """Slices of up to BLOCK rows that cover `rows` rows."""
    return (slice(first, min(first + BLOCK, rows)) for first in range(0, rows, BLOCK))
