"""What reruns after a change, as exact sets of jobs."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import stub_study
import yaml
from stub_study import Copy

from lmshape.report.figure_list import FIGURES
from lmshape.study import grid

STUDY = stub_study.SMALL
TABLES = (
    "retrieval", "random_baseline", "word_similarity", "anisotropy", "intrinsic_dimension", "pretraining",
)  # fmt: skip
DRAWN = [name for name, figure in FIGURES.items() if figure.table in TABLES]
GROWN = [f"grown/s/{checkpoint}" for checkpoint in ("step0", "step4")]
MEASURED = ["toy/s/main", *GROWN]  # models whose hidden states are measured
SCORED = [
    "toy/s/step1/input/original/none",
    "toy/s/main/input/original/none",
    "toy/s/main/input/random/0",
    "toy/s/main/input/crop-4/none",
    "grown/s/step4/input/original/none",
    "grown/s/step4/input/random/0",
    "grown/s/step4/input/crop-4/none",
    "toy/s/step2/input/original/none",
]


def figures(table: str) -> set[str]:
    return {f"figures/{name}.svg" for name, figure in FIGURES.items() if figure.table == table}


COST = {"tables/benchmarks.parquet"} | figures("benchmarks")  # what jobs took changes whenever one is run


def gathered(table: str, *suites: str) -> set[str]:
    """What follows from new rows of some suites in one table."""
    by_suite = {f"tables/by_suite/{table}/{suite}.parquet" for suite in suites if table not in grid.SUMMARIES}
    return by_suite | {f"tables/{table}.parquet", "report.html"} | figures(table) | COST


def retrieval(*combinations: str) -> set[str]:
    suites = {combination.split("/")[0] for combination in combinations}
    rows = {f"retrieval/docs/{combination}.parquet" for combination in combinations}
    return rows | gathered("retrieval", *suites)


def geometry(*models: str) -> set[str]:
    """Both measures of hidden states, and what is told of them in summaries.

    Hidden states are temporary: remade for one measure, they are new to the other.
    """
    suites = {model.split("/")[0] for model in models}
    remade = {f"hidden_states/{model}" for model in models}
    remade |= {f"models/{model}" for model in models if model.startswith("toy")}
    rows = {f"{table}/{model}.parquet" for table in ("anisotropy", "intrinsic_dimension") for model in models}
    summaries = {"anisotropy_bells": suites, "dimension_over_training": suites & {"grown"}}
    rows |= {f"{table}/{suite}.parquet" for table, told in summaries.items() for suite in told}
    tables = {"anisotropy": suites, "intrinsic_dimension": suites} | summaries
    return rows | remade | set.union(*(gathered(table, *told) for table, told in tables.items() if told))


COUNTED = {"word_counts/pairs/grown-words.npz"}
WORDS = {"word_similarity/pairs/grown/s/step4/input.parquet"}
RESOLVED = {"study.yaml", "report.html"}  # the study as it was resolved is part of the report
SCORES = {f"retrieval/docs/{combination}.parquet" for combination in SCORED}
RANDOM = {f"random_baseline/docs/{name}/0.parquet" for name in ("toy-words", "grown-words")}
REPORTED = {"report.html"} | COST
DRAWN = {"random_tables/50/14336/0.bfloat16"}  # temporary, and not there any more
BASELINE = RANDOM | DRAWN | gathered("random_baseline", "toy-words", "grown-words")


@pytest.mark.parametrize("seed", ["1", "2"])
def test_trap_3_a_second_run_has_nothing_to_do_under_any_hash_seed(copy, snakemake, seed):
    environment = {"PYTHONPATH": str(copy.folder / "src"), "PYTHONHASHSEED": seed}
    assert "Nothing to be done" in snakemake("--dry-run", folder=copy.folder, **environment).stdout


@pytest.mark.parametrize("profile", ["local", "slurm"])
def test_nothing_is_stale_with_the_profiles_for_a_workstation_and_a_cluster(copy, profile):
    assert "Nothing to be done" in copy.snakemake("--dry-run", "--profile", f"profiles/{profile}")


# --- code ------------------------------------------------------------------------------------------------

ROWS = {table: {f"{table}/{model}.parquet" for model in MEASURED} for table in grid.OF_HIDDEN_STATES}
OF_RANDOM = {score for score in SCORES if "/random/" in score}
RANDOM_COMBINATIONS = [combination for combination in SCORED if "/random/" in combination]


@pytest.mark.parametrize(
    ("path", "old", "new", "direct", "stale"),
    [
        (
            "anisotropy.py",
            "def anisotropy(",
            "@cache\ndef anisotropy(",
            ROWS["anisotropy"],
            geometry(*MEASURED),
        ),
        (
            "numerics/neighbors.py",
            "BLOCK = ",
            "BLOCK = 1 + ",
            ROWS["intrinsic_dimension"],
            geometry(*MEASURED),
        ),
        (
            "numerics/ablation.py",
            "def random(",
            "@cache\ndef random(",
            OF_RANDOM,
            retrieval(*RANDOM_COMBINATIONS),
        ),
        (
            "retrieval.py",
            "def random_baseline(",
            "@cache\ndef random_baseline(",
            RANDOM | OF_RANDOM,  # the rows that are taken from there
            BASELINE | retrieval(*RANDOM_COMBINATIONS),
        ),
        (
            "report/figures.py",
            'DIMENSION_LABEL = "',
            'DIMENSION_LABEL = "The ',
            {"figures/intrinsic_dimension_by_depth.svg"},
            {"figures/intrinsic_dimension_by_depth.svg"} | REPORTED,
        ),
        ("report/page.py", "def render(", "@cache\ndef render(", {"report.html"}, {"report.html"}),
        ("report/report.html.j2", "</body>", "<p>More.</p></body>", {"report.html"}, {"report.html"}),
        (
            "inputs/local_models.py",
            "shutil.copyfile(",
            "shutil.copy(",
            set(),
            set(),
        ),  # no rule of the study copies
        ("jobs/devices.py", "POLL_SECONDS = ", "POLL_SECONDS = 1 + ", set(), set()),  # beside a job's work
        ("study/grid.py", 'NO_SEED = "', 'NO_SEED = "" + "', set(), set()),  # plans jobs
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith((".py", ".j2")) else "",
)
def test_trap_1_code_makes_stale_the_rules_that_use_it_and_what_follows(copy, path, old, new, direct, stale):
    with copy.changed(f"src/lmshape/{path}", (old, new)):
        jobs = copy.jobs("all")
    assert {job.outputs[0] for job in jobs if "'code " in job.reason} == direct  # what a user reads
    assert {job.outputs[0] for job in jobs if job.outputs} == stale


def test_trap_1_an_edit_of_one_figure_draws_that_figure_again(copy):
    with copy.changed("src/lmshape/report/figures.py", ("columns=4)", "columns=3)")):  # of retrieval_by_width
        assert copy.stale() == {"figures/retrieval_by_width.svg"} | REPORTED


SOURCE = """class Added(Strict):
    {}: ClassVar[str] = "inputs.{}.added"
    source: Literal["added"]


