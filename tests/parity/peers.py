"""Independent code for the same measures: sentence-transformers' mean pooling, scored by mteb."""

import copy
from pathlib import Path
from typing import Any

import datasets as hugging_face
import mteb
import numpy as np
import torch
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling

from lmshape.inputs import tokens
from lmshape.inputs.datasets import Dataset


def sentence_transformer(table: np.ndarray, tokenizer: str | Path) -> SentenceTransformer:
    """sentence-transformers' own mean pooling over a table, as the published study used it."""

    class Rows(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokenizer = tokens.load_tokenizer(tokenizer)
            self.tokenizer.pad_token = self.tokenizer.pad_token or self.tokenizer.eos_token
            self.rows = torch.nn.Embedding.from_pretrained(torch.from_numpy(table))

        def preprocess(self, texts, **_):
            return self.tokenizer(
                list(texts), padding=True, truncation=True, max_length=2048, return_tensors="pt"
            )

        def forward(self, features, **_):
            return features | {"token_embeddings": self.rows(features["input_ids"])}

    return SentenceTransformer(modules=[Rows(), Pooling(table.shape[1], "mean")], device="cpu")


def mteb_task(dataset: Dataset) -> AbsTaskRetrieval:
    """A data set of ours as a retrieval task of mteb's."""

    class Task(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name="Local", description="local", reference=None, type="Retrieval", category="t2t", modalities=["text"],
            eval_splits=["test"], eval_langs=["eng-Latn"], main_score="ndcg_at_10", date=None, domains=None,
            task_subtypes=None, license=None, annotations_creators=None, dialect=None, sample_creation=None,
            bibtex_citation=None, dataset={"path": "local", "revision": "1"},
        )  # fmt: skip
        ignore_identical_ids = dataset.drop_self

        def load_data(self, **_):
            rows = [{"id": d.id, "title": d.title, "text": d.text} for d in dataset.documents]
            queries = [{"id": id, "text": text} for id, text in dataset.queries.items()]
            data = {
                "corpus": hugging_face.Dataset.from_list(rows),
                "queries": hugging_face.Dataset.from_list(queries),
                "relevant_docs": copy.deepcopy(dataset.qrels),
                "top_ranked": None,
            }
            self.dataset = {"default": {"test": data}}
            self.data_loaded = True

    return Task()


def by_mteb(model: Any, dataset: Dataset) -> dict[str, float]:
    """mteb's scores of a model on a data set."""
    result = mteb.evaluate(model, mteb_task(dataset), cache=None, co2_tracker=False, show_progress_bar=False)
    return result.task_results[0].scores["test"][0]
