"""Spearman by gensim's own evaluation of the same vectors."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from lmshape import word_similarity
from lmshape.word_similarity import CountedPairs

gensim = pytest.importorskip("gensim")


@pytest.mark.parametrize("name", ["wordsim353.tsv", "simlex999.txt"])
def test_spearman_is_gensims(name):
    from gensim.models import KeyedVectors

    path = word_similarity.find(name)
    pairs = word_similarity.read(path)
    words = sorted({word for pair in pairs for word in pair[:2]})
    table = np.random.default_rng(0).standard_normal((len(words), 12)).astype(np.float32)
    vectors = KeyedVectors(12)
    vectors.add_vectors(words, table)
    _, spearman, unknown = vectors.evaluate_word_pairs(str(path), case_insensitive=False)
    assert unknown == 0

    one_hot = csr_array(np.eye(len(words), dtype=np.int32))
    sides = [one_hot[[words.index(pair[side]) for pair in pairs]] for side in (0, 1)]
    ours = word_similarity.score(
        CountedPairs(*sides, np.array([pair.similarity for pair in pairs]), 0), table
    )
    assert ours["spearman"] == pytest.approx(spearman[0], abs=1e-6)
    assert ours["pairs"] == len(pairs)
