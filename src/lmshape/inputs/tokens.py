"""Text as tokens: a sparse count matrix per (data set, tokenizer), and flat ids for hidden-state text.

An embedding table has no context, so all that retrieval needs to know of a text is how often each token occurs.
Counting once per tokenizer serves every size, ablation, seed and checkpoint that shares it.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from lmshape.errors import reported_as
from lmshape.inputs import array_files, tokenizer_files
from lmshape.inputs.datasets import Dataset
from lmshape.inputs.tokenizer_loading import TokenizerError, known_words, load_tokenizer, unknown_ids

log = logging.getLogger(__name__)

BATCH = 1024  # texts given to a tokenizer at once
_ABOUT = ("tokenizer", "max_length", "dataset_revision")
_IDS = ("document_ids", "query_ids")


@dataclass(frozen=True)
class Counts:
    """How often each token occurs in each text of a data set.

    `documents` (documents, vocabulary) and `queries` (queries, vocabulary) are int32, rows in the order of the
    ids. A row sums to the text's length in tokens, special tokens included as the tokenizer adds them by default.
    `vocabulary` is the tokenizer's largest id plus one: rows of a table from there on are padding.
    """

    documents: csr_array
    queries: csr_array
    document_ids: list[str]
    query_ids: list[str]
    tokenizer: str
    max_length: int
    dataset_revision: str

    @property
    def vocabulary(self) -> int:
        return self.documents.shape[1]


def vocabulary_sha256(tokenizer: Any) -> str:
    """The hash of a tokenizer's vocabulary with its ids: two tokenizers of one name can differ in order."""
    return hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()


def compare(own: str | Path, used: str | Path, model: str, name: str) -> int:
    """How many ids are one token in the tokenizer that came with `model` and in the one called `name`.

    Raises TokenizerError if any is another: the rows of the model would be taken for those of other tokens. What
    was added to a vocabulary, special tokens among it, may differ. 0 where no tokenizer came with the model, which
    the log says.
    """
    if not tokenizer_files.among(os.listdir(own), (*tokenizer_files.VOCABULARIES, "*.gguf")):
        log.warning("%s came without a tokenizer: nothing shows that its tokens are those of %s", model, name)
        return 0
    mine, theirs = (by_id(load_tokenizer(folder)) for folder in (own, used))
    shared = sorted(mine.keys() & theirs.keys())
    if differing := [id for id in shared if mine[id] != theirs[id]]:
        first = differing[0]
        raise TokenizerError(
            f"{model}: its own tokenizer is not {name}, which the suite names: {len(differing)} of {len(shared)} ids "
            f"are other tokens, the first {first}, {mine[first]!r} and not {theirs[first]!r}; correct the suite's "
            "`tokenizer`, or describe the model in a suite of its own"
        )
    return len(shared)


def by_id(tokenizer: Any) -> dict[int, str]:
    """Id -> token of a vocabulary, without what was added to it."""
    added = tokenizer.added_tokens_decoder
    return {id: token for token, id in tokenizer.get_vocab().items() if id not in added}


