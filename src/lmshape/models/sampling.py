"""Which tokens of a text are looked at: pieces from all over it, and positions in them, at random."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmshape.errors import LmshapeError


def cut(
    ids: np.ndarray,
    bounds: np.ndarray,
    length: int,
    tokens: int,
    seed: int,
    special: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> list[np.ndarray]:
    """Sequences of at most `length` ids from all over a text, about `tokens` ids in total.

    `ids` and `bounds` are as `lmshape.inputs.tokens.token_ids` gives them. Every text is cut into consecutive
    pieces, to each of which the `special` ids that the model expects before and after are added; pieces are then
    taken in random order until there are enough (all of them, if the text is short). A piece of one id is left out.
    """
    before, after = (np.asarray(part, dtype=ids.dtype) for part in special)
    size = length - len(before) - len(after)
    if size < 1:
        raise LmshapeError(
            f"sequence_length {length}: there is no room beside {length - size} special tokens"
        )
    pieces = [
        (start, min(start + size, end))
        for begin, end in zip(bounds[:-1], bounds[1:], strict=True)
        for start in range(begin, end, size)
        if end - start > 1
    ]
    order = np.random.default_rng(seed).permutation(len(pieces))
    chosen: list[np.ndarray] = []
    total = 0
    for start, end in (pieces[i] for i in order):
        if total >= tokens:
            break
        chosen.append(np.concatenate([before, ids[start:end], after]))
        total += len(chosen[-1])
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
