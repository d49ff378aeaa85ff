"""Human judgements of word similarity against the cosines of table rows.

A word's vector is the mean of the rows of the tokens that it has inside a text. At the beginning of one it can have
others, and much rarer ones: those of byte-level vocabularies, or a space of its own where a tokenizer adds one.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from lmshape.errors import LmshapeError
from lmshape.files import writing
from lmshape.inputs import packages, tokens
from lmshape.inputs.tokens import sparse_parts, sparse_whole
from lmshape.numerics import exact
from lmshape.numerics.ranking import RetrievalError, means, with_rows
from lmshape.text_files import read_lines

BEFORE = ("the", "a", "not", "so", "is")  # words that the ones whose tokens are looked for stand after
# a number that everyone reads alike: not 1_0, nor digits of other scripts
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Pair(NamedTuple):
    """Two words and how similar people find them, on any scale."""

    first: str
    second: str
    similarity: float


class WordSimilarityError(LmshapeError):
    """A file of word pairs that cannot be used; the message names the file and line."""


@dataclass(frozen=True)
class CountedPairs:
    """Word pairs as tokens, for every table of one tokenizer.

    `first` and `second` (pairs, vocabulary) count each word's tokens; `similarity` (pairs,) is people's. `missing`
    more pairs had a word that the tokenizer does not know.
    """

    first: csr_array
    second: csr_array
    similarity: np.ndarray
    missing: int


def find(name: str) -> Path:
    """The file of a data set: a path, or the name of a file in gensim's test data (wordsim353.tsv, simlex999.txt)."""
    if Path(name).is_file():
        return Path(name)
    try:
        return packages.file("gensim", f"test/test_data/{name}")
    except LmshapeError as error:
        raise WordSimilarityError(f"{name}: no such file, here or in gensim's test data: {error}") from error


def read(path: str | Path) -> list[Pair]:
    """Lines of two words and a number, separated by tabs; lines that begin with # are comments."""
    places = ((f"{path} line {number}", line) for number, line in enumerate(read_lines(path), 1))
    found = [_pair(line, where) for where, line in places if line.strip() and not line.startswith("#")]
    if not found:
        raise WordSimilarityError(f"{path}: there is no pair of words in it")
    return found


def _pair(line: str, where: str) -> Pair:
    fields = [field.strip() for field in line.split("\t")]
    similarity = float(fields[-1]) if NUMBER.fullmatch(fields[-1]) else math.nan
    if len(fields) == 3 and all(fields) and math.isfinite(similarity):
        return Pair(fields[0], fields[1], similarity)
    raise WordSimilarityError(
        f"{where}: expected two words and a finite number (7.5), separated by tabs, not {line[:80]!r}; a heading "
        "must begin with #"
    )


def count(pairs: Sequence[Pair], tokenizer_folder: str | Path) -> CountedPairs:
    """Tokenise word pairs once for all tables of a tokenizer."""
    tokenizer = tokens.load_tokenizer(tokenizer_folder)
    sides = [_count_words([pair[side] for pair in pairs], tokenizer) for side in (0, 1)]
    known = np.logical_and(*(known for _, known in sides))
    similarity = np.array([pair.similarity for pair in pairs])[known]
    return CountedPairs(sides[0][0][known], sides[1][0][known], similarity, int((~known).sum()))


def _count_words(words: Sequence[str], tokenizer: Any) -> tuple[csr_array, np.ndarray]:
    """Token counts of words (words, vocabulary), and which words the tokenizer knows all of."""
    found = inside_text(words, tokenizer)
    bounds = np.cumsum([0, *map(len, found)])
    counts = tokens.count_ids(np.concatenate(found), bounds, tokens.largest_id(tokenizer) + 1)
    known = counts.sum(axis=1) > 0
    unknown = np.array(sorted(tokens.unknown_ids(tokenizer)), dtype=int)
    known &= counts[:, unknown].sum(axis=1) == 0
    return counts, known


