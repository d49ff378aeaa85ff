"""Jobs that measure depend on little, for there are thousands of them.

Those that score tables import nothing heavy (mteb alone takes five seconds). Neither code that makes tables or
figures of their rows makes a measure stale, nor code that finds the user's models or plans a job.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import script_job
from called_by_name import FUNCTIONS
from counted import counts, matrix

from lmshape import word_similarity
from lmshape.inputs import checkpoints, datasets, tokens
from lmshape.inputs.datasets import Dataset, Document
from lmshape.jobs import fingerprint
from lmshape.study.ablation_names import Ablation

MODELS = {"mteb", "sentence_transformers", "transformers"}
SOLVERS = {
    "scipy.linalg",
    "scipy.special",
    "scipy.stats",
    "scipy.spatial",
    "pydantic",
    "yaml",
}  # as long as the scores
SEEN = "numpy"  # every job imports it: what is imported is seen
TABLE = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
DOCUMENTS = {"d1": [0, 1], "d2": [2, 3, 3], "d3": [4]}
QUERIES = {"q1": [0], "q2": [3, 4]}
MEASURES = (
    "retrieve",
    "random_baseline",
    "mteb_task",
    "measure_word_similarity",
    "measure_anisotropy",
    "estimate_intrinsic_dimension",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A table, a data set with its counts, and counted word pairs."""
    folder = tmp_path_factory.mktemp("inputs")
    table = checkpoints.Embedding(TABLE, "float32", "F32", "embed", False)
    checkpoints.save(table, folder / "input.safetensors", "r1")
    texts = [Document(id, "", "text") for id in DOCUMENTS]
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    datasets.write(Dataset(texts, dict.fromkeys(QUERIES, "text"), qrels), folder / "dataset")
    tokens.save(counts(DOCUMENTS, QUERIES, 5), folder / "counts.npz")
    sides = [matrix(words, 5) for words in ([[0], [1], [2]], [[1], [3], [4]])]
    pairs = word_similarity.CountedPairs(*sides, np.array([1.0, 2.0, 3.0]), 0)
    word_similarity.save(pairs, folder / "pairs.npz")
    return folder


def imported(packages: set[str], script: str, folder: Path, **names: dict) -> list[str]:
    """Which of `packages`, and of what is seen for sure, a script has imported when it is done."""
    return script_job.run(script, folder, [SEEN, *packages], **names)


def retrieve(
    ablation: str,
    folder: Path,
    output: Path,
    seed: str = "none",
    drawn: str = "",
    baseline: list[str] = [],  # noqa: B006
) -> dict[str, dict]:
    """What Snakemake would give the script of a job of retrieval."""
    inputs = {"dataset": "dataset", "counts": "counts.npz", "table": "input.safetensors"}
    inputs = {name: str(folder / file) for name, file in inputs.items()}
    return {
        "input": inputs | {"drawn": drawn, "baseline": baseline},
        "output": {"rows": str(output / "rows.parquet"), "queries": str(output / "queries.parquet")},
        "params": {
            "columns": {"suite": "s"},
            "function": f"numerics.ablation.{Ablation.parse(ablation).kind}",
            "size": Ablation.parse(ablation).size,
            "precision": "float32",
            "bootstrap": 10,
        },
        "wildcards": {"side": "input", "ablation": ablation, "seed": seed, "dataset": "d"},
    }


def random_baseline(folder: Path, output: Path, drawn: str = "", rows: int = 6) -> dict[str, dict]:
    return {
        "input": {"dataset": str(folder / "dataset"), "counts": str(folder / "counts.npz"), "drawn": drawn},
        "output": {name: str(output / f"baseline.{name}.parquet") for name in ("rows", "queries")},
        "params": {"rows": rows, "widths": [4, 32], "precision": "float32", "bootstrap": 10},
        "wildcards": {"dataset": "d", "seed": "0"},
    }


def measure_word_similarity(folder: Path, output: Path) -> dict[str, dict]:
    return {
        "input": {"counts": str(folder / "pairs.npz"), "table": str(folder / "input.safetensors")},
        "output": {"rows": str(output / "rows.parquet")},
        "params": {"columns": {"suite": "s"}, "tokenizer": "t"},
        "wildcards": {"side": "input", "dataset": "words"},
    }


@pytest.mark.parametrize("ablation", ["original", "crop-2", "pca-2", "centered"])
def test_retrieve_of_an_ablation_that_draws_nothing_imports_no_model_package_and_no_torch(
    ablation, folder, tmp_path
):
    given = retrieve(ablation, folder, tmp_path)
    solvers = SOLVERS if ablation != "pca-2" else set()
    assert imported(MODELS | {"torch"} | solvers, "retrieve", tmp_path, **given) == [SEEN]
    row = pl.read_parquet(tmp_path / "rows.parquet").filter(metric="ndcg_at_10").row(0, named=True)
    assert (row["ablation"], row["embedding_width"], row["queries"], row["reason"]) == (ablation, 4, 2, None)
    assert pl.read_parquet(tmp_path / "queries.parquet")["query"].to_list() == ["q1", "q2"]


@pytest.fixture(scope="module")
def drawn(folder) -> str:
    """The random table of the width of the widest reader, as a job of its own draws it."""
    path = str(folder / "0.bfloat16")
    names = {"rows": "6", "length": "14336", "seed": "0"}
    given = {"input": {}, "output": {"file": path}, "params": {"columns": 32}, "wildcards": names}
    assert imported({"torch"}, "draw_random_table", folder, **given) == [SEEN, "torch"]
    return path


