"""What a failed run could not make: found with its reason, a null in tables, and no harm to figures and summaries."""

from types import SimpleNamespace

import polars as pl
import pytest
import synthetic_tables
from polars.testing import assert_frame_equal

from lmshape import summaries
from lmshape.jobs import lost
from lmshape.jobs.attempts import FINAL
from lmshape.report import figure_data, figures, missing, tables
from lmshape.report.figure_list import FIGURES
from lmshape.study.config import Study

TABLES = synthetic_tables.all_tables()
MODEL = {"suite": "neox-small", "size": "96x4", "checkpoint": "step16"}  # beside others of its size
UNKNOWN = {"suite": "neox-small", "size": "192x9", "checkpoint": "step1024"}
SCORED = {"dataset": "package-docs", "side": "input"}
ORIGINAL = {**SCORED, "ablation": "original", "seed": "none"}
NAMES = {
    "retrieval": [MODEL | ORIGINAL, UNKNOWN | ORIGINAL],
    "random_baseline": [{"dataset": "package-docs", "tokenizer": "other", "seed": "1"}],
    "comparisons": [{"suite": "minilm"}],
    "word_similarity": [MODEL | SCORED, UNKNOWN | SCORED],
    "anisotropy": [MODEL, UNKNOWN],
    "intrinsic_dimension": [MODEL, UNKNOWN],
    "pretraining": [{"suite": "neox-small", "size": "192x9"}],
}
REASON = "fetch_model failed: HubError: no such repository"
STUDY = Study(study="some", title="Some")
DRAWN = [name for name, entry in FIGURES.items() if entry.table in NAMES]


def nulls(name: str, found: pl.DataFrame) -> pl.DataFrame:
    """What is lost of a table, with what its suite's file says of the models."""
    rows = [tables.nulled(found, names, REASON) for names in NAMES[name]]
    frame = pl.concat(rows, how="diagonal_relaxed")
    if "checkpoint" in frame.columns:
        step = pl.col("checkpoint").str.extract(r"^step(\d+)$").cast(pl.Int64)
        frame = frame.with_columns(step=step, parameters=pl.lit(1000), final=pl.lit(False))
    return frame.with_columns(pl.lit(None, pl.Float64).alias(missing.VALUES[name]))


def gathered(name: str) -> pl.DataFrame:
    """A table of which a part is lost: other rows than those that take the place of the lost ones."""
    table = TABLES[name]
    for names in NAMES[name]:
        keys = [
            key for key in ("suite", "size", "checkpoint", "side") if key in names and key in table.columns
        ]
        same = pl.all_horizontal(pl.col(key) == names[key] for key in keys) if keys else pl.lit(False)
        table = table.filter(~same)
    return pl.concat([table, nulls(name, table)], how="diagonal_relaxed")


def test_a_lost_combination_has_a_null_for_each_value_that_its_model_has_elsewhere():
    found = TABLES["retrieval"]
    row = tables.nulled(found, MODEL | ORIGINAL, REASON)
    assert row["metric"].to_list() == ["ndcg_at_10", "map_at_10"]
    facts = {"embedding_width": 96, "vocabulary_rows": 4096, "tokenizer": "neox-small-tokenizer"}
    assert row.drop("metric").unique().to_dicts() == [
        MODEL | ORIGINAL | {"seed": None, "reason": REASON} | facts
    ]
    states = tables.nulled(TABLES["anisotropy"], MODEL, REASON)
    others = TABLES["anisotropy"].filter(suite="neox-small", size="96x4", checkpoint="step0")
    cells = ["stack", "layer", "measure", "centered", "positions"]
    assert_frame_equal(states.select(cells), others.select(cells), check_row_order=False)
    assert tables.nulled(TABLES["anisotropy"], UNKNOWN, REASON).to_dicts() == [UNKNOWN | {"reason": REASON}]


def test_a_table_of_which_all_is_lost_has_its_value(tmp_path):
    frame = tables.collect([], [{"names": MODEL | {"table": "anisotropy"}, "reason": REASON}], "mean")
    assert frame.to_dicts() == [MODEL | {"reason": REASON, "mean": None}]
    assert missing.is_empty(frame) and missing.gaps("anisotropy", frame)[0]["reason"] == REASON


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_shows_the_rest(name):
    table, choices = gathered(FIGURES[name].table), FIGURES[name].choices(STUDY)
    getattr(figures, name)(table, **choices)
    rows = figure_data.plotted(getattr(figure_data, name), table, **choices)
    value = missing.value_column(rows)
    expected = figure_data.plotted(
        getattr(figure_data, name), table.filter(pl.col("reason").is_null()), **choices
    )
    assert_frame_equal(rows.drop_nulls(value), expected.drop_nulls(value), check_row_order=False)


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_of_nothing_says_why(name):
    table = nulls(FIGURES[name].table, pl.DataFrame())
    drawn = getattr(figures, name)(table, **FIGURES[name].choices(STUDY))
    assert REASON in drawn.texts[0].get_text().replace("\n", " ")


