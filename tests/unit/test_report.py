"""The report is one page that holds everything, loads nothing, and hides neither gaps nor where it comes from."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import polars as pl
import pytest
import synthetic_tables

from lmshape import summaries
from lmshape.report import page as report
from lmshape.report import published
from lmshape.report.figure_list import FIGURES, QUESTIONS
from lmshape.report.provenance import Provenance
from lmshape.report.tables import flag_repeats
from lmshape.study.config import Study

TABLES = synthetic_tables.all_tables()
CHOICES = {name: FIGURES[name].choices(Study(study="some", title="Some")) for name in FIGURES}
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><path id="{}"/></svg>'
VOID = {"meta", "img", "br", "hr", "link", "input"}
PROVENANCE = Provenance(
    title="A study",
    study="study:\n  study: embedded\n",
    pruned=[("docs/bert-small/64x3/step1024/input/crop-128/none", "crop-128 is wider than the table (64)")],
    commit="0123456789abcdef0123456789abcdef01234567",
    modified=False,
    packages={"lmshape": "0.1.0", "polars": "2.1.0"},
    platform="Python 3.11 on Linux",
    time="2026-01-01 00:00 UTC",
)


class Page(HTMLParser):
    """What the tests ask of a page: its text, its elements by name, and whether every one is closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.mistakes, self.elements, self.words = [], [], [], []
        self.feed(html)
        self.close()
        self.mistakes += self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.mistakes.append(tag)

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def svgs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    for name in FIGURES:
        (folder / f"{name}.svg").write_text(SVG.format(name))
    return {name: folder / f"{name}.svg" for name in FIGURES}


def render(svgs, tables=TABLES, **changes):
    return report.render(tables, svgs, replace(PROVENANCE, **changes), CHOICES)


@pytest.fixture(scope="module")
def html(svgs):
    return render(svgs)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_page_is_well_formed_and_every_id_is_its_own(page):
    assert page.mistakes == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_page_loads_nothing_and_runs_nothing(html, page):
    assert not re.search(r"https?:|url\(|@import|<script|<link|<iframe", html)
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in page.all("img"))
    policy = next(meta["content"] for meta in page.all("meta") if "http-equiv" in meta)
    assert policy.startswith("default-src 'none';")


def test_every_figure_is_embedded_in_the_order_of_the_list_with_words_for_those_who_cannot_see_it(page):
    images = page.all("img")
    found = [base64.b64decode(image["src"].partition(",")[2]).decode() for image in images]
    assert found == [SVG.format(name) for name in FIGURES]
    assert all(entry.title in image["alt"] for image, entry in zip(images, FIGURES.values(), strict=True))
    for number, entry in enumerate(FIGURES.values(), start=1):
        assert f"Figure {number}. {entry.title}" in page.text


def test_figures_are_listed_question_by_question():
    questions = [entry.question for entry in FIGURES.values()]
    assert list(dict.fromkeys(questions)) == list(QUESTIONS)
    assert questions == sorted(questions, key=list(QUESTIONS).index)


def test_captions_state_numbers_from_the_tables(page):
    assert "nDCG@10 over 240 queries" in page.text
    assert "mean over 4 batches of 4,096 token vectors" in page.text
    assert not re.search(r"\{\w+\}", page.text)


def test_links_lead_to_places_in_the_page_or_to_files_beside_it(page):
    ids = {attributes.get("id") for _, attributes in page.elements}
    targets = [link["href"] for link in page.all("a")]
    assert {target[1:] for target in targets if target.startswith("#")} <= ids
    files = {target for target in targets if not target.startswith("#")}
    assert files == {f"tables/{name}.{kind}" for name in TABLES for kind in ("csv", "parquet")} | {
        f"figures/{name}.{kind}" for name in FIGURES for kind in ("svg", "png")
    }


