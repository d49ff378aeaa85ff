"""Which tokens of a text are looked at: texts dealt over batches, pieces from all over them, positions at random."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmshape.errors import LmshapeError

Special = tuple[Sequence[int], Sequence[int]]  # ids that a model expects before and after a text


@dataclass(frozen=True)
class Pieces:
    """Sequences of ids, each of one text: `texts` (n,) says of which, `batches` (n,) in which batch."""

    sequences: list[np.ndarray]
    texts: np.ndarray
    batches: np.ndarray


def pieces(
    ids: np.ndarray, bounds: np.ndarray, length: int, special: Special = ((), ())
) -> tuple[list[np.ndarray], list[int]]:
    """All sequences of at most `length` ids that texts give a model to read, in training and in measuring.

    `ids` and `bounds` are as `lmshape.inputs.tokens.token_ids` gives them. Every text is cut into consecutive
    pieces, to each of which the `special` ids that the model expects before and after are added. A piece of one id
    is left out. Returned with the number of each one's text.
    """
    before, after = (np.asarray(part, dtype=ids.dtype) for part in special)
    size = length - len(before) - len(after)
    if size < 1:
        raise LmshapeError(
            f"sequence_length {length}: there is no room beside {length - size} special tokens"
        )
    found = [
        (np.concatenate([before, ids[start : min(start + size, end)], after]), text)
        for text, (begin, end) in enumerate(zip(bounds[:-1], bounds[1:], strict=True))
        for start in range(begin, end, size)
        if end - start > 1
    ]
    return [sequence for sequence, _ in found], [text for _, text in found]


def cut(
    ids: np.ndarray,
    bounds: np.ndarray,
    length: int,
    tokens: int,
    seed: int,
    special: Special = ((), ()),
    batches: int = 1,
) -> Pieces:
    """Sequences from all over the texts, about `tokens` ids in total, as many for each batch.

    No two batches have a text in common (see `deal`), so that what they differ by tells of the spread over texts. In
    each, `pieces` of its texts are taken in random order until there are enough, or all of them, if they are short.

    Raises LmshapeError where there are fewer texts than batches.
    """
    rng = np.random.default_rng(seed)
    batch_of = deal(np.diff(bounds), batches, rng, tokens / batches)
    sequences, texts = pieces(ids, bounds, length, special)
    wanted = np.full(batches, tokens / batches)
    chosen = []
    for i in rng.permutation(len(sequences)):
        batch = batch_of[texts[i]]
        if wanted[batch] > 0:
            chosen.append(i)
            wanted[batch] -= len(sequences[i])
    of = np.array(texts, dtype=int)[chosen]
    return Pieces([sequences[i] for i in chosen], of, batch_of[of])


def deal(lengths: np.ndarray, batches: int, rng: np.random.Generator, wanted: float = 0) -> np.ndarray:
    """The batch of each text (texts,): in random order, each goes to the batch that has the fewest tokens so far.

    `lengths` (texts,) are in tokens. A text of one token or none has no piece, and does not count. Where a batch
    is left with fewer tokens than `wanted`, texts are dealt the longest first, if the least batch has more then.

    Raises LmshapeError where there are fewer texts than batches. Stretches of one text are alike: were they taken for
    different ones, the spread over texts would be missing from every error.
    """
    if (usable := int((lengths > 1).sum())) < batches:
        raise LmshapeError(
            f"hidden_states.batches {batches}: no two batches share a text, and of two tokens or more there are this "
            f"many texts: {usable}. Hold out more (text.held_out), part a file into its texts by blank lines, or ask "
            "for fewer batches; one batch tells no errors"
        )
    order = rng.permutation(len(lengths))
    batch_of, least = _to_the_least(order, lengths, batches)
    if least < wanted:
        longest_first = order[np.argsort(-lengths[order], kind="stable")]
        other, more = _to_the_least(longest_first, lengths, batches)
        batch_of = other if more > least else batch_of
    return batch_of


def _to_the_least(order: np.ndarray, lengths: np.ndarray, batches: int) -> tuple[np.ndarray, float]:
    """The batch of each text, dealt in an order, each to the least batch so far; and the tokens of the least."""
    totals = np.zeros(batches)
    batch_of = np.zeros(len(lengths), dtype=int)
    for text in order:
        if lengths[text] > 1:
            batch_of[text] = totals.argmin()
            totals[batch_of[text]] += lengths[text]
    return batch_of, totals.min()


@dataclass(frozen=True)
class Sample:
    """Token positions, those of each batch in random order, the first batch's first.

    `sequences` (n,) says of which sequence, `positions` (n,) where in it, `batches` (n,) in which batch.
    """

    sequences: np.ndarray
    positions: np.ndarray
    batches: np.ndarray


def draw(lengths: Sequence[int], vectors: int, seed: int, batches: np.ndarray | None = None) -> Sample:
    """Draw token positions without replacement, in each batch just enough for `vectors` not first in a sequence.

    `lengths` (sequences,) are in tokens; `batches` (sequences,) says of which batch each is, all of one by default.
    What is drawn of a batch is the shortest beginning of one random order of its positions that has so many, or
    all of them. So its first `vectors` serve `all`, its first `vectors` not first in a sequence `without_first`.
    """
    lengths = np.asarray(lengths)
    order = np.random.default_rng(seed).permutation(int(lengths.sum()))
    ends = np.cumsum(lengths)
    sequences = np.searchsorted(ends, order, side="right")
    positions = order - (ends - lengths)[sequences]
    batch = np.zeros(len(order), dtype=int) if batches is None else np.asarray(batches)[sequences]
    kept = []
    for members in (np.flatnonzero(batch == number) for number in np.unique(batch)):
        others = np.flatnonzero(positions[members] > 0)
        kept.append(members[: others[vectors - 1] + 1] if len(others) >= vectors else members)
    drawn = np.concatenate(kept)
    return Sample(sequences[drawn], positions[drawn], batch[drawn])