@pytest.mark.parametrize(
    ("name", "summarize"),
    [("anisotropy", summaries.bells), ("intrinsic_dimension", summaries.training_shapes)],
)
def test_a_summary_has_a_null_for_a_model_of_which_no_layer_is_known(name, summarize):
    table = gathered(name)
    summary = tables.summarized(table, summarize)
    unknown = summary.filter(suite="neox-small", size="192x9")
    assert unknown["reason"].to_list() == [REASON]
    known = table.filter(pl.col("size") != "192x9")
    assert_frame_equal(summary.filter(pl.col("size") != "192x9"), summarize(known), check_row_order=False)
    nothing = tables.summarized(nulls(name, pl.DataFrame()), summarize)
    assert nothing["reason"].to_list() == [REASON] * nothing.height and nothing.height > 0


# --- what is lost


class Job(SimpleNamespace):
    """A job as Snakemake has it, by its rule; `state`: done, failed, waiting, or fresh where nothing was to do."""

    def __init__(self, rule: str, state: str, needs: tuple = (), log: str = "", **wildcards: str):
        output = [f"{rule}/{'/'.join(wildcards.values())}"]
        super().__init__(
            rule=SimpleNamespace(name=rule),
            state=state,
            needs=needs,
            log=[log],
            wildcards_dict=wildcards,
            output=output,
        )

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def is_group(self) -> bool:
        return False


class Dag(list):
    """The jobs of a run."""

    def finished(self, job: Job) -> bool:
        return job.state == "done"

    def needrun(self, job: Job) -> bool:
        return job.state != "fresh"

    def needrun_jobs(self) -> list[Job]:
        return [job for job in self if self.needrun(job) and not self.finished(job)]

    @property
    def dependencies(self) -> dict[Job, tuple[Job, ...]]:
        return {job: job.needs for job in self}


GATHERING = lost.Gathering(partly=["table", "report"], wholly=["figure"])


def found(*jobs: Job) -> tuple[dict[str, str], list[str]]:
    failed = {job for job in jobs if job.state == "failed"}
    workflow = SimpleNamespace(dag=Dag(jobs), scheduler=SimpleNamespace(failed=failed))
    told, files = lost.find(workflow, GATHERING, since=0)
    return {path: each["reason"] for path, each in told.items()}, files


def test_what_waits_for_a_failed_job_is_lost_for_its_reason_and_the_rest_is_gathered(tmp_path):
    (tmp_path / "log").write_text(f"reading\nCheckpointError: m: cut short\n{FINAL}\n")
    fetch = Job("fetch", "failed", log=str(tmp_path / "log"), suite="a")
    scores = [
        Job("score", "waiting", (fetch,), suite="a"),
        Job("score", "done", suite="b"),
        Job("score", "fresh", suite="c"),
    ]
    table = Job("table", "waiting", tuple(scores))
    figure = Job("figure", "waiting", (table,))
    reasons, files = found(fetch, *scores, table, figure, Job("report", "waiting", (table, figure)))
    assert reasons == dict.fromkeys(["fetch/a", "score/a"], "fetch failed: CheckpointError: m: cut short")
    assert files == ["figure/", "report/", "table/"]


def test_a_failed_table_is_lost_with_its_figures_and_not_with_the_report():
    table = Job("table", "failed")
    figure = Job("figure", "waiting", (table,))
    reasons, files = found(table, figure, Job("report", "waiting", (table, figure)))
    assert set(reasons) == {"table/", "figure/"} and files == ["report/"]


def test_what_nothing_kept_from_running_is_lost_too():
    reasons, _ = found(Job("score", "waiting", suite="a"))
    assert reasons == {"score/a": "score was not run"}


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (f"x: y\nModelError: two\nlines\n{FINAL}", "ModelError: two lines"),
        ("HubError: no network", "HubError: no network"),
        (
            "2026-01-01 12:00:00,000 lmshape: begun\nTraceback (most recent call last):\n  File\na.B: c",
            "a.B: c",
        ),
        ("2026-01-01 12:00:00,000 lmshape: begun", None),
        ("Training: 20%\nKilled", None),
        ("", None),
    ],
)
def test_the_reason_is_what_a_log_says_of_an_error(log, said, tmp_path):
    (tmp_path / "log").write_text(log)
    expected = said or f"it ended without a message; see {tmp_path / 'log'}"
    assert lost.message([tmp_path / "log"], since=0) == expected


def test_the_log_of_an_earlier_run_is_no_reason(tmp_path):
    (tmp_path / "log").write_text("HubError: no network")
    assert "without a message" in lost.message([tmp_path / "log"], since=2**40)
    assert "without a message" in lost.message([tmp_path / "none"], since=0)


def test_the_end_of_a_run_counts_what_is_lost_by_reason():
    told = {f"r/{n}": {"reason": f"reason {min(n, 12)}"} for n in range(20)}
    told |= {"model": {"reason": "reason 0"}, "figure": {"reason": "no ink"}}
    first, *reasons, last = lost.summary(
        told, [f"r/{n}" for n in range(30)], ["figure", "table"]
    ).splitlines()
    assert first == "20 of 30 results could not be made, nor 1 of 2 files gathered from them:"
    assert reasons[0] == "  8: reason 12" and reasons[10] == "  and 4 other reasons" and len(reasons) == 11
    assert last == lost.GATHERED
    assert lost.GATHERED not in lost.summary(told, ["r/1"], ["figure"])