def test_models_and_data_sets_are_those_that_the_tables_measure():
    found = report.models(TABLES.values())
    assert found.height == len(synthetic_tables.MODELS)
    smollm2 = found.filter(suite="smollm2").row(0, named=True)
    assert (smollm2["parameters"], smollm2["embedding_width"], smollm2["checkpoints"]) == (134515008, 576, 1)
    assert found.filter(suite="neox-small")["checkpoints"].to_list() == [7, 7, 7]
    datasets = report.distinct(TABLES.values(), "dataset", "dataset_revision", "queries")
    assert datasets.rows() == [("package-docs", "docs-revision", 240)]


def test_checkpoints_that_serve_the_same_table_are_named(svgs, page):
    """Some published steps hold the weights of others: a flat line through them is no finding."""
    assert "Checkpoints with equal tables" not in page.text
    copied = (pl.col("suite") == "neox-small") & (pl.col("size") == "64x3") & pl.col("step").is_in([4, 16])
    digest = pl.when(copied).then(pl.lit("same")).otherwise("table_sha256")
    for name in ("retrieval", "anisotropy"):  # scored tables have a side, whole models none
        sides = [pl.col("side") == "input"] if name == "retrieval" else []
        tables = TABLES | {name: flag_repeats(TABLES[name].filter(*sides).with_columns(table_sha256=digest))}
        assert report.twins(tables.values()).rows() == [("neox-small", "64x3", "input", "step4, step16")]
    assert "step4, step16" in Page(render(svgs, tables)).text


def test_pruned_combinations_are_shown_with_their_reasons(page, svgs):
    assert "docs/bert-small/64x3/step1024/input/crop-128/none" in page.text
    assert "crop-128 is wider than the table (64)" in page.text
    assert "every combination of the grid was run" in Page(render(svgs, pruned=[])).text


def test_missing_values_are_counted_and_named_with_their_reasons(svgs, page):
    assert "everything that was to be measured has a value" in page.text
    failed = (pl.col("layer") == 12) & (pl.col("suite") == "smollm2")
    table = TABLES["anisotropy"].with_columns(
        mean=pl.when(failed).then(None).otherwise("mean"),
        reason=pl.when(failed, measure="svd").then(pl.lit("not finite")).otherwise(None),
    )
    found = {gap["reason"]: gap for gap in report.gaps("anisotropy", table)}
    assert {reason: gap["count"] for reason, gap in found.items()} == {
        "not finite": 4,
        "no reason recorded": 6,
    }
    assert found["not finite"]["cells"][0] == (
        "suite smollm2, size 135m, checkpoint main, stack decoder, layer 12, seed 0, "
        "measure svd, centered yes, positions all"
    )
    text = Page(render(svgs, TABLES | {"anisotropy": table})).text
    assert "not finite (4)" in text and "no reason recorded (6)" in text


def test_values_of_fewer_batches_than_asked_for_are_named_apart_from_missing_ones(svgs, page):
    assert "fewer batches" not in page.text
    reason = pl.when(layer=3, size="64x3").then(pl.lit("1 of 4 batches"))
    table = TABLES["anisotropy"].with_columns(reason=reason)
    text = Page(render(svgs, TABLES | {"anisotropy": table})).text
    assert "Values of fewer batches than asked for" in text and "1 of 4 batches (" in text
    assert "everything that was to be measured has a value" in text


def test_values_in_doubt_are_named_apart_from_missing_ones(svgs, page):
    assert "Values in doubt" not in page.text
    doubt = pl.when(layer=3, size="64x3", step=4, fraction=0.9).then(pl.lit("near twins"))
    text = Page(
        render(
            svgs, TABLES | {"intrinsic_dimension": TABLES["intrinsic_dimension"].with_columns(doubt=doubt)}
        )
    ).text
    assert (
        "Values in doubt" in text
        and "near twins (4)" in text
        and "layer 3, seed 0, estimator twonn, fraction 0.9" in text
    )
    assert "everything that was to be measured has a value" in text