def token_ids(
    texts: Sequence[str], tokenizer: Any, max_length: int | None = None, special: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of all texts, end to end (int32), and where each begins and ends (int64, texts + 1).

    The i-th text is ids[bounds[i]:bounds[i + 1]]. A text longer than `max_length` is cut by the tokenizer,
    which keeps its special tokens. `special` adds those its default adds.
    """
    ids: list[np.ndarray] = []
    lengths = [0]
    for batch in batches(texts):
        with reported_as(TokenizerError, f"{tokenizer.name_or_path}: the tokenizer cannot read a text"):
            found = tokenizer(
                batch,
                add_special_tokens=special,
                truncation=max_length is not None,
                max_length=max_length,
                return_attention_mask=False,
                verbose=False,  # else it warns of texts longer than a model takes; no model reads these
            )["input_ids"]
            ids += [np.asarray(text, dtype=np.int32) for text in found]
        lengths += map(len, found)
    return np.concatenate(ids) if ids else np.empty(0, np.int32), np.cumsum(lengths, dtype=np.int64)


def frame(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before and after a text by default, e.g. ([CLS], [SEP])."""
    word = known_words(tokenizer)[0].text
    framed, plain = (tokenizer(word, add_special_tokens=special)["input_ids"] for special in (True, False))
    for start in range(len(framed) - len(plain) + 1):
        if framed[start : start + len(plain)] == plain:
            return framed[:start], framed[start + len(plain) :]
    raise TokenizerError(
        f"{tokenizer.name_or_path}: {word!r} has the tokens {plain} without special tokens and {framed} with them: "
        "what comes before and after a text is not to be seen"
    )


def count(dataset: Dataset, tokenizer_folder: str | Path, name: str, max_length: int = 2048) -> Counts:
    """Count the tokens of a data set's documents and queries; `name` is what tables call the tokenizer.

    Raises TokenizerError where most of the documents' tokens are unknown.
    """
    tokenizer = load_tokenizer(tokenizer_folder)
    counts = count_with(tokenizer, dataset, name, max_length)
    require_known(
        counts.documents.sum(axis=0), tokenizer, f"{tokenizer_folder}, on the documents of a data set"
    )
    return counts


def count_with(tokenizer: Any, dataset: Dataset, name: str, max_length: int = 2048) -> Counts:
    """`count`, with a tokenizer that is loaded."""
    return Counts(
        documents=count_texts((document.content for document in dataset.documents), tokenizer, max_length),
        queries=count_texts(dataset.queries.values(), tokenizer, max_length),
        document_ids=[document.id for document in dataset.documents],
        query_ids=list(dataset.queries),
        tokenizer=name,
        max_length=max_length,
        dataset_revision=dataset.revision,
    )


def count_texts(texts: Iterable[str], tokenizer: Any, max_length: int | None = None) -> csr_array:
    """How often each token occurs in each text, (texts, largest id + 1) int32; see `token_ids`.

    Counted batch by batch, as the tokens of all texts one after another take several times more than their counts.
    """
    columns = largest_id(tokenizer) + 1
    found = (token_ids(batch, tokenizer, max_length) for batch in batches(texts))
    counted = [count_ids(ids, bounds, columns) for ids, bounds in found]
    return vstack([csr_array((0, columns), dtype=np.int32), *counted], format="csr")


def count_ids(ids: np.ndarray, bounds: np.ndarray, columns: int) -> csr_array:
    """How often each id below `columns` occurs in each text, (texts, columns) int32; `ids` and `bounds` as above."""
    matrix = csr_array((np.ones(len(ids), np.int32), ids, bounds), shape=(len(bounds) - 1, columns))
    matrix.sum_duplicates()
    return matrix


def require_known(occurrences: np.ndarray, tokenizer: Any, where: str) -> None:
    """TokenizerError if a text, given as how often each id occurs in it (ids,), has more unknown tokens than others.

    An unknown token that also frames texts, as in some byte-level vocabularies, says nothing and is passed over.
    """
    framing = {id for part in frame(tokenizer) for id in part}
    unknown = [id for id in unknown_ids(tokenizer) - framing if id < len(occurrences)]
    lost, others = occurrences[unknown].sum(), occurrences.sum() - occurrences[list(framing)].sum()
    if 2 * lost > others:
        raise TokenizerError(
            f"{where}: {lost} of {others} tokens are unknown ({tokenizer.unk_token}): the tokenizer is for other "
            "languages, or a part of its vocabulary is missing"
        )


def largest_id(tokenizer: Any) -> int:
    """The largest id of a tokenizer: there may be ids without a token before it."""
    return max(tokenizer.get_vocab().values())


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts, as many at a time as a tokenizer is given."""
    rest = iter(texts)
    while batch := list(islice(rest, BATCH)):
        yield batch


def save(counts: Counts, path: str | Path) -> None:
    """Write counts as .npz that can be mapped into memory, whole or not at all."""
    about = {name: getattr(counts, name) for name in _ABOUT}
    arrays = {"about": np.array(json.dumps(about))}
    arrays |= sparse_parts("documents", counts.documents) | sparse_parts("queries", counts.queries)
    arrays |= {name: as_json(getattr(counts, name)) for name in _IDS}
    array_files.save(arrays, path)


def load(path: str | Path) -> Counts:
    """What `save` wrote, mapped into memory."""
    arrays = array_files.load(path)
    sides = {side: sparse_whole(side, arrays) for side in ("documents", "queries")}
    ids = {name: json.loads(arrays[name].tobytes()) for name in _IDS}
    return Counts(**sides, **ids, **json.loads(str(arrays["about"])))


def as_json(ids: list[str]) -> np.ndarray:
    """Ids as bytes: in numpy's own array of text each would take four times the characters of the longest."""
    return np.frombuffer(json.dumps(ids).encode(), np.uint8)


def sparse_parts(name: str, matrix: csr_array) -> dict[str, np.ndarray]:
    """The arrays of a sparse matrix, named for an .npz."""
    arrays = {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape),
    }
    return {f"{name}_{part}": array for part, array in arrays.items()}


def sparse_whole(name: str, arrays: Mapping[str, np.ndarray]) -> csr_array:
    """The sparse matrix that `sparse_parts` took apart."""
    data, indices, indptr, shape = (
        arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr", "shape")
    )
    return csr_array((data, indices, indptr), shape=tuple(shape))
