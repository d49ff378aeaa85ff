"""Data sets of tokens, for tests of what happens after counting."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from lmshape.inputs.tokens import Counts


def counts(
    documents: Mapping[str, Sequence[int]], queries: Mapping[str, Sequence[int]], vocabulary: int
) -> Counts:
    """The counts of texts that are given as token ids."""
    return Counts(
        matrix(documents.values(), vocabulary),
        matrix(queries.values(), vocabulary),
        list(documents),
        list(queries),
        tokenizer="numbers",
        max_length=2048,
        dataset_revision="",
    )


def matrix(texts, vocabulary: int) -> csr_array:
    texts = [list(text) for text in texts]
    bounds = np.cumsum([0, *map(len, texts)])
    ids = np.array([id for text in texts for id in text], dtype=np.int32)
    found = csr_array((np.ones(len(ids), np.int32), ids, bounds), shape=(len(texts), vocabulary))
    found.sum_duplicates()
    return found


def random_counts(documents: int, queries: int, vocabulary: int, length: int, seed: int = 0) -> Counts:
    """Texts of random tokens, small ids more frequent, of 1 to `length` tokens."""
    rng = np.random.default_rng(seed)

    def texts(name: str, number: int) -> dict[str, list[int]]:
        lengths = rng.integers(1, length + 1, number)
        return {
            f"{name}{i}": (rng.power(0.5, n) * vocabulary).astype(int).tolist() for i, n in enumerate(lengths)
        }

    return counts(texts("d", documents), texts("q", queries), vocabulary)


def random_qrels(counts: Counts, judged: int, seed: int = 0) -> dict[str, dict[str, int]]:
    """`judged` judgements for each query, grades 0 to 3."""
    rng = np.random.default_rng(seed)
    return {
        query: {
            str(id): int(rng.integers(0, 4)) for id in rng.choice(counts.document_ids, judged, replace=False)
        }
        for query in counts.query_ids
    }
