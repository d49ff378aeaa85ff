"""Which pieces of a text are run and which of their tokens are kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmshape.errors import LmshapeError
from lmshape.models.sampling import cut, draw

IDS = np.arange(100, dtype=np.int32)
BOUNDS = np.array([0, 31, 31, 32, 100])  # texts of 31, 0, 1 and 68 tokens


def test_pieces_are_consecutive_within_a_text_and_no_token_is_taken_twice():
    pieces = cut(IDS, BOUNDS, length=10, tokens=1000, seed=0)
    for piece in pieces:
        assert (np.diff(piece) == 1).all() and 2 <= len(piece) <= 10
    taken = np.sort(np.concatenate(pieces))
    # 30 is the single id that is left of the first text, 31 the whole of the third
    assert taken.tolist() == [i for i in range(100) if i not in (30, 31)]


def test_pieces_are_drawn_from_all_over_the_text_until_there_are_enough_tokens():
    ids = np.arange(10_000, dtype=np.int32)
    pieces = cut(ids, np.array([0, 10_000]), length=10, tokens=200, seed=0)
    assert sum(map(len, pieces)) == 200
    starts = np.array([piece[0] for piece in pieces])
    assert starts.min() < 2000 and starts.max() > 8000
    assert [p.tolist() for p in pieces] == [
        p.tolist() for p in cut(ids, np.array([0, 10_000]), 10, 200, seed=0)
    ]
    assert starts.tolist() != [p[0] for p in cut(ids, np.array([0, 10_000]), 10, 200, seed=1)]


def test_every_piece_carries_the_tokens_a_model_expects_within_its_length():
    pieces = cut(IDS, BOUNDS, length=10, tokens=1000, seed=0, special=([101], [102, 103]))
    for piece in pieces:
        assert piece[0] == 101 and piece[-2:].tolist() == [102, 103]
        assert len(piece) <= 10


def test_a_length_that_only_special_tokens_would_fill_is_an_error():
    with pytest.raises(LmshapeError, match="no room beside 2 special tokens"):
        cut(IDS, BOUNDS, length=2, tokens=10, seed=0, special=([101], [102]))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=40), st.integers(1, 60), st.integers(0, 9))
def test_draw_takes_the_shortest_beginning_with_enough_tokens_that_are_not_first(lengths, vectors, seed):
    sample = draw(lengths, vectors, seed)
    pairs = list(zip(sample.sequences.tolist(), sample.positions.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs), "a token was drawn twice"
    assert all(0 <= position < lengths[sequence] for sequence, position in pairs)
    others = (sample.positions > 0).sum()
    if sum(lengths) - len(lengths) >= vectors:
        assert others == vectors and sample.positions[-1] > 0
    else:
        assert len(pairs) == sum(lengths)


def test_draw_is_uniform_over_the_text_and_repeats_for_a_seed():
    lengths = [50] * 200
    sample = draw(lengths, 2000, seed=3)
    assert abs(sample.sequences.mean() - 99.5) < 5 and abs(sample.positions.mean() - 24.5) < 1.5
    again = draw(lengths, 2000, seed=3)
    assert (again.sequences == sample.sequences).all() and (again.positions == sample.positions).all()
    assert (draw(lengths, 2000, seed=4).positions[:2000] != sample.positions[:2000]).any()
    assert (
        abs(np.corrcoef(np.arange(len(sample.sequences)), sample.sequences)[0, 1]) < 0.1
    )  # not in text order