def inside_text(words: Sequence[str], tokenizer: Any) -> list[np.ndarray]:
    """The ids of the tokens that each word has inside a text: of `the WORD`, those that follow `the`.

    Where a token spans both, as some vocabularies have, the next of `BEFORE` takes the place of `the`. A word that
    is one with all of them has no tokens of its own, and none here.
    """
    found: dict[str, np.ndarray] = {}
    for before in BEFORE:
        left = [word for word in words if word not in found]
        texts = [before, *(f"{before} {word}" for word in left)]
        ids, bounds = tokens.token_ids(texts, tokenizer, special=False)
        start, *whole = np.split(ids, bounds[1:-1])
        for word, one in zip(left, whole, strict=True):
            if np.array_equal(one[: len(start)], start):
                found[word] = one[len(start) :]
    return [found.get(word, np.empty(0, np.int32)) for word in words]


def score(pairs: CountedPairs, table: np.ndarray) -> dict[str, Any]:
    """Spearman's rank correlation of people's similarities with cosines in `table` (rows, width) float32.

    Returns spearman, its stderr, pairs (how many were compared), missing (how many were not) and reason. A pair
    with a word whose vector is zero is missing. Where nothing can be correlated spearman is None and reason says
    why.
    """
    given = len(pairs.similarity) + pairs.missing
    row = {"spearman": None, "stderr": None, "pairs": 0, "missing": given, "reason": None}
    try:
        sides = [with_rows(side, len(table)) for side in (pairs.first, pairs.second)]
    except RetrievalError as error:
        return row | {"reason": str(error)}
    first, second = (exact.rounded(means(side, table, "float32")) for side in sides)
    norms = np.sqrt(np.vecdot(first, first) * np.vecdot(second, second))
    there = norms > 0
    cosines = (np.vecdot(first, second)[there] / norms[there]).astype(
        np.float32
    )  # equal words have exactly 1
    human = pairs.similarity[there]
    row |= {"pairs": len(human), "missing": given - len(human)}
    if not np.isfinite(norms).all():
        return row | {"reason": "the table holds values that are not finite"}
    if len(set(cosines)) < 2 or len(set(human)) < 2:
        return row | {"reason": "fewer than two different similarities"}
    spearman = rank_correlation(cosines, human)
    return row | {"spearman": spearman, "stderr": standard_error(spearman, len(human))}


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's: Pearson's of ranks, equal values sharing the mean of theirs; both (n,), and not constant."""
    centred = [ranks(values) - (len(values) + 1) / 2 for values in (first, second)]
    return float(np.dot(*centred) / np.sqrt(np.prod([np.dot(each, each) for each in centred])))


def ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value from 1 on, equal ones the mean of theirs, (n,)."""
    _, which, occurs = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(occurs) - (occurs - 1) / 2)[which]


def standard_error(spearman: float, pairs: int) -> float | None:
    """Of a rank correlation over so many pairs; None for three or fewer.

    Bonett and Wright (2000) give the variance of its Fisher transform, (1 + r^2 / 2) / (n - 3), here taken back to
    the correlation's own scale.
    """
    if pairs <= 3:
        return None
    return (1 - spearman**2) * math.sqrt((1 + spearman**2 / 2) / (pairs - 3))


def save(pairs: CountedPairs, path: str | Path) -> None:
    """Write counted pairs as .npz, whole or not at all."""
    arrays = {"similarity": pairs.similarity, "missing": np.array(pairs.missing)}
    with writing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file, **arrays, **sparse_parts("first", pairs.first), **sparse_parts("second", pairs.second)
        )


def load(path: str | Path) -> CountedPairs:
    """Read what `save` wrote."""
    with np.load(path) as arrays:
        sides = [sparse_whole(name, arrays) for name in ("first", "second")]
        return CountedPairs(*sides, arrays["similarity"], int(arrays["missing"]))
