"""Ablations of an embedding table, each a small function; their names are in `lmshape.study.ablation_names`.

An ablated table is a list of panels that lie side by side: arrays, and columns of random tables that are drawn
when they are needed. `vocabulary` is the number of rows that stand for tokens: rows from there on are padding,
which no text uses and no statistic here looks at.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg import eigh

from lmshape.errors import LmshapeError
from lmshape.numerics.random_tables import RandomColumns
from lmshape.study.ablation_names import RANDOM_WIDTH, Ablation

Panel = np.ndarray | RandomColumns
BLOCK = 8192  # rows centred at once, whose products are summed in float32 before they are added in float64
OF_TOKENS = ("pca", "centered", "shuffled")  # those that must know which rows stand for tokens


class AblationError(LmshapeError):
    """A table that cannot be ablated so; the message says why."""


def apply(ablation: Ablation, table: np.ndarray, vocabulary: int, seed: int | None = None) -> list[Panel]:
    """The panels of `table` (rows, width) float32 under an ablation; AblationError where it cannot be.

    A tokenizer can have ids beyond the table that no text uses: only what looks at all tokens is refused then.
    """
    rows, width = table.shape
    if reason := ablation.impossible(width):
        raise AblationError(reason)
    if vocabulary > rows and ablation.kind in OF_TOKENS:
        raise AblationError(f"{ablation}: {vocabulary} tokens do not fit in a table of {rows} rows")
    if ablation.random and seed is None:
        raise ValueError(f"{ablation} draws numbers and needs a seed")
    match ablation.kind:
        case "original":
            return [table]
        case "random":
            return [RandomColumns(rows, RANDOM_WIDTH, seed, 0, width)]
        case "crop":
            return [table[:, : ablation.size]]
        case "pad":
            padding = RandomColumns(rows, ablation.size, seed, width, ablation.size)
            return [table, padding] if padding.shape[1] else [table]
        case "pca":
            return [principal(table, ablation.size, vocabulary)]
        case "centered":
            return [centered(table, vocabulary)]
        case "shuffled":
            return [shuffled(table, seed, vocabulary)]


def centered(table: np.ndarray, vocabulary: int) -> np.ndarray:
    """The table less the mean of its tokens' rows."""
    return table - mean_row(table, vocabulary)


def mean_row(table: np.ndarray, vocabulary: int) -> np.ndarray:
    """The mean of the tokens' rows, (width,), summed in float64."""
    return table[:vocabulary].mean(axis=0, dtype=np.float64).astype(table.dtype)


def principal(table: np.ndarray, size: int, vocabulary: int) -> np.ndarray:
    """The centred table in its `size` directions of largest variance, (rows, size).

    All of them together are a rotation of the centred table, which cosines do not see. Centred by blocks of rows, so
    that no second table of the whole width is in memory.
    """
    width, mean = table.shape[1], mean_row(table, vocabulary)
    covariance = np.zeros((width, width))
    for rows in blocks(vocabulary):
        block = table[rows] - mean
        covariance += block.T @ block
    if not np.isfinite(covariance).all():
        raise AblationError(
            "the covariance of the table is not finite: it holds NaN, infinite or too large values"
        )
    _, directions = eigh(covariance, subset_by_index=(width - size, width - 1), overwrite_a=True)
    directions = directions[:, ::-1].astype(table.dtype)
    projected = np.empty((len(table), size), table.dtype)
    for rows in blocks(len(table)):
        projected[rows] = (table[rows] - mean) @ directions
    return projected


def blocks(rows: int) -> Iterator[slice]:
    """Slices of up to BLOCK rows that cover `rows` rows."""
    return (slice(first, min(first + BLOCK, rows)) for first in range(0, rows, BLOCK))


def shuffled(table: np.ndarray, seed: int, vocabulary: int) -> np.ndarray:
    """The rows in random order: the same geometry, with every token's meaning given to another."""
    order = np.arange(len(table))
    order[:vocabulary] = np.random.default_rng(seed).permutation(vocabulary)
    return table[order]