def test_what_reads_a_drawn_table_imports_no_torch_and_finds_what_drawing_it_there_finds(
    folder, drawn, tmp_path
):
    """A random table is the same with and without a file, and that of the baseline at its width."""
    baseline = random_baseline(folder, tmp_path, drawn)
    assert imported(MODELS | SOLVERS | {"torch"}, "random_baseline", tmp_path, **baseline) == [SEEN]
    scored = pl.read_parquet(baseline["output"]["rows"])
    assert scored["width"].unique().sort().to_list() == [4, 32]
    found = []
    taken = list(baseline["output"].values())
    for given in ({}, {"drawn": drawn}, {"baseline": taken}):
        seen = imported(
            MODELS | {"torch"}, "retrieve", tmp_path, **retrieve("random", folder, tmp_path, "0", **given)
        )
        assert seen == ([SEEN] if given else [SEEN, "torch"])
        found.append([pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("rows", "queries")])
    (rows, queries), *others = found
    assert rows["value"].null_count() == 0 and queries["query"].to_list() == ["q1", "q2"]
    assert all(rows.equals(other[0]) and queries.equals(other[1]) for other in others)


def test_a_random_baseline_that_cannot_be_scored_is_nulls_with_a_reason_and_so_is_what_is_taken_from_it(
    folder, tmp_path
):
    baseline = random_baseline(folder, tmp_path, rows=3)
    imported(set(), "random_baseline", tmp_path, **baseline)
    imported(
        set(),
        "retrieve",
        tmp_path,
        **retrieve("random", folder, tmp_path, "0", baseline=list(baseline["output"].values())),
    )
    for path, widths in ((baseline["output"]["rows"], [4, 32]), (tmp_path / "rows.parquet", [4])):
        rows = pl.read_parquet(path)
        assert rows["width"].unique().sort().to_list() == widths and rows["value"].null_count() == rows.height
        assert rows["reason"].str.contains("has no row in a table of 3").all()
    assert pl.read_parquet(tmp_path / "queries.parquet").is_empty()


def test_word_similarity_imports_no_model_package_and_no_torch(folder, tmp_path):
    given = measure_word_similarity(folder, tmp_path)
    assert imported(MODELS | SOLVERS | {"torch"}, "measure_word_similarity", tmp_path, **given) == [SEEN]
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert rows.select("side", "pairs", "missing").row(0) == ("input", 3, 0)


@pytest.mark.parametrize("script", ["retrieve", "measure_word_similarity"])
def test_trap_1_all_that_a_job_comes_to_call_counts_as_its_code(script, folder, tmp_path):
    """Python says what is called."""
    given = {
        "retrieve": retrieve("crop-2", folder, tmp_path),
        "measure_word_similarity": measure_word_similarity(folder, tmp_path),
    }[script]
    functions = filter(None, [given["params"].get("function")])
    reached = fingerprint.Code().reached(script_job.SCRIPTS / f"{script}.py", *functions)
    counted = {(node.module, name) for node in reached if node.statement for name in node.statement.binds}
    called = {
        (module, name.partition(".")[0])
        for module, name in script_job.called(script, tmp_path, **given)
        if not module.startswith("lmshape.jobs") and not name.startswith("<")  # run when a module is imported
    }
    assert len(called) > 15 and called <= counted


def test_published_numbers_are_compared_on_their_data_set_alone_without_a_model_package(tmp_path):
    row = {
        "suite": "pythia",
        "size": "14m",
        "final": True,
        "side": "input",
        "ablation": "original",
        "seed": None,
    }
    row |= {"tokenizer": "gpt-neox", "embedding_width": 128, "metric": "ndcg_at_10", "reason": None}
    row |= {"vocabulary_rows": 50304, "queries": 1000}
    scored = [
        row | {"precision": "published", "dataset": name, "value": 0.01} for name in ("other", "scidocs")
    ]
    pl.DataFrame(scored).write_parquet(tmp_path / "retrieval.parquet")
    found = imported(
        MODELS | {"torch"},
        "compare_with_published",
        tmp_path,
        input={"retrieval": str(tmp_path / "retrieval.parquet")},
        output={"rows": str(tmp_path / "rows.parquet")},
        params={},
        wildcards={"dataset": "scidocs"},
    )
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert rows.height == 40 and rows["measured"].drop_nulls().to_list() == [1.0]
    assert set(found) <= {SEEN}


def modules(script: str) -> set[str]:
    """The modules of lmshape that a script reaches."""
    reached = fingerprint.Code().reached(script_job.SCRIPTS / f"{script}.py", *FUNCTIONS.get(script, ()))
    return {node.module for node in reached}


@pytest.mark.parametrize("script", MEASURES)
def test_trap_1_an_edit_of_the_report_makes_no_measure_stale(script):
    found = modules(script)
    assert "lmshape.files" in found and not [name for name in found if name.startswith("lmshape.report")]


@pytest.mark.parametrize("script", [*MEASURES, "counts", "dataset", "pretrain"])
def test_trap_1_where_models_lie_and_what_a_job_will_take_is_no_part_of_what_it_computes(script):
    found, others = modules(script), {"lmshape.inputs.local_models", "lmshape.inputs.mteb_sizes"}
    assert "lmshape.files" in found and not others & found
    assert not [name for name in found if name.startswith("lmshape.jobs")]
