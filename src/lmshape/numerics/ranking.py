"""Which documents are nearest to each query, by the cosine of mean token rows.

Exact and without order: texts are put in one order whatever theirs was, and equal documents are scored once, so
that their scores are equal to the last bit. Documents come in blocks and a table in panels of columns, over which
dot products and norms add up: neither all vectors nor a random table need be in memory at once. The vectors of
queries are all there, and what they found. No score depends on these blocks, on threads or on the kernels of the
processor: a mean adds up rows in the order of their tokens, and products are exact (`lmshape.numerics.exact`).
"""

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Literal, get_args

import numpy as np
from scipy.sparse import csc_array, csr_array

from lmshape.errors import LmshapeError
from lmshape.inputs.tokens import Counts
from lmshape.numerics import exact, threads
from lmshape.numerics.ablation import Panel
from lmshape.numerics.random_tables import DrawnRows

Run = dict[str, dict[str, float]]  # query id -> document id -> score: what trec_eval and mteb read
Precision = Literal["float32", "published"]
Rows = np.ndarray | DrawnRows  # a panel whose rows can be added up

MEMORY = 512 * 2**20  # bytes of document vectors and scores at once
PIECE = 2**20  # bytes of sums that scipy makes at once, which stay in the cache
ROUNDED = 256  # rows rounded at once
TILE = 512  # columns whose products are added up at once


class RetrievalError(LmshapeError):
    """A combination that cannot be scored; the message names the token or the text."""


@dataclass(frozen=True, eq=False)
class Found:
    """The documents found for each query, best first, and how many texts had no direction to be found by.

    `places` are those in `document_ids`, and `scores` their cosines; both (documents found,) for each query id.
    """

    document_ids: np.ndarray
    places: dict[str, np.ndarray]
    scores: dict[str, np.ndarray]
    zero_documents: int
    zero_queries: int

    @property
    def run(self) -> Run:
        """The same by document id: it takes more time and memory than the search did."""
        return {
            query: dict(zip(self.document_ids[places].tolist(), self.scores[query].tolist(), strict=True))
            for query, places in self.places.items()
        }


