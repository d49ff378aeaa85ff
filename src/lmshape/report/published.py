"""What a published study printed beside what was measured here."""

import math
from pathlib import Path

import polars as pl

NUMBERS = Path(__file__).with_name("published_retrieval.csv")
SOURCE = "github.com/jstephencorey/LMEmbeddingAnalysis"
METRIC = "ndcg_at_10"
# Half of the last digit in print, in hundredths
PRINTED = 0.0005
# The most that nDCG of one query changes when neighbours in its ranking change places, in hundredths: the first and
# the second, of which one is the only answer
SWAPPED = 100 * (1 - 1 / math.log2(3))
# Rows of the study's random tables, which its random baseline names
DRAWN_ROWS = {"gpt-neox": 50304, "opt": 50272, "gpt2": 50257, "bloom": 250880, "t5-v1_1": 32128}
FACTS = ["suite", "size", "tokenizer", "width", "ablation", "seed"]

# (suite, ablation, what speaks against its numbers)
SUSPECT = [
    (
        "pythia",
        "crop-128",
        "one number for every size, though 14m cropped to its 128 columns must keep its 1.797",
    ),
    ("t5-v1_1", "crop-128", "one number for every size, though their tables differ"),
]

# What a number is about, in words: two numbers of one quantity should be equal. A random table knows no weights.
_TABLE = (
    pl.when(pl.col("ablation") == "random")
    .then(pl.format("random table of {}, {} x {}", "tokenizer", "vocabulary_rows", "width"))
    .otherwise(pl.format("{} {} {}", "suite", "size", "ablation"))
)
_SEED = pl.when(pl.col("seed").is_null()).then(pl.lit("")).otherwise(pl.format(", seed {}", "seed"))
QUANTITY = pl.format("nDCG@10 of {}{}", _TABLE, _SEED).alias("quantity")
FAMILY = pl.coalesce("suite", pl.format("random tables of {}", "tokenizer")).alias("family")


def compare(retrieval: pl.DataFrame, random_baseline: pl.DataFrame | None = None) -> pl.DataFrame:
    """Each number that was printed for a suite of `retrieval` or a tokenizer of `random_baseline`: one row.

    Both tables are of one data set, SCIDOCS. Numbers are nDCG@10 in hundredths; `difference` is measured less
    published. `status`: agrees (within `tolerance`), differs, suspect or not measured. `note` says what speaks
    against a published number, and `reason` why there is no measured one. `tolerance` is what the same steps may give
    with another library, which adds up in another order: half of the last digit in print, and one pair of neighbours
    in one query's ranking that change places, where they weigh most.
    """
    scored = [retrieval.filter("final", metric=METRIC, side="input").with_columns(width="embedding_width")]
    if random_baseline is not None:
        scored.append(random_baseline.filter(metric=METRIC).with_columns(ablation=pl.lit("random")))
    found = pl.concat(scored, how="diagonal_relaxed").with_columns(FAMILY, QUANTITY)
    tolerance = PRINTED + SWAPPED / pl.col("queries")
    measured = found.select(
        "quantity", "precision", "reason", measured=100 * pl.col("value"), tolerance=tolerance
    )
    measured = measured.unique("quantity", keep="first")
    rows = read().join(found.select("family").unique(), on="family", how="semi", maintain_order="left")
    rows = rows.join(measured, on="quantity", how="left", maintain_order="left")
    difference = pl.col("measured") - pl.col("published")
    missing = pl.when(difference.is_null()).then(pl.coalesce("reason", pl.lit("not in this study")))
    return rows.select(
        pl.lit(SOURCE).alias("source"), "quantity", "published", "measured", difference.alias("difference"),
        "tolerance", status(difference), "note", missing.alias("reason"), *FACTS, "precision",
    )  # fmt: skip


def status(difference: pl.Expr) -> pl.Expr:
    """What a difference says; nothing where the published number is suspect or there is no measured one."""
    known = (
        pl.when(difference.abs() <= pl.col("tolerance")).then(pl.lit("agrees")).otherwise(pl.lit("differs"))
    )
    measured = pl.when(difference.is_null()).then(pl.lit("not measured")).otherwise(known)
    return pl.when("suspect").then(pl.lit("suspect")).otherwise(measured).alias("status")


def read() -> pl.DataFrame:
    """Everything that was printed: FACTS (suite and size null in the random baseline), published, and its note."""
    suspect = pl.DataFrame(SUSPECT, ["suite", "ablation", "why"], orient="row")
    printed = pl.read_csv(NUMBERS, comment_prefix="#").rename({METRIC: "published"})
    rows = pl.col("tokenizer").replace_strict(DRAWN_ROWS)
    printed = printed.with_columns(vocabulary_rows=rows).with_columns(FAMILY, QUANTITY)
    printed = printed.join(suspect, on=["suite", "ablation"], how="left", maintain_order="left")
    values = pl.col("published").unique(maintain_order=True).implode().over("quantity")
    twice = pl.format("printed as {}", values.cast(pl.List(pl.String)).list.join(" and as "))
    return printed.with_columns(
        suspect=pl.col("why").is_not_null(),
        note=pl.coalesce("why", pl.when(values.list.len() > 1).then(twice)),
    )
