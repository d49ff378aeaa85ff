"""Tables of an imaginary study with the columns of the real ones, for the tests of what a reader sees.

Two pretrained suites of one model each and two trained ones of three sizes with checkpoints; every number follows a
smooth made-up formula, so that a drawing of it can be judged by eye too.
"""

from itertools import combinations, product
from math import exp, log2, sin, sqrt

import numpy as np
import polars as pl

from lmshape.report.tables import flag_repeats

STEPS = (0, 1, 4, 16, 64, 256, 1024)
# suite, size, parameters, stack, embedding width, blocks, steps
MODELS = (
    ("minilm", "l6", 22_713_216, "encoder", 384, 6, (None,)),
    ("smollm2", "135m", 134_515_008, "decoder", 576, 30, (None,)),
    *(("neox-small", size, 4096 * width * 2, "decoder", width, blocks, STEPS) for size, width, blocks in (
        ("64x3", 64, 3), ("96x4", 96, 4), ("128x6", 128, 6))),
    *(("bert-small", size, 4096 * width, "encoder", width, blocks, STEPS) for size, width, blocks in (
        ("64x3", 64, 3), ("96x4", 96, 4), ("128x6", 128, 6))),
)  # fmt: skip
ABLATIONS = {"original": (None,), "crop-32": (None,), "crop-64": (None,), "pad-512": (0, 1), "random": (0, 1)}
VOCABULARY = {"minilm": 30522, "smollm2": 49152, "neox-small": 4096, "bert-small": 4096}


def retrieval() -> pl.DataFrame:
    """One row per (model, step, side, ablation, seed, metric)."""
    return pl.DataFrame([row for model in MODELS for row in _retrieval(*model)], infer_schema_length=None)


def _retrieval(suite, size, parameters, stack, width, blocks, steps):
    sides = ("input", "output") if suite == "neox-small" else ("input",)
    for step, side, (ablation, seeds) in product(steps, sides, ABLATIONS.items()):
        number = int(ablation.partition("-")[2] or 0)
        impossible = ablation.startswith("crop") and number > width
        repeated = ablation == "random" and side == "output"  # the same table as the input side's
        if impossible or repeated or (step != steps[-1] and ablation != "original"):
            continue
        for seed, metric in product(seeds, ("ndcg_at_10", "map_at_10")):
            scored = number or width
            value = 0.08 * log2(min(scored, width)) - 0.2 + 0.05 * (ablation == "pad-512")
            value *= 0.6 + 0.4 * _progress(step)
            value += -0.05 * (side == "output") + 0.02 * sin(parameters)
            value = (0.03 * log2(width) if ablation == "random" else value) + 0.011 * (seed or 0)
            yield {
                "suite": suite, "size": size, "parameters": parameters, "checkpoint": _checkpoint(step), "step": step,
                "side": side, "width": scored, "embedding_width": width, "vocabulary_rows": VOCABULARY[suite],
                "ablation": ablation, "seed": seed, "dataset": "package-docs", "metric": metric,
                "value": value, "stderr": 0.018, "queries": 240, "tokenizer": f"{suite}-tokenizer",
                "dtype": "float32", "table_sha256": f"{suite} {size} {side} {step}", "reason": None,
                "model_revision": f"{suite}-revision", "dataset_revision": "docs-revision",
            }  # fmt: skip


def random_baseline() -> pl.DataFrame:
    """One row per (tokenizer, width, seed)."""
    rows = []
    for (suite, vocabulary), width, seed in product(
        VOCABULARY.items(), (32, 64, 128, 256, 512, 1024), (0, 1, 2)
    ):
        value = 0.03 * log2(width) + 0.01 * log2(vocabulary) + 0.02 * (seed - 1) / sqrt(width / 32)
        rows.append({
            "tokenizer": f"{suite}-tokenizer", "vocabulary_rows": vocabulary, "width": width, "seed": seed,
            "dataset": "package-docs", "metric": "ndcg_at_10", "value": value, "stderr": 0.018, "reason": None,
        })  # fmt: skip
    return pl.DataFrame(rows)


def comparisons() -> pl.DataFrame:
    """One row per (suite, side, pair of sizes)."""
    trained = ("neox-small", "bert-small")
    sizes = combinations(("64x3", "96x4", "128x6"), 2)
    rows = [
        {"suite": suite, "dataset": "package-docs", "side": side, "first": large, "second": small,
         "metric": "ndcg_at_10", "difference": 0.01 * gain, "low": 0.01 * gain - 0.02, "high": 0.01 * gain + 0.02,
         "probability": 1 / (1 + exp(-gain)), "queries": 240, "reason": None}
        for suite, (gain, (small, large)) in product(trained, enumerate(sizes, start=-1))
        for side in (("input", "output") if suite == "neox-small" else ("input",))
    ]  # fmt: skip
    return pl.DataFrame(rows)