def test_what_a_failed_run_could_not_make_is_named_and_no_figure_is_said_to_be_unwanted(svgs):
    path = "results/s/figures/pretraining_loss.svg"
    drawn = {name: svg for name, svg in svgs.items() if name != "pretraining_loss"}
    failed = [{"path": path, "reason": "figure failed: no ink", "names": {}}]
    text = Page(report.render(TABLES, drawn, PROVENANCE, CHOICES, failed)).text
    assert "pretraining_loss as a whole : figure failed: no ink (1)" in text
    assert "show what this study does not ask for" not in text


def test_tables_without_any_value_are_said_in_the_first_lines(svgs, page):
    lost = [{"suite": "a", "size": "b", "checkpoint": "main", "reason": "text failed", "mean": None}]
    tables = TABLES | dict.fromkeys(("anisotropy", "intrinsic_dimension"), pl.DataFrame(lost))
    page_of_nothing = Page(render(svgs, tables))
    said = page_of_nothing.text.partition("What was run")[0]
    assert (
        "anisotropy : all 1 values are missing: text failed. Keys of the study to look at: hidden_states"
        in said
    )
    assert "intrinsic_dimension" in said and "retrieval : all" not in said
    assert page_of_nothing.mistakes == [] and "values are missing" not in page.text


def test_a_summary_of_which_all_is_lost_is_printed(svgs):
    lost = pl.DataFrame([{"suite": "a", "reason": "summarize failed"}])
    page_of_nothing = Page(render(svgs, TABLES | {"anisotropy_bells": lost, "dimension_over_training": lost}))
    assert page_of_nothing.mistakes == [] and "summarize failed" in page_of_nothing.text


def test_a_figure_without_data_says_why(svgs):
    empty = TABLES["pretraining"].with_columns(loss=pl.lit(None), reason=pl.lit("training was stopped"))
    assert "No data: training was stopped." in Page(render(svgs, TABLES | {"pretraining": empty})).text


def test_a_study_of_one_table_has_a_report_of_its_figures_alone(svgs):
    only = {name: path for name, path in svgs.items() if FIGURES[name].table == "random_baseline"}
    page = Page(render(only, {"random_baseline": TABLES["random_baseline"]}))
    assert page.mistakes == []
    assert len(page.all("img")) == 1
    assert QUESTIONS["scale"].heading in page.text and QUESTIONS["layers"].heading not in page.text


def test_figures_that_a_study_does_not_ask_for_are_named_with_the_keys_that_give_them(svgs, page):
    assert "Figures left out" not in page.text
    final = {name: path for name, path in svgs.items() if FIGURES[name].question != "training"}
    text = Page(render(final)).text
    assert f"5 of {len(FIGURES)} figures show what this study does not ask for" in text
    assert report.absent(final).rows() == [
        (entry.title, entry.needs.keys) for entry in FIGURES.values() if entry.question == "training"
    ]
    assert QUESTIONS["training"].heading not in text
    assert "retrieval.models with checkpoints" in text and "hidden_states.models with checkpoints" in text


def test_whatever_a_user_can_name_is_escaped(svgs):
    evil = '<img src=x onerror="alert(1)">&'
    suite = pl.when(suite="minilm").then(pl.lit(evil)).otherwise("suite").alias("suite")
    tables = {
        name: table.with_columns(suite) if "suite" in table.columns else table
        for name, table in TABLES.items()
    }
    tables["retrieval"] = tables["retrieval"].with_columns(value=None, reason=pl.lit(evil))
    html = render(svgs, tables, title=evil, study=evil, pruned=[(evil, evil)], packages={"lmshape": evil})
    assert 'onerror="' not in html
    assert Page(html).text.count(evil) > 8


def test_provenance_is_printed(page, svgs):
    for words in (PROVENANCE.commit, PROVENANCE.platform, PROVENANCE.time, "study: embedded", "2.1.0"):
        assert words in page.text
    assert "local changes" not in page.text
    assert "with local changes" in Page(render(svgs, modified=True)).text
    why = "git refuses to name a commit: <fatal>"
    assert f"Code: {why}. Report" in Page(render(svgs, commit=None, reason=why)).text
    assert "neox-small-revision" in page.text


