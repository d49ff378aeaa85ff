import numpy as np
import pytest
import word_tokenizer
from counted import matrix
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lmshape import word_similarity
from lmshape.errors import LmshapeError
from lmshape.models.pretraining import train_byte_bpe
from lmshape.word_similarity import CountedPairs, Pair, WordSimilarityError

WORDS = ["<s>", "hot", "warm", "cold", "pan", "cake"]  # numbered from 1
HOT, WARM, COLD, PAN, CAKE = range(2, 7)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return word_tokenizer.save(tmp_path_factory.mktemp("tokenizer"), WORDS, begin="<s>")


PAIRS = [
    Pair("hot", "warm", 9),
    Pair("hot", "cold", 3),
    Pair("hot", "pan-cake", 1),
    Pair("hot", "pan cake", 1),
    Pair("zebra", "hot", 0),
]


def test_words_are_counted_without_special_tokens_and_unknown_ones_are_missing(tokenizer):
    counted = word_similarity.count(PAIRS, tokenizer)
    assert counted.second.toarray().nonzero()[1].tolist() == [WARM, COLD, PAN, CAKE]
    assert counted.similarity.tolist() == [9, 3, 1]
    assert counted.missing == 2  # zebra, and the dash of pan-cake


def test_unknown_words_are_missing_whether_or_not_the_configuration_names_the_unknown_token(tmp_path):
    folder = word_tokenizer.save(tmp_path, WORDS)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    assert word_similarity.count(PAIRS, folder).missing == 2


def test_a_word_is_counted_as_it_stands_inside_a_text(tmp_path):
    """Byte-level vocabularies have one token for it after a space, and others at the beginning of a text."""
    tokenizer = train_byte_bpe(["so hot and so cold, and hot again and cold again"], 300)
    tokenizer.save_pretrained(tmp_path)
    hot, cold = tokenizer.convert_tokens_to_ids(["Ġhot", "Ġcold"])
    assert tokenizer.encode("hot") != [hot] == tokenizer.encode(" hot")
    counted = word_similarity.count([Pair("hot", "cold", 3)], tmp_path)
    assert [counted.first.indices.tolist(), counted.second.indices.tolist()] == [[hot], [cold]]


def counted(pairs, missing=0):
    sides = [matrix([pair[side] for pair in pairs], 8) for side in (0, 1)]
    return CountedPairs(*sides, np.array([pair[2] for pair in pairs], dtype=float), missing)


TABLE = np.zeros((8, 2), np.float32)
TABLE[[HOT, WARM, COLD, PAN, CAKE]] = [[1, 0], [2, 1], [0, 3], [-1, 1], [-1, -1]]


def test_the_order_of_cosines_is_compared_with_the_order_of_judgements():
    agree = counted([([HOT], [WARM], 9), ([HOT], [COLD], 5), ([HOT], [PAN, CAKE], 0)], missing=1)
    assert word_similarity.score(agree, TABLE) == {
        "spearman": pytest.approx(1),
        "stderr": None,
        "pairs": 3,
        "missing": 1,
        "reason": None,
    }
    against = counted([([HOT], [WARM], 1), ([HOT], [COLD], 2), ([HOT], [PAN, CAKE], 3)])
    assert word_similarity.score(against, TABLE)["spearman"] == -1


def test_a_word_of_several_tokens_is_their_mean():
    pairs = counted([([HOT], [WARM], 2), ([HOT], [HOT, COLD], 1), ([HOT], [COLD], 0)])
    assert word_similarity.score(pairs, TABLE)["spearman"] == 1


def test_a_pair_with_a_zero_vector_is_missing():
    pairs = counted([([HOT], [WARM], 9), ([HOT], [COLD], 5), ([HOT], [0], 0)], missing=2)
    assert word_similarity.score(pairs, TABLE) == {
        "spearman": pytest.approx(1),
        "stderr": None,
        "pairs": 2,
        "missing": 3,
        "reason": None,
    }


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.7])
def test_the_standard_error_is_the_spread_over_samples_of_pairs(correlation):
    pairs, samples, rng = 353, 2000, np.random.default_rng(0)
    first, noise = rng.standard_normal((2, samples, pairs))
    second = correlation * first + np.sqrt(1 - correlation**2) * noise
    ranks = [values.argsort(axis=1).argsort(axis=1) for values in (first, second)]
    found = [np.corrcoef(one, other)[0, 1] for one, other in zip(*ranks, strict=True)]
    assert word_similarity.standard_error(np.mean(found), pairs) == pytest.approx(np.std(found), rel=0.06)


