"""Which tokens of a text are looked at: pieces from all over it, and positions in them, at random."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmshape.errors import LmshapeError


def pieces(
    ids: np.ndarray, bounds: np.ndarray, length: int, special: tuple[Sequence[int], Sequence[int]] = ((), ())
) -> list[np.ndarray]:
    """All sequences of at most `length` ids that a text gives a model to read, in training and in measuring.

    `ids` and `bounds` are as `lmshape.inputs.tokens.token_ids` gives them. Every text is cut into consecutive
    pieces, to each of which the `special` ids that the model expects before and after are added. A piece of one id
    is left out.
    """
    before, after = (np.asarray(part, dtype=ids.dtype) for part in special)
    size = length - len(before) - len(after)
    if size < 1:
        raise LmshapeError(
            f"sequence_length {length}: there is no room beside {length - size} special tokens"
        )
    return [
        np.concatenate([before, ids[start : min(start + size, end)], after])
        for begin, end in zip(bounds[:-1], bounds[1:], strict=True)
        for start in range(begin, end, size)
        if end - start > 1
    ]


def cut(
    ids: np.ndarray,
    bounds: np.ndarray,
    length: int,
    tokens: int,
    seed: int,
    special: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> list[np.ndarray]:
    """Sequences from all over a text, about `tokens` ids in total: `pieces` of it, taken in random order.

    There are as many as it takes, or all of them, if the text is short.
    """
    found = pieces(ids, bounds, length, special)
    chosen: list[np.ndarray] = []
    total = 0
    for i in np.random.default_rng(seed).permutation(len(found)):
        if total >= tokens:
            break
        chosen.append(found[i])
        total += len(found[i])
    return chosen


@dataclass(frozen=True)
class Sample:
    """Token positions, in random order: `sequences` (n,) says of which sequence, `positions` (n,) where in it."""

    sequences: np.ndarray
    positions: np.ndarray


def draw(lengths: Sequence[int], vectors: int, seed: int) -> Sample:
    """Draw token positions without replacement, just enough for `vectors` of them that are not first in a sequence.

    They are the shortest beginning of one random order of all positions that has so many, or all of them. So its
    first `vectors` serve `all`, its first `vectors` that are not first in their sequence serve `without_first`.
    """
    lengths = np.asarray(lengths)
    order = np.random.default_rng(seed).permutation(int(lengths.sum()))
    ends = np.cumsum(lengths)
    sequences = np.searchsorted(ends, order, side="right")
    positions = order - (ends - lengths)[sequences]
    others = np.flatnonzero(positions > 0)
    count = others[vectors - 1] + 1 if len(others) >= vectors else len(order)
    return Sample(sequences[:count], positions[:count])
