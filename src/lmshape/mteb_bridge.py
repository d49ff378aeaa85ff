"""An embedding table, ablated, as a model of mteb: docs/mteb.md says how to use it.

On a retrieval task mteb is given the ranking that `lmshape.retrieval` scores, so the two agree; on any other task
of texts (similarity, classification, clustering) it is given mean-pooled vectors.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ModelMeta, ScoringFunction

from lmshape.inputs import checkpoints, datasets, tokens
from lmshape.inputs.datasets import Dataset
from lmshape.inputs.tokens import Counts
from lmshape.numerics import ablation as ablations
from lmshape.numerics import ranking
from lmshape.numerics.ranking import Precision, Run
from lmshape.study.ablation_names import Ablation

PAIRS = 2_000_000  # of queries and candidates that are compared at once: a sixth of a GiB by their ids


def model(
    table: str | Path,
    tokenizer: str | Path,
    ablation: str = "original",
    seed: int | None = None,
    precision: Precision = "float32",
    max_length: int = 2048,
) -> "TableModel":
    """The mteb model of an embedding table file and its tokenizer's folder, under an ablation.

    `seed` is for ablations that draw numbers; to others it says nothing. mteb keeps results by a model's name and
    revision, so the name has every setting, and the revision is the table's hash and twelve digits of that of the
    tokenizer's vocabulary.
    """
    chosen = Ablation.parse(ablation)
    loaded = tokens.load_tokenizer(tokenizer)
    vocabulary = max(loaded.get_vocab().values()) + 1
    panels = ablations.apply(chosen, checkpoints.load(table), vocabulary, seed)
    drawn = f"-seed-{seed}" if chosen.random else ""
    name = f"{Path(table).stem}-{Path(tokenizer).name}-{ablation}{drawn}-{precision}-{max_length}"
    revision = f"{checkpoints.information(table).sha256}-{tokens.vocabulary_sha256(loaded)[:12]}"
    return TableModel(panels, loaded, f"lmshape/{name}", revision, precision, max_length)


class TableModel(AbsEncoder):
    """A table (panels side by side) with its tokenizer, by mteb's search and encoder protocols."""

    def __init__(
        self,
        panels: Sequence[ablations.Panel],
        tokenizer: Any,
        name: str,
        revision: str,
        precision: Precision = "float32",
        max_length: int = 2048,
    ):
        self.panels = panels
        self.tokenizer = tokenizer
        self.precision = ranking.known(precision)  # a model's name must not hold an unknown one
        self.max_length = max_length
        self.width = sum(panel.shape[1] for panel in panels)
        facts = {"name": name, "revision": revision, "embed_dim": self.width, "max_tokens": max_length}
        self.mteb_model_meta = ModelMeta.create_empty(facts | {"similarity_fn_name": ScoringFunction.COSINE})

    def index(self, corpus: Iterable[Mapping[str, Any]], **_: Any) -> None:
        """Keep a corpus for `search`."""
        self.corpus = datasets.from_mteb_corpus(corpus)

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> Run:
        """The `top_k` best documents of each query, among `top_ranked` where a task reranks.

        A query without candidates has no results. A document of the query's own id comes on top of the others: where
        a task wants it left out, mteb does so later.
        """
        dataset = Dataset(self.corpus, datasets.from_mteb_queries(queries), {})
        counts = tokens.count_with(self.tokenizer, dataset, self.mteb_model_meta.name, self.max_length)
        if top_ranked is None:
            run = self.best(counts, counts.query_ids, top_k + 1)
        else:
            run = self.reranked(counts, top_ranked)
        return {
            query: dict(islice(documents.items(), top_k + (query in documents)))
            for query, documents in run.items()
        }

    def best(self, counts: Counts, query_ids: Collection[str], depth: int) -> Run:
        """The `depth` best documents of each query."""
        found = ranking.search(counts, query_ids, self.panels, [self.width], depth, self.precision)
        return found[self.width].run

    def reranked(self, counts: Counts, top_ranked: Mapping[str, Sequence[str]]) -> Run:
        """Each query's candidates, best first: some queries at a time are compared with all that any of them has."""
        place_of = {id: place for place, id in enumerate(counts.document_ids)}
        most = max(map(len, top_ranked.values()), default=0)
        step = max(1, math.isqrt(PAIRS // max(1, most)))
        run: Run = {}
        for first in range(0, len(counts.query_ids), step):
            queries = counts.query_ids[first : first + step]
            candidates = {query: set(top_ranked.get(query, ())) & place_of.keys() for query in queries}
            places = sorted(place_of[id] for id in set().union(*candidates.values()))
            theirs = replace(
                counts,
                documents=counts.documents[places],
                document_ids=[counts.document_ids[place] for place in places],
            )
            for query, documents in self.best(theirs, queries, len(places)).items():
                run[query] = {id: score for id, score in documents.items() if id in candidates[query]}
        return run

    def encode(self, inputs: Iterable[Mapping[str, Any]], **_: Any) -> np.ndarray:
        """The mean token row of each text, (texts, width) float32; zeros for a text without tokens."""
        texts = [text for batch in inputs for text in batch["text"]]
        counts = tokens.count_texts(texts, self.tokenizer, self.max_length)
        return np.hstack(
            [
                ranking.means(ranking.with_rows(counts, panel.shape[0]), panel, self.precision)
                for panel in self.panels
            ]
        )