@pytest.mark.parametrize(
    "pairs",
    [
        [([HOT], [WARM], 9)],
        [([HOT], [WARM], 9), ([HOT], [WARM], 5)],
        [([HOT], [WARM], 1), ([HOT], [COLD], 1)],
    ],
)
def test_what_cannot_be_correlated_is_null_with_a_reason(pairs):
    row = word_similarity.score(counted(pairs), TABLE)
    assert row["spearman"] is None
    assert row["reason"] == "fewer than two different similarities"


def test_a_table_that_is_not_finite_is_null_with_a_reason():
    table = TABLE.copy()
    table[WARM] = np.nan
    row = word_similarity.score(counted([([HOT], [WARM], 9), ([HOT], [COLD], 5)]), table)
    assert (row["spearman"], row["reason"]) == (None, "the table holds values that are not finite")


def test_trap_14_a_token_without_a_row_is_null_with_a_reason():
    row = word_similarity.score(counted([([HOT], [COLD], 1)], missing=2), TABLE[:4])
    assert (row["spearman"], row["pairs"], row["missing"]) == (None, 0, 3)
    assert "token 4 has no row in a table of 4" in row["reason"]


def test_what_was_saved_is_loaded(tmp_path):
    pairs = counted([([HOT], [WARM], 9), ([HOT], [PAN, CAKE], 5)], missing=3)
    word_similarity.save(pairs, tmp_path / "pairs.npz")
    loaded = word_similarity.load(tmp_path / "pairs.npz")
    assert word_similarity.score(loaded, TABLE) == word_similarity.score(pairs, TABLE)
    assert loaded.missing == 3


@pytest.mark.parametrize(
    "line",
    [
        "hot,cold,3",
        "hot\tcold",
        "hot\tcold\t3\t4",
        "\tcold\t3",
        "hot\tcold\tvery",
        "hot\tcold\tnan",
        "a\tb\t-inf",
        "a\tb\t1e999",
        "a\tb\t7,5",
        "a\tb\t1_0",
        "a\tb\t１",
        "a;b;7.5",
        "word1\tword2\tsimilarity",
    ],
)
def test_a_broken_line_is_refused_by_file_and_line(tmp_path, line):
    (tmp_path / "pairs.tsv").write_text(f"# comment\nhot\tcold\t3\n\n{line}\n")
    with pytest.raises(WordSimilarityError, match="pairs.tsv line 4: expected two words and a finite number"):
        word_similarity.read(tmp_path / "pairs.tsv")


def test_bytes_that_are_not_utf8_are_refused_by_file(tmp_path):
    (tmp_path / "pairs.tsv").write_bytes("heiß\tkalt\t3\n".encode("latin-1"))
    with pytest.raises(LmshapeError, match="pairs.tsv: not UTF-8: byte 0xdf at offset 3"):
        word_similarity.read(tmp_path / "pairs.tsv")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_byte_order_mark_and_line_ends_are_no_part_of_a_pair(tmp_path, end):
    (tmp_path / "pairs.tsv").write_bytes(f"\ufeffhot\tcold\t3{end}# comment{end}{end}a\tb\t1".encode())
    assert word_similarity.read(tmp_path / "pairs.tsv") == [Pair("hot", "cold", 3), Pair("a", "b", 1)]


@pytest.mark.parametrize("content", ["", "\ufeff", "\n \n", "# comment\n"])
def test_a_file_without_pairs_is_refused_by_name(tmp_path, content):
    (tmp_path / "pairs.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(WordSimilarityError, match="pairs.tsv: there is no pair of words in it"):
        word_similarity.read(tmp_path / "pairs.tsv")


def test_a_path_is_taken_before_what_a_package_ships(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "simlex999.txt").write_text("hot\tcold\t3\n")
    assert word_similarity.read(word_similarity.find("simlex999.txt")) == [Pair("hot", "cold", 3)]
    assert word_similarity.find(str(tmp_path / "simlex999.txt")) == tmp_path / "simlex999.txt"


def test_a_file_that_is_nowhere_is_refused():
    with pytest.raises(WordSimilarityError, match="simlex998.txt: no such file"):
        word_similarity.find("simlex998.txt")


@pytest.mark.parametrize(("name", "pairs"), [("wordsim353.tsv", 353), ("simlex999.txt", 999)])
def test_the_published_sets_are_found_in_gensims_test_data(name, pairs):
    pytest.importorskip("gensim")
    assert len(word_similarity.read(word_similarity.find(name))) == pairs


@given(
    st.lists(st.tuples(st.sampled_from([-1.5, 0.0, 0.25, 1e9]), st.integers(0, 6)), min_size=2, max_size=40)
)
def test_a_rank_correlation_is_scipys(pairs):
    """Equal values among them; of a constant side there is none."""
    first, second = map(np.array, zip(*pairs, strict=True))
    assume(len(set(first)) > 1 and len(set(second)) > 1)
    found = word_similarity.rank_correlation(first.astype(np.float32), second.astype(float))
    assert found == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)