def search(
    counts: Counts,
    query_ids: Collection[str],
    panels: Sequence[Panel],
    widths: Collection[int],
    depth: int,
    precision: Precision = "float32",
    drop_self: bool = False,
) -> dict[int, Found]:
    """Width -> the `depth` best documents of each query in a table's first columns, all widths from one pass.

    Equal scores are in trec_eval's order: by document id, descending. With `drop_self` a query's document of its
    own id is left out. Queries without a text are not found. See `lmshape.retrieval.score` for `precision`.
    """
    texts = prepare(counts, query_ids, panels[0].shape[0])
    nearest = {width: Nearest.nothing(len(texts.query_ids)) for width in widths}
    widest = max(panel.shape[1] for panel in panels)
    step = max(1, MEMORY // (4 * (widest + 2 * TILE + 7 * len(texts.query_ids))))
    with opened(panels, used_by(texts.queries, texts.documents), precision) as table:
        queries = [mean_rows(texts.queries, panel) for panel in table]
        for first in range(0, texts.documents.shape[0], step):
            block = texts.documents[first : first + step]
            for width, cosines, zeros in cosines_by_width(queries, block, table, widths):
                nearest[width].add(cosines, zeros, first, depth + drop_self)
    return {width: found(texts, nearest.pop(width), depth, drop_self) for width in list(nearest)}


@dataclass(frozen=True)
class Texts:
    """Counted texts in the order of their ids, whatever it was, float32 for the product with a table.

    `queries` (queries, rows), ascending. `document_ids` descending by bytes, as trec_eval orders equal scores.
    `documents` (distinct, rows) has equal documents once, by the first: the i-th stands for those at the places
    members[bounds[i]:bounds[i + 1]] of `document_ids`.
    """

    queries: csr_array
    query_ids: list[str]
    documents: csr_array
    document_ids: np.ndarray
    members: np.ndarray
    bounds: np.ndarray


def prepare(counts: Counts, query_ids: Collection[str], rows: int) -> Texts:
    """The texts of a data set for tables of `rows` rows; RetrievalError if a token has none."""
    wanted = set(query_ids)
    queries = sorted((id, place) for place, id in enumerate(counts.query_ids) if id in wanted)
    documents = np.array(
        sorted(range(len(counts.document_ids)), key=lambda i: counts.document_ids[i].encode(), reverse=True),
        dtype=int,
    )
    matrix = with_rows(counts.documents, rows)
    groups = equal_rows(matrix, documents)
    return Texts(
        with_rows(counts.queries[np.array([place for _, place in queries], dtype=int)], rows),
        [id for id, _ in queries],
        matrix[documents[[group[0] for group in groups]]],
        np.array([counts.document_ids[i] for i in documents], dtype=object),
        np.fromiter(chain.from_iterable(groups), np.int32),
        np.cumsum([0, *map(len, groups)]),
    )


def with_rows(counts: csr_array, rows: int) -> csr_array:
    """Counts as float32 for the product with a table of `rows` rows; RetrievalError if a token has none."""
    last = int(counts.indices.max(initial=-1))
    if last >= rows:
        raise RetrievalError(
            f"token {last} has no row in a table of {rows}: this is not the table's tokenizer, or random tables have "
            "too few rows"
        )
    return csr_array(
        (counts.data.astype(np.float32), counts.indices, counts.indptr), shape=(counts.shape[0], rows)
    )


def equal_rows(matrix: csr_array, order: np.ndarray) -> list[list[int]]:
    """The places in `order` of equal rows of a canonical sparse matrix, grouped, by the first of each group."""

    def content(place: int) -> tuple[bytes, bytes]:
        part = slice(*matrix.indptr[order[place] : order[place] + 2])
        return matrix.indices[part].tobytes(), matrix.data[part].tobytes()

    marks = (matrix @ np.random.default_rng(0).random(matrix.shape[1]))[order]  # equal rows have equal ones
    _, which, occurs = np.unique(marks, return_inverse=True, return_counts=True)
    groups: dict[int | tuple[bytes, bytes], list[int]] = {}
    for place, alone in enumerate((occurs[which] == 1).tolist()):
        groups.setdefault(place if alone else content(place), []).append(place)
    return list(groups.values())


def known(precision: str) -> Precision:
    """`precision`, if there is such a one; ValueError, with those that there are, if not."""
    if precision not in get_args(Precision):
        raise ValueError(f"precision is {' or '.join(get_args(Precision))}, not {precision!r}")
    return precision


@contextmanager
def opened(panels: Sequence[Panel], used: np.ndarray, precision: Precision) -> Iterator[list[Rows]]:
    """Panels for many sums over `used` rows: once, random ones are drawn and, if `published`, others rounded.

    ValueError for another precision than there is.
    """
    published = known(precision) == "published"
    with ExitStack() as files:

        def ready(panel: Panel) -> Rows:
            if isinstance(panel, np.ndarray):
                return bfloat16(panel) if published else panel
            return files.enter_context(panel.drawn(used))

        yield [ready(panel) for panel in panels]


def used_by(*texts: csr_array) -> np.ndarray:
    """The tokens that occur in counted texts, ascending."""
    occurs = np.zeros(texts[0].shape[1], bool)
    for side in texts:
        occurs[side.indices] = True
    return np.flatnonzero(occurs)


def means(texts: csr_array, panel: Panel, precision: Precision) -> np.ndarray:
    """The mean token row of each text, (texts, width) float32; zeros for a text without tokens.

    `published` rounds as in `lmshape.retrieval.score`.
    """
    with opened([panel], used_by(texts), precision) as table:
        return mean_rows(texts, table[0])


def mean_rows(texts: csr_array, panel: Rows) -> np.ndarray:
    """`means` in a panel that is opened."""
    sums = product(texts, panel) if isinstance(panel, np.ndarray) else panel.sums(texts)
    sums /= np.maximum(texts.sum(axis=1), 1)[:, None]
    return sums


def cosines_by_width(
    queries: Sequence[np.ndarray], documents: csr_array, table: Sequence[Rows], widths: Collection[int]
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """(width, cosines (queries, documents), which texts are zero (queries + documents)), widths ascending.

    `queries` has their mean rows (queries, width) in each panel. A text of zeros has cosine 0 with everything. Which
    columns are added up at once depends on a panel's columns and on a width alone, not on the other widths.
    """
    dots = np.zeros((len(queries[0]), documents.shape[0]))
    squares = np.zeros(sum(dots.shape))
    done = 0
    for of_queries, panel in zip(queries, table, strict=True):
        of_documents = mean_rows(documents, panel)
        for left in range(0, panel.shape[1], TILE):
            right = min(left + TILE, panel.shape[1])
            for width in sorted(width for width in widths if left < width - done < right):
                part = slice(left, width - done)
                sums = dots.copy(), squares.copy()
                exact.add_products(of_queries[:, part], of_documents[:, part], *sums)
                yield width, *normalized(*sums)
            exact.add_products(of_queries[:, left:right], of_documents[:, left:right], dots, squares)
            if done + right in widths:
                yield done + right, *normalized(dots, squares)
        done += panel.shape[1]


def product(counts: csr_array, table: np.ndarray) -> np.ndarray:
    """counts @ table, (texts, width), in pieces of texts by as many threads as BLAS may use, where scipy takes one.

    By column of `counts`, so that a piece reads each row of the table once and in order, and adds up each text's rows
    in the order of their tokens: no sum depends on pieces or threads.
    """
    sums = np.empty((counts.shape[0], table.shape[1]), np.float32)
    pieces = threads.allowed() * max(1, math.ceil(sums.nbytes / (threads.allowed() * PIECE)))
    cuts = np.linspace(0, counts.shape[0], pieces + 1).astype(int)

    def fill(part: slice) -> None:
        sums[part] = csc_array(counts[part]) @ table

    threads.each(fill, (slice(*cut) for cut in pairwise(cuts)))
    return sums


def bfloat16(values: np.ndarray) -> np.ndarray:
    """Finite float32 values rounded to the nearest bfloat16, ties to even, and kept as float32.

    By blocks of rows, so that a table is in memory twice and not four times.
    """
    rounded = np.array(values, dtype=np.float32, order="C")
    bits = rounded.view(np.uint32)
    for first in range(0, len(bits), ROUNDED):
        block = bits[first : first + ROUNDED]
        block += (block >> 16 & 1) + np.uint32(0x7FFF)
        block &= np.uint32(0xFFFF0000)
    return rounded


def normalized(dots: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float32 cosines from dot products (queries, documents) and squared norms (queries + documents); which are 0."""
    if not np.isfinite(squares).all():
        raise RetrievalError(
            "a text's vector is not finite: the table holds NaN, infinite or too large values"
        )
    zeros = squares == 0
    factors = 1 / np.sqrt(np.where(zeros, 1, squares))
    cosines = np.empty(dots.shape, np.float32)
    np.multiply(dots * factors[: len(dots), None], factors[len(dots) :], out=cosines, casting="same_kind")
    return cosines, zeros


@dataclass
class Nearest:
    """The best distinct documents of each query so far: scores descending, places ascending among equals."""

    scores: list[np.ndarray]
    places: list[np.ndarray]
    zero_places: list[int]
    zero_queries: int = 0

    @classmethod
    def nothing(cls, queries: int) -> "Nearest":
        return cls([np.empty(0, np.float32)] * queries, [np.empty(0, np.int32)] * queries, [])

    def add(self, cosines: np.ndarray, zeros: np.ndarray, first: int, depth: int) -> None:
        """Take in a block of documents whose places begin at `first`; keep the `depth` best of each query."""
        queries = len(cosines)
        new = np.arange(first, first + cosines.shape[1], dtype=np.int32)
        for query, row in enumerate(cosines):
            scores = np.concatenate([self.scores[query], row])
            best = largest(scores, depth)
            self.scores[query] = scores[best]
            self.places[query] = np.concatenate([self.places[query], new])[best]
        self.zero_places += (first + np.flatnonzero(zeros[queries:])).tolist()
        self.zero_queries = int(zeros[:queries].sum())


def largest(scores: np.ndarray, depth: int) -> np.ndarray:
    """Places of the `depth` largest of `scores`, largest first, equal ones in their order."""
    if depth >= len(scores):
        return np.argsort(-scores, kind="stable")
    places = np.flatnonzero(scores >= np.partition(scores, -depth)[-depth])
    return places[np.argsort(-scores[places], kind="stable")[:depth]]


def found(texts: Texts, nearest: Nearest, depth: int, drop_self: bool) -> Found:
    """The best distinct documents as the documents they stand for."""
    all_places, all_scores = {}, {}
    for query, scores, distinct in zip(texts.query_ids, nearest.scores, nearest.places, strict=True):
        places, scores = with_equals(texts, distinct, scores)
        if drop_self:
            others = texts.document_ids[places] != query
            places, scores = places[others], scores[others]
        all_places[query], all_scores[query] = places[:depth], scores[:depth]
    zero_documents = np.diff(texts.bounds)[nearest.zero_places].sum()
    return Found(texts.document_ids, all_places, all_scores, int(zero_documents), nearest.zero_queries)


def with_equals(texts: Texts, distinct: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places and scores of all documents that the distinct ones stand for, best first, equal scores by place."""
    repeats = texts.bounds[distinct + 1] - texts.bounds[distinct]
    starts = np.cumsum(repeats) - repeats
    within = np.arange(repeats.sum()) - np.repeat(starts, repeats)
    places = texts.members[np.repeat(texts.bounds[distinct], repeats) + within]
    scores = np.repeat(scores, repeats)
    if len(places) > len(distinct):  # else they are in order
        order = np.lexsort((places, -scores))
        places, scores = places[order], scores[order]
    return places, scores
