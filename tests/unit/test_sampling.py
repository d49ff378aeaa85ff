"""Which pieces of which texts are run, in which batch they are, and which of their tokens are kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from lmshape.errors import LmshapeError
from lmshape.models.sampling import cut, deal, draw

IDS = np.arange(100, dtype=np.int32)
BOUNDS = np.array([0, 31, 31, 32, 100])  # texts of 31, 0, 1 and 68 tokens


def test_pieces_are_consecutive_within_a_text_and_no_token_is_taken_twice():
    pieces = cut(IDS, BOUNDS, length=10, tokens=1000, seed=0).sequences
    for piece in pieces:
        assert (np.diff(piece) == 1).all() and 2 <= len(piece) <= 10
    taken = np.sort(np.concatenate(pieces))
    # 30 is the single id that is left of the first text, 31 the whole of the third
    assert taken.tolist() == [i for i in range(100) if i not in (30, 31)]


def test_pieces_are_drawn_from_all_over_the_text_until_there_are_enough_tokens():
    ids = np.arange(10_000, dtype=np.int32)
    pieces = cut(ids, np.array([0, 10_000]), length=10, tokens=200, seed=0).sequences
    assert sum(map(len, pieces)) == 200
    starts = np.array([piece[0] for piece in pieces])
    assert starts.min() < 2000 and starts.max() > 8000
    assert [p.tolist() for p in pieces] == [
        p.tolist() for p in cut(ids, np.array([0, 10_000]), 10, 200, seed=0).sequences
    ]
    assert starts.tolist() != [p[0] for p in cut(ids, np.array([0, 10_000]), 10, 200, seed=1).sequences]


def test_every_piece_carries_the_tokens_a_model_expects_within_its_length():
    pieces = cut(IDS, BOUNDS, length=10, tokens=1000, seed=0, special=([101], [102, 103])).sequences
    for piece in pieces:
        assert piece[0] == 101 and piece[-2:].tolist() == [102, 103]
        assert len(piece) <= 10


def test_a_length_that_only_special_tokens_would_fill_is_an_error():
    with pytest.raises(LmshapeError, match="no room beside 2 special tokens"):
        cut(IDS, BOUNDS, length=2, tokens=10, seed=0, special=([101], [102]))


TEXTS = np.array(
    [0, 700, 760, 761, 761, 1500, 2100, 2500, 3000]
)  # of 700, 60, 1, 0, 739, 600, 400, 500 tokens


def test_batches_have_no_text_in_common_and_as_many_tokens_each():
    found = cut(np.arange(3000, dtype=np.int32), TEXTS, length=10, tokens=800, seed=0, batches=4)
    of = {text: set(found.batches[found.texts == text]) for text in found.texts}
    assert all(len(batches) == 1 for batches in of.values()) and {2, 3} & set(of) == set()
    for sequence, text in zip(found.sequences, found.texts, strict=True):
        assert TEXTS[text] <= sequence[0] and sequence[-1] < TEXTS[text + 1]
    tokens = [
        sum(len(s) for s, b in zip(found.sequences, found.batches, strict=True) if b == k) for k in range(4)
    ]
    assert tokens == [200] * 4


def test_which_texts_a_batch_has_depends_on_the_seed_alone():
    lengths = np.diff(TEXTS)
    same, again, other = (deal(lengths, 3, np.random.default_rng(seed)).tolist() for seed in (0, 0, 1))
    assert same == again != other


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(2, 900), min_size=4, max_size=60), st.integers(1, 4), st.integers(0, 9))
def test_batches_differ_in_tokens_by_no_more_than_the_longest_text(lengths, batches, seed):
    batch_of = deal(np.array(lengths), batches, np.random.default_rng(seed))
    totals = np.bincount(batch_of, weights=lengths, minlength=batches)
    assert totals.max() - totals.min() <= max(lengths)


@pytest.mark.parametrize("seed", range(10))
def test_batches_are_short_of_tokens_only_where_the_texts_leave_no_other_way(seed):
    """In random order, two texts of 3000 often part, and the one alone falls short."""
    lengths = np.array([3000, 5000, 3000])
    batch_of = deal(lengths, 2, np.random.default_rng(seed), wanted=4500)
    assert sorted(np.bincount(batch_of, weights=lengths)) == [5000, 6000]
    uneven = np.array([60_000, 900, 800, 700])
    assert sorted(deal(uneven, 4, np.random.default_rng(seed), wanted=4096)) == [0, 1, 2, 3]
    found = cut(np.arange(11_000), np.cumsum([0, *lengths]), 10, tokens=9000, seed=seed, batches=2)
    assert np.bincount(found.batches).min() == 450  # pieces of ten
    least = {
        np.bincount(deal(lengths, 2, np.random.default_rng(other)), weights=lengths).min()
        for other in range(10)
    }
    assert least == {3000, 5000}


def test_the_error_of_a_mean_over_batches_is_that_of_other_texts():
    """Tokens of one text are alike. Were positions dealt at random, batches would all be of the same texts."""
    rng = np.random.default_rng(0)
    lengths = np.array([30, 400, 120, 250, 60, 300, 90, 200, 150, 350, 80, 220, 170, 260, 40, 310])
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    means, errors, mixed = [], [], []
    for seed in range(400):
        values = np.repeat(rng.standard_normal(len(lengths)), lengths) + 0.5 * rng.standard_normal(bounds[-1])
        found = cut(np.arange(bounds[-1]), bounds, length=20, tokens=1200, seed=seed, batches=4)
        sample = draw([len(sequence) for sequence in found.sequences], 200, seed, found.batches)
        drawn = values[
            [found.sequences[s][p] for s, p in zip(sample.sequences, sample.positions, strict=True)]
        ]
        batches = np.array([drawn[sample.batches == batch].mean() for batch in range(4)])
        means.append(batches.mean())
        errors.append(batches.std(ddof=1) / 2)
        mixed.append(rng.permutation(drawn)[:800].reshape(4, 200).mean(axis=1).std(ddof=1) / 2)
    scatter, reported = np.std(means), np.sqrt(np.mean(np.square(errors)))
    assert reported == pytest.approx(scatter, rel=0.15) and np.sqrt(np.mean(np.square(mixed))) < scatter / 3
    t = np.abs(means) / errors
    assert np.mean(t < stdtrit(3, 0.975)) == pytest.approx(0.95, abs=0.02)


def test_fewer_texts_than_batches_are_refused_with_the_keys_to_change():
    """Stretches of one text would not show what texts differ by: the errors would be too small, without a word."""
    with pytest.raises(
        LmshapeError,
        match=r"hidden_states.batches 2: .* of two tokens or more .* texts: 1\. .*text.held_out.*one batch",
    ):
        cut(IDS, np.array([0, 98, 98, 99, 99]), length=10, tokens=60, seed=0, batches=2)
    assert len(cut(IDS, np.array([0, 100]), length=10, tokens=60, seed=0).sequences) == 6


def test_a_short_batch_is_all_of_its_texts():
    found = cut(
        np.arange(430, dtype=np.int32), np.array([0, 400, 430]), length=10, tokens=400, seed=0, batches=2
    )
    assert sorted(np.bincount(found.batches)) == [3, 20]


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


def test_every_batch_gets_its_own_positions_in_the_order_of_batches():
    batches = np.array([1, 0, 1, 0, 2] * 20)
    sample = draw([30] * 100, 200, 0, batches)
    assert (np.diff(sample.batches) >= 0).all() and (sample.batches == batches[sample.sequences]).all()
    for batch in range(3):
        positions = sample.positions[sample.batches == batch]
        assert (positions > 0).sum() == 200 and positions[-1] > 0
        assert abs(np.corrcoef(np.arange(len(positions)), positions)[0, 1]) < 0.3  # not in text order


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
