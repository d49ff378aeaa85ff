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
from sentence_transformers.sentence_transformer.modules import Pooling, WordWeights

from lmshape.inputs import tokens
from lmshape.inputs.datasets import Dataset


class Rows(torch.nn.Module):
    """The rows of a table for the tokens of texts, as a module of sentence-transformers."""

    def __init__(self, table: torch.Tensor, tokenizer: str | Path):
        super().__init__()
        self.tokenizer = tokens.load_tokenizer(tokenizer)
        self.tokenizer.pad_token = self.tokenizer.pad_token or self.tokenizer.eos_token
        self.rows = torch.nn.Embedding.from_pretrained(table)

    def preprocess(self, texts, **_):
        return self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=2048, return_tensors="pt"
        )

    def forward(self, features, **_):
        return features | {"token_embeddings": self.rows(features["input_ids"])}


def sentence_transformer(table: np.ndarray, tokenizer: str | Path) -> SentenceTransformer:
    """sentence-transformers' own mean pooling over a table."""
    modules = [Rows(torch.from_numpy(table), tokenizer), Pooling(table.shape[1], "mean")]
    return SentenceTransformer(modules=modules, device="cpu")


def published_transformer(table: torch.Tensor, tokenizer: str | Path) -> SentenceTransformer:
    """sentence-transformers' mean pooling over a bfloat16 table as it was for the published study.

    What is rounded, that library decides: no type is set here but the table's. Until 2.2.2 its Pooling multiplied the
    rows of a text by `attention_mask.float()`, and by torch's rules all that follows is float32. Today's takes the
    mask in the rows' own type, and rounds the mean to that; but its WordWeights still multiplies rows by
    `attention_mask.float()`, and by weights that are 1 where none are given, for Pooling to add up. The two together
    give what 2.2.2's Pooling gave, bit for bit.
    """
    weights = WordWeights([f"token {id}" for id in range(len(table))], {})
    modules = [Rows(table, tokenizer), weights, Pooling(table.shape[1], "mean")]
    return SentenceTransformer(modules=modules, device="cpu")


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