def word_similarity() -> pl.DataFrame:
    """One row per (data set, model, side), final checkpoints."""
    rows = []
    for dataset, (suite, size, parameters, _, width, _, steps) in product(
        ("wordsim353", "simlex999"), MODELS
    ):
        for side in ("input", "output") if suite == "neox-small" else ("input",):
            spearman = 0.09 * log2(width) - 0.3 - 0.15 * (dataset == "simlex999") - 0.1 * (side == "output")
            rows.append({
                "suite": suite, "size": size, "parameters": parameters, "checkpoint": _checkpoint(steps[-1]),
                "step": steps[-1], "side": side, "embedding_width": width, "dataset": dataset, "spearman": spearman,
                "stderr": 0.05, "pairs": 340 if dataset == "wordsim353" else 980, "missing": 13, "reason": None,
            })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def anisotropy() -> pl.DataFrame:
    """One row per (model, step, layer, measure, centred, positions)."""
    measures = (
        ("svd", True),
        ("svd", False),
        ("average_cosine", True),
        ("average_cosine", False),
        ("largest_norms", True),
    )
    rows = []
    for (suite, size, parameters, stack, _, blocks, steps), (measure, centered) in product(MODELS, measures):
        for step, layer, positions in product(steps, range(blocks + 1), ("all", "without_first")):
            depth = layer / blocks
            bell = exp(-(((depth - 0.5) / 0.25) ** 2)) * _progress(step) * (positions == "all")
            mean = 0.08 + 0.04 * sin(3 * depth + blocks) + (0.8 * bell if stack == "decoder" else 0.05 * bell)
            mean += 0.1 * (not centered) - 0.07 * (measure == "average_cosine") * (1 + centered)
            rows.append({
                **_key(suite, size, parameters, stack, step, layer, blocks), "measure": measure, "centered": centered,
                "positions": positions, **_batches(mean, 0.012 + 0.02 * bell, layer), "batch_size": 4096,
                "texts": 21,
                "rows_dropped": 0, "seed": 0, "dtype": "float32", "reason": None,
            })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def intrinsic_dimension() -> pl.DataFrame:
    """One row per (model, step, layer, estimator and fraction, positions)."""
    estimators = (("twonn", 0.9, 1.0), ("twonn", 0.2, 1.15), ("mada", None, 0.85), ("mom", None, 0.95))
    rows = []
    for (suite, size, parameters, stack, width, blocks, steps), (estimator, fraction, scale) in product(
        MODELS, estimators
    ):
        for step, layer, positions in product(steps, range(blocks + 1), ("all", "without_first")):
            rise = _progress(step) * (1.6 - _progress(step))
            mean = scale * (
                4 + log2(width) * (0.6 + rise) + 2 * sin(4 * layer / blocks) + (positions == "all")
            )
            rows.append({
                **_key(suite, size, parameters, stack, step, layer, blocks), "estimator": estimator,
                "fraction": fraction, "positions": positions, **_batches(mean, 0.4, layer + (step or 0)),
                "stderr": 0.2, "batch_size": 4096, "texts": 21, "extreme_ratios": 0.001 if fraction else None,
                "doubt": None, "rows_dropped": 12, "seed": 0, "dtype": "float32", "reason": None,
            })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def pretraining() -> pl.DataFrame:
    """One row per (trained model, step)."""
    trained = [model for model in MODELS if model[0].endswith("-small")]
    steps = sorted({*STEPS, *range(0, 1025, 16)})
    return pl.DataFrame([
        {"suite": suite, "size": size, "parameters": parameters, "step": step,
         "loss": 3 + 30 / width + (5.3 - 30 / width) * exp(-step / 120) + 0.03 * sin(step / 16)}
        for (suite, size, parameters, _, width, _, _), step in product(trained, steps)
    ])  # fmt: skip


def benchmarks() -> pl.DataFrame:
    """One row per job: three rules on every model, and one that knows none; short jobs have no peak of memory."""
    rules = {
        "hidden_states": (3e-7, 6e-6),
        "measure_anisotropy": (2e-8, 1e-6),
        "embedding_table": (1e-9, 2e-6),
    }
    rows = [{"rule": "text", "suite": None, "size": None, "parameters": None, "seconds": 5.0, "cpu_seconds": 4.0,
             "peak_memory_mib": 60.0}]  # fmt: skip
    for (rule, (time, memory)), (suite, size, parameters, *_) in product(rules.items(), MODELS):
        seconds = 0.4 + time * parameters
        seen = seconds >= 1
        rows.append({
            "rule": rule, "suite": suite, "size": size, "parameters": parameters, "seconds": seconds,
            "cpu_seconds": 0.9 * seconds if seen else None,
            "peak_memory_mib": 100 + memory * parameters if seen else None,
        })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def all_tables() -> dict[str, pl.DataFrame]:
    """Table name -> frame."""
    makers = (
        retrieval,
        comparisons,
        random_baseline,
        word_similarity,
        anisotropy,
        intrinsic_dimension,
        pretraining,
        benchmarks,
    )
    return {make.__name__: flag_repeats(make()) for make in makers}


def missing(table: pl.DataFrame, where: pl.Expr) -> pl.DataFrame:
    """A table of layers that has no value `where`, in none of its columns."""
    return table.with_columns(pl.when(~where).then(name) for name in ("mean", "std", "by_batch"))


def _key(suite, size, parameters, stack, step, layer, blocks):
    return {
        "suite": suite, "size": size, "parameters": parameters, "architecture": stack, "stack": stack,
        "checkpoint": _checkpoint(step), "step": step, "layer": layer, "layers": blocks + 1,
        "table_sha256": f"{suite} {size} input {step}",
    }  # fmt: skip


def _batches(mean, std, place):
    """Four batches of this mean and standard deviation, which move independently from one place to another."""
    scatter = np.random.default_rng(place).standard_normal(4)
    scatter -= scatter.mean()
    values = mean + std * scatter / scatter.std(ddof=1)
    return {"mean": mean, "std": std, "by_batch": values.tolist(), "batches": 4}


def _checkpoint(step):
    return "main" if step is None else f"step{step}"


def _progress(step):
    return 1.0 if step is None else 1 - exp(-step / 100)
