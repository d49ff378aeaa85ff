"""On the data set that the embedded study builds, mteb with sentence-transformers' pooling scores the same tables."""

import polars as pl
import pytest
from peers import by_mteb, sentence_transformer

from lmshape.inputs import checkpoints, datasets


@pytest.mark.parametrize(
    ("suite", "size", "checkpoint", "tokenizer"),
    [("neox-small", "1.5m", "step128", "neox-small"), ("minilm", "22.7m", "main", "bert-uncased")],
)
def test_mteb_with_sentence_transformers_scores_the_same(embedded_study, suite, size, checkpoint, tokenizer):
    dataset = datasets.read(embedded_study / "datasets" / "package-documentation")
    table = checkpoints.load(embedded_study / "embeddings" / suite / size / checkpoint / "input.safetensors")
    theirs = by_mteb(sentence_transformer(table, embedded_study / "tokenizers" / tokenizer), dataset)
    rows = pl.read_parquet(embedded_study / "tables" / "retrieval.parquet").filter(
        suite=suite, size=size, checkpoint=checkpoint, ablation="original"
    )
    for metric in ("ndcg_at_10", "map_at_100", "recall_at_100", "precision_at_5"):
        ours = rows.filter(metric=metric)["value"].item()
        assert ours == pytest.approx(theirs[metric], abs=1e-4)