def test_long_tables_are_cut_and_say_so(html, page):
    assert f"first {report.ROWS} of" in page.text
    assert max(table.count("<tr>") for table in html.split("<table>")) == report.ROWS + 1


def test_summaries_are_printed_in_the_part_they_belong_to(svgs):
    bells = summaries.bells(TABLES["anisotropy"])
    dimensions = summaries.training_shapes(TABLES["intrinsic_dimension"])
    html = render(svgs, TABLES | {"anisotropy_bells": bells, "dimension_over_training": dimensions})
    part = html[html.index('id="anisotropy_bells"') : html.index('id="training"')]
    printed = report.summary("anisotropy_bells", bells).rows
    assert len(printed) == 2 * len(synthetic_tables.MODELS)  # the final checkpoints alone
    last = bells.filter(suite="neox-small", size="64x3", positions="all", step=1024).row(0, named=True)
    assert "<td>neox-small 64x3 decoder</td><td>all</td>" in part
    assert (
        f"{last['middle']:.3f}</td>" in part
        and f"{last['contrast']:.3f} ({last['contrast_low']:.3f} to " in part
    )
    assert "no value" not in part  # a column that says nothing
    part = html[html.index('id="dimension_over_training"') : html.index('id="cost"')]
    assert "repeated steps 0" in part and "<td>twonn, 0.2</td>" in part and "<td>mom</td>" in part


def test_a_summary_in_print_has_few_columns_and_says_why_a_row_has_no_value(svgs):
    """At a width of 1,200 pixels a page has room for about ten short columns."""
    single = synthetic_tables.missing(TABLES["anisotropy"], pl.col("suite") == "minilm")
    for name, table in (
        ("anisotropy_bells", summaries.bells(single)),
        ("dimension_over_training", summaries.training_shapes(TABLES["intrinsic_dimension"])),
    ):
        assert len(report.summary(name, table).rows.columns) <= 8
    rows = report.summary("anisotropy_bells", summaries.bells(single)).rows
    missing = rows.filter(model="minilm l6 encoder")
    assert missing["contrast (range)"].null_count() == missing.height
    assert missing["no value"][0].startswith("no value in the middle third")


def test_a_long_cell_is_broken_into_lines_instead_of_widening_its_table(svgs):
    reason = "crop-128 is wider than the table, which has 64 columns and no more"
    html = render(svgs, pruned=[("docs/bert-small/64x3", reason)])
    assert f'<td class="words">{reason}</td>' in html and "<td>docs/bert-small/64x3</td>" in html


def test_published_numbers_are_printed_with_what_speaks_against_them(svgs):
    """Of a suite that a published study printed; the names of the imaginary study's suites are not among those."""
    renamed = TABLES["retrieval"].with_columns(suite=pl.lit("pythia"), size=pl.lit("14m"), final=pl.lit(True))
    compared = published.compare(renamed.with_columns(precision=pl.lit("float32")))
    page = Page(render(svgs, TABLES | {"published": compared}))
    assert page.mistakes == []
    assert published.SOURCE in page.text and published.SUSPECT[0][2] in page.text
    assert "not in this study (39)" in page.text


def test_comparisons_and_word_similarity_that_failed_are_among_the_missing_values(svgs):
    nothing = {"difference": None, "probability": None, "reason": pl.lit("a single query")}
    tables = {"comparisons": TABLES["comparisons"].with_columns(**nothing)}
    nothing = {"spearman": None, "reason": pl.lit("fewer than two different similarities")}
    tables["word_similarity"] = TABLES["word_similarity"].with_columns(**nothing)
    text = Page(render(svgs, TABLES | tables)).text
    assert "a single query (9)" in text and "fewer than two different similarities (22)" in text
    assert "dataset package-docs, suite neox-small, first 96x4, second 64x3, side input" in text
