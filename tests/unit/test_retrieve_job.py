"""The tables that a job of retrieval writes: two runs give the same, and so does any order of its data set."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import script_job
import word_tokenizer

from lmshape.inputs import checkpoints, datasets, tokens
from lmshape.inputs.datasets import Dataset, Document
from lmshape.retrieval import METRICS
from lmshape.study.ablation_names import Ablation

RNG = np.random.default_rng(0)
WORDS = [f"w{number}" for number in range(30)]


@pytest.fixture(scope="module")
def dataset():
    """1,300 documents of the words of fifteen texts: the thousand that are looked at end among equal scores."""
    texts = [RNG.choice(WORDS, 12).tolist() for _ in range(15)]
    mixed = [" ".join(RNG.permutation(texts[RNG.integers(15)])) for _ in range(1297)]
    documents = [Document(f"d{number}", "", text) for number, text in enumerate([*mixed, "", "", "w1"])]
    queries = {f"q{number}": " ".join(RNG.choice(WORDS, 4)) for number in range(20)}
    qrels = {
        query: {f"d{number}": int(RNG.integers(-1, 4)) for number in RNG.choice(1300, 60, replace=False)}
        for query in list(queries)[:-1]
    }
    return Dataset(documents, queries, qrels)


def permuted(dataset: Dataset) -> Dataset:
    """The same in another order."""

    def mix(mapping: dict) -> dict:
        return {key: mapping[key] for key in RNG.permutation(list(mapping)).tolist()}

    documents = [dataset.documents[place] for place in RNG.permutation(len(dataset.documents))]
    qrels = {query: mix(grades) for query, grades in mix(dataset.qrels).items()}
    return Dataset(documents, mix(dataset.queries), qrels)


def retrieve(folder: Path, table: Path, ablation: str, seed: str) -> list[pl.DataFrame]:
    """The two tables that the job writes of the data set and counts in `folder`."""
    script_job.run(
        "retrieve",
        folder,
        input={
            "dataset": "dataset",
            "counts": "counts.npz",
            "table": str(table),
            "drawn": "",
            "baseline": "",
        },
        output={"rows": "rows.parquet", "queries": "queries.parquet"},
        params={
            "columns": {"suite": "s"},
            "function": f"numerics.ablation.{Ablation.parse(ablation).kind}",
            "size": Ablation.parse(ablation).size,
            "precision": "float32",
            "bootstrap": 50,
        },
        wildcards={"side": "input", "ablation": ablation, "seed": seed, "dataset": "d"},
    )
    return [pl.read_parquet(folder / name) for name in ("rows.parquet", "queries.parquet")]


@pytest.mark.parametrize(("ablation", "seed", "width"), [("original", "none", 8), ("pad-24", "3", 24)])
def test_two_runs_and_any_order_of_documents_queries_and_judgements_give_identical_tables(
    dataset, ablation, seed, width, tmp_path
):
    table = RNG.standard_normal((40, 8)).astype(np.float32)
    checkpoints.save(
        checkpoints.Embedding(table, "float32", "F32", "embed", False), tmp_path / "input.safetensors", "r1"
    )
    tokenizer = word_tokenizer.save(tmp_path, WORDS)
    found = []
    for number, given in enumerate((dataset, dataset, permuted(dataset))):
        folder = tmp_path / f"run{number}"
        datasets.write(given, folder / "dataset")
        tokens.save(
            tokens.count(datasets.read(folder / "dataset"), tokenizer, "words"), folder / "counts.npz"
        )
        found.append(retrieve(folder, tmp_path / "input.safetensors", ablation, seed))
    (rows, queries), *others = found
    assert rows["metric"].to_list() == list(METRICS)
    assert rows["width"].unique().to_list() == [width] and rows["zero_documents"].unique().to_list() == [2]
    assert (
        queries.height == 19
        and rows.filter(metric="recall_at_1000")["value"].is_between(0.5, 1, "none").all()
    )
    for other_rows, other_queries in others:
        assert rows.equals(other_rows)
        assert queries.equals(other_queries)


def test_trap_14_an_unused_token_without_a_row_costs_the_cells_that_look_at_all_tokens_and_no_job(
    dataset, tmp_path
):
    table = RNG.standard_normal((len(WORDS) + 1, 8)).astype(np.float32)
    checkpoints.save(
        checkpoints.Embedding(table, "float32", "F32", "embed", False), tmp_path / "input.safetensors", "r1"
    )
    tokenizer = word_tokenizer.save(tmp_path, [*WORDS, "unused"])
    datasets.write(dataset, tmp_path / "dataset")
    tokens.save(tokens.count(dataset, tokenizer, "words"), tmp_path / "counts.npz")
    (scored, _), (failed, queries) = (
        retrieve(tmp_path, tmp_path / "input.safetensors", name, "none") for name in ("original", "centered")
    )
    assert scored["value"].null_count() == 0
    assert failed["value"].null_count() == failed.height == len(METRICS)
    assert failed["reason"].unique().to_list() == ["centered: 32 tokens do not fit in a table of 31 rows"]
    assert queries.is_empty()