"""
FUNCTION = "def added(*given):\n    return given\n\n\n"
# what is added: the modules that it is written into, what it stands before there, and how it reads
ADDED = {
    "an ablation": [
        ("study/ablation_names.py", '    "centered": Kind(),\n', '    "added": Kind(),\n'),
        ("numerics/ablation.py", "def mean_row(", FUNCTION),
    ],
    "a data set source": [
        ("study/config.py", "class MtebTask(", SOURCE.format("made_by", "datasets")),
        ("study/config.py", "MtebTask | BeirFolder", "Added | "),
        ("inputs/datasets.py", "def copy_beir(", FUNCTION),
    ],
    "a corpus": [
        ("study/config.py", "class Enwik8(", SOURCE.format("read_by", "text")),
        ("study/config.py", "Enwik8 | TextFile", "Added | "),
        ("inputs/text.py", "def enwik8(", FUNCTION),
    ],
    "an estimator": [
        ("study/estimator_settings.py", '"mada": MADA', '"added": 3, '),
        ("study/config.py", "    mom: int = Field(", '    added: int = Field(3, description="Of it.")\n'),
        ("intrinsic_dimension.py", "def mada(", FUNCTION),
    ],
    "a figure": [
        ("report/figures.py", "def _figure(", FUNCTION),
        ("report/figure_data.py", "MODEL = (", FUNCTION),
    ],
    "a summary": [("summaries.py", "def bells(", FUNCTION)],
    "a table": [("study/grid.py", '"anisotropy_bells", ', '"added", ')],
}


@contextlib.contextmanager
def added(copy: Copy, what: str) -> Iterator[None]:
    with contextlib.ExitStack() as changes:
        for path, place, text in ADDED[what]:
            changes.enter_context(copy.changed(f"src/lmshape/{path}", (place, text + place)))
        yield


@pytest.mark.parametrize("what", ADDED)
def test_what_is_added_beside_the_others_reruns_nothing(copy, what):
    # a key of the study is part of it as it is resolved; the page looks for the rows of any figure
    told = {"an estimator": RESOLVED, "a figure": {"report.html"}}
    with added(copy, what):
        assert copy.stale() == told.get(what, set())


def test_an_ablation_that_is_added_and_listed_has_its_own_jobs(copy):
    ablations = [*STUDY["retrieval"]["ablations"], "added"]
    with added(copy, "an ablation"), copy.configured("config.yaml", "retrieval", "ablations", ablations):
        its_own = ("toy/s/main/input/added/none", "grown/s/step4/input/added/none")
        assert copy.stale() == retrieval(*its_own) | RESOLVED


def test_with_hidden_states_that_were_kept_the_code_of_a_measure_makes_stale_that_measure_alone(copy):
    """What docs/extending.md tells people to do while they work on a measure."""
    kept = [copy.results / f"hidden_states/{model}" for model in MEASURED]
    with contextlib.ExitStack() as changes:
        for folder in kept:
            stub_study.make(folder)
            changes.callback(folder.rmdir)
        changes.enter_context(
            copy.changed("src/lmshape/anisotropy.py", ("def anisotropy(", "@cache\ndef anisotropy("))
        )
        bells = {f"anisotropy_bells/{suite}.parquet" for suite in ("toy", "grown")}
        follows = gathered("anisotropy", "toy", "grown") | gathered("anisotropy_bells", "toy", "grown")
        assert copy.stale() == ROWS["anisotropy"] | bells | follows


def test_the_target_of_one_measure_of_hidden_states_leaves_the_results_of_the_other(copy, tmp_path):
    """What docs/extending.md says of hidden states that are made again."""
    shutil.copytree(copy.folder, tmp_path / "again", symlinks=True)
    again = copy.at(tmp_path / "again")
    (again.results / "anisotropy/toy/s/main.parquet").unlink()
    again.snakemake("anisotropy")
    assert again.stale() == set()  # the same rows were made again


def test_trap_1_a_script_makes_stale_its_own_rule_and_what_follows(copy):
    with copy.changed("scripts/retrieve.py", ("import pathlib", "import pathlib\n\nLIMIT = 1")):
        assert copy.stale() == retrieval(*SCORED)


@pytest.mark.parametrize("path", ["src/lmshape/anisotropy.py", "src/lmshape/files.py", "scripts/retrieve.py"])
def test_trap_1_comments_docstrings_and_formatting_make_nothing_stale(copy, path):
    text = (copy.folder / path).read_text()
    commented = text.replace("\nimport ", "\n\n# A comment.\nimport ")
    with copy.changed(path, (text, f'"""Another docstring."""\n{commented}\n\n\n"""The end."""\n')):
        assert copy.stale() == set()


def test_another_version_of_a_package_makes_stale_what_is_made_of_its_data(copy, tmp_path):
    (tmp_path / "gensim").mkdir()
    (tmp_path / "gensim/__init__.py").touch()
    (tmp_path / "gensim-99.dist-info").mkdir()
    (tmp_path / "gensim-99.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: gensim\nVersion: 99\n"
    )
    upgraded = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(copy.folder / "src")])}
    assert copy.stale("Params have changed", **upgraded) == {"text/pretraining.jsonl"}


# --- configuration ---------------------------------------------------------------------------------------


def test_without_checkpoints_nothing_is_drawn_or_told_of_training(copy):
    with copy.configured("config.yaml", "hidden_states", "models", {"toy": {"sizes": ["s"]}}):
        planned = copy.stale()
    assert {"figures/anisotropy_by_depth.svg", "figures/intrinsic_dimension_by_depth.svg"} <= planned
    assert not {"figures/anisotropy_by_checkpoint.svg", "figures/intrinsic_dimension_by_step.svg"} & planned
    assert not any("dimension_over_training" in output for output in planned)


def test_the_title_touches_the_report_alone(copy):
    with copy.configured("config.yaml", "title", "Another title"):
        assert copy.stale() == RESOLVED


def test_a_setting_touches_the_measure_that_reads_it(copy):
    with copy.configured("config.yaml", "intrinsic_dimension", {"fractions": [0.9, 0.2]}):
        direct = {f"intrinsic_dimension/{model}.parquet" for model in MEASURED}
        assert copy.stale("Params have changed") == direct | {"study.yaml"}
        assert copy.stale() == geometry(*MEASURED) | RESOLVED


def test_a_setting_that_is_the_default_anyway_touches_nothing(copy):
    with copy.configured("config.yaml", "retrieval", "bootstrap", 1000):
        assert copy.stale() == set()


def test_the_order_of_keys_touches_nothing_that_is_computed(copy):
    content = yaml.safe_load((copy.folder / "config.yaml").read_text())
    turned = yaml.safe_dump(dict(reversed(content.items())), sort_keys=False)
    with copy.changed("config.yaml", ((copy.folder / "config.yaml").read_text(), turned)):
        assert copy.stale() == set()


def test_a_new_seed_adds_its_own_jobs(copy):
    with copy.configured("config.yaml", "retrieval", "seeds", [0, 1]):
        added = retrieval("toy/s/main/input/random/1", "grown/s/step4/input/random/1")
        assert copy.stale() == added | {"random_tables/50/14336/1.bfloat16"} | RESOLVED


@pytest.mark.parametrize("widths", [[8, 16], [16]], ids=["one more", "another"])
def test_other_widths_of_the_random_baseline_touch_no_other_random_table(copy, widths):
    """Not even one that was taken from the baseline, and would now be scored, or the other way round."""
    with copy.configured("config.yaml", "retrieval", "random_baseline", "widths", widths):
        assert copy.stale() == BASELINE | RESOLVED


def test_another_data_set_touches_no_random_table_that_was_scored_on_others(copy):
    more = STUDY["retrieval"]["datasets"] | {"more": {"source": "folder", "path": "docs"}}
    with copy.configured("config.yaml", "retrieval", "datasets", more):
        rows = {name for name in copy.stale() if name.startswith(("retrieval/", "random_"))}
    expected = {name.replace("/docs/", "/more/") for name in SCORES | RANDOM}
    assert rows == expected | DRAWN


def test_a_random_table_that_is_drawn_again_for_one_reader_is_new_to_no_other(copy, tmp_path):
    shutil.copytree(copy.folder, tmp_path / "again", symlinks=True)
    again = copy.at(tmp_path / "again")
    (again.results / "random_baseline/docs/toy-words/0.parquet").unlink()
    made = "results/small/random_baseline/docs/toy-words/0.parquet"
    assert again.stale(target=made) == {"random_baseline/docs/toy-words/0.parquet"} | DRAWN
    again.snakemake(made)
    assert not (again.results / "random_tables").exists() or not list(again.results.rglob("*.bfloat16"))
    assert again.stale() == set()  # the same rows were made again


def test_one_random_table_is_drawn_for_all_that_takes_columns_of_it(copy):
    ablations = ["original", "random", "pad-14336", "pad-32"]
    with (
        copy.configured("config.yaml", "retrieval", "ablations", ablations),
        copy.configured("config.yaml", "retrieval", "random_baseline", "widths", [16]),
    ):
        jobs = copy.jobs("all", "--forceall")
    drawn = [job for job in jobs if job.rule == "draw_random_table"]
    assert sorted(job.outputs[0] for job in drawn) == [
        "random_tables/50/14336/0.bfloat16",
        "random_tables/50/32/0.bfloat16",
    ]
    readers = [job for job in jobs if DRAWN & set(job.inputs)]
    assert sorted({job.rule for job in readers}) == ["random_baseline", "retrieve"] and len(readers) == 6


def test_a_random_table_that_the_baseline_has_is_taken_from_there(copy):
    jobs = {job.outputs[0]: job for job in copy.jobs("all", "--forceall") if job.rule == "retrieve"}
    taken = {name for name, job in jobs.items() if any("random_baseline" in path for path in job.inputs)}
    assert taken == OF_RANDOM
    assert not any("random_tables" in path for job in jobs.values() for path in job.inputs)


def test_a_new_ablation_adds_its_own_jobs(copy):
    with copy.configured("config.yaml", "retrieval", "ablations", ["original", "random", "crop-4", "crop-2"]):
        added = retrieval("toy/s/main/input/crop-2/none", "grown/s/step4/input/crop-2/none")
        assert copy.stale() == added | RESOLVED


def test_a_new_size_adds_its_own_jobs(copy):
    with copy.configured("config.yaml", "hidden_states", "models", "toy", {"sizes": ["s", "m"]}):
        assert copy.stale() == geometry("toy/m/main") | RESOLVED


ABLE = {"tensors/able/s/main", "embeddings/able/s/main/input.safetensors"} | retrieval(
    "able/s/main/input/original/none", "able/s/main/input/random/0", "able/s/main/input/crop-4/none"
)
ABLE |= {"own_tokenizers/able/s", "compared_tokenizers/able/s.json"}


@contextlib.contextmanager
def with_able(copy: Copy, place: str) -> Iterator[None]:
    """The study with suite `able` scored, too."""
    models = STUDY["retrieval"]["models"]
    more = {"able": {}} | models if place == "first" else models | {"able": {}}
    with copy.configured("config.yaml", "retrieval", "models", more):
        yield


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_new_suite_adds_its_own_jobs_even_where_it_shares_a_tokenizer(copy, place):
    with with_able(copy, place):
        assert copy.stale() == ABLE | DRAWN | RESOLVED


def test_a_new_suite_with_a_wider_vocabulary_is_compared_with_another_random_baseline(copy):
    with copy.configured("suites/able.yaml", "sizes", "s", "vocabulary_rows", 60), with_able(copy, "last"):
        baseline = {"random_baseline/docs/toy-words/0.parquet"} | gathered("random_baseline", "toy-words")
        drawn = {"random_tables/60/14336/0.bfloat16"}
        assert copy.stale() == ABLE | baseline | drawn | RESOLVED


def test_a_new_checkpoint_adds_its_own_jobs(copy):
    with copy.configured("config.yaml", "retrieval", "models", "toy", {"sizes": ["s"], "checkpoints": "all"}):
        table = {"tensors/toy/s/step3", "embeddings/toy/s/step3/input.safetensors"}
        assert copy.stale() == retrieval("toy/s/step3/input/original/none") | table | RESOLVED


def test_a_longer_list_of_checkpoints_on_a_hub_touches_no_job(copy):
    with copy.configured("suites/toy.yaml", "checkpoints", "steps", [1, 2, 3, 4]):
        assert copy.stale() == RESOLVED


def described(suite: str, *tables: str) -> set[str]:
    """What follows from a label of a suite that joins the rows of some tables, and of what is told of them."""
    told = {"anisotropy": "anisotropy_bells", "intrinsic_dimension": "dimension_over_training"}
    summaries = {told[table] for table in tables if table in told} & set(grid.SUMMARIES)
    if suite == "toy":  # measured at one checkpoint
        summaries -= {"dimension_over_training"}
    rows = {f"{summary}/{suite}.parquet" for summary in summaries}
    return rows | set.union(*(gathered(table, suite) for table in {*tables, *summaries}))


@pytest.mark.parametrize(
    ("keys", "value"), [(("sizes", "s", "parameters"), 1001), (("architecture",), "encoder")]
)
def test_a_label_of_a_suite_measures_nothing_again(copy, keys, value):
    with copy.configured("suites/toy.yaml", *keys, value):
        labelled = described("toy", "retrieval", "anisotropy", "intrinsic_dimension")
        assert copy.stale() == labelled | RESOLVED


def test_the_label_of_a_size_that_is_in_another_table_alone_touches_nothing(copy):
    with copy.configured("suites/toy.yaml", "sizes", "m", "parameters", 2001):
        assert copy.stale() == RESOLVED


def test_the_number_of_parameters_is_a_label_and_trains_nothing_again(copy):
    """Only the right number is taken; one that an older lmshape took may have been wrong."""
    check = ("if said != true:", "if False:")
    with (
        copy.changed("src/lmshape/study/suites.py", check),
        copy.configured("suites/grown.yaml", "sizes", "s", "parameters", 2467),
    ):
        tables = ("retrieval", "word_similarity", "anisotropy", "intrinsic_dimension")
        assert copy.stale() == described("grown", *tables) | RESOLVED


def test_other_steps_of_a_suite_trained_here_train_it_again(copy):
    with copy.configured("suites/grown.yaml", "checkpoints", "steps", [0, 2, 4]):
        models = ["grown/s/step0", "grown/s/step2", "grown/s/step4"]
        trained = {"models/grown/s", "embeddings/grown/s/step4/input.safetensors"}
        trained |= gathered("pretraining", "grown")
        trained |= retrieval(*(name for name in SCORED if name.startswith("grown")))
        trained |= geometry(*models) | WORDS | gathered("word_similarity", "grown")
        assert copy.stale() == trained | RESOLVED


# --- files -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def missing(path: Path) -> Iterator[None]:
    aside = path.with_name(f"{path.name}.aside")
    os.rename(path, aside)
    try:
        yield
    finally:
        os.rename(aside, path)


REMADE = {"hidden_states/toy/s/main", "models/toy/s/main"}  # temporary, and not there any more


def test_a_deleted_result_is_computed_again_with_what_follows(copy):
    with missing(copy.folder / f"results/small/retrieval/docs/{SCORED[3]}.parquet"):
        assert copy.stale() == copy.stale(target="report") == retrieval(SCORED[3])
        assert copy.stale(target="figures") == retrieval(SCORED[3]) - {"report.html"}


@pytest.mark.parametrize(
    ("target", "deleted", "made_for_it"),
    [
        ("retrieval", f"retrieval/docs/{SCORED[3]}", set()),
        ("retrieval", "random_baseline/docs/toy-words/0", DRAWN),
        ("word_similarity", "word_similarity/pairs/grown/s/step4/input", set()),
        ("anisotropy", "anisotropy/toy/s/main", REMADE),
        ("intrinsic_dimension", "intrinsic_dimension/toy/s/main", REMADE),
    ],
)
def test_a_deleted_result_is_computed_again_for_the_target_it_belongs_to(copy, target, deleted, made_for_it):
    table, *path = deleted.split("/")
    group = path[0] if table in ("anisotropy", "intrinsic_dimension") else path[1]
    follows = {f"tables/by_suite/{table}/{group}.parquet", f"tables/{table}.parquet"}
    with missing(copy.folder / f"results/small/{deleted}.parquet"):
        assert copy.stale(target=target) == {f"{deleted}.parquet"} | made_for_it | follows


def test_a_deleted_table_is_gathered_again(copy):
    with missing(copy.folder / "results/small/tables/anisotropy.parquet"):
        assert copy.stale() == gathered("anisotropy")
