"""Studies and suites: what is refused, and in which words."""

from pathlib import Path

import pytest
import yaml

from lmshape import word_similarity
from lmshape.errors import ConfigError
from lmshape.study.config import WORD_PAIRS, Study, load_study, own_files, require_files
from lmshape.study.strict import parse
from lmshape.study.suites import Suite, load_suites

ROOT = Path(__file__).parents[2]
DEFAULT = ROOT / "config.yaml"

RETRIEVAL = {"models": {"minilm": {}}, "datasets": {"d": {"source": "folder", "path": "somewhere"}}}


def message(config: dict) -> str:
    with pytest.raises(ConfigError) as caught:
        load_study(config, DEFAULT)
    return str(caught.value)


def test_a_misspelt_section_is_named_with_the_allowed_ones():
    said = message({"retreival": RETRIEVAL})
    assert "retreival: there is no such key; did you mean `retrieval`?" in said
    assert "hidden_states, intrinsic_dimension, retrieval" in said


def test_a_misspelt_key_deep_inside_is_named_with_its_siblings():
    said = message({"retrieval": {**RETRIEVAL, "models": {"minilm": {"size": ["22.7m"]}}}})
    assert "retrieval.models.minilm.size: there is no such key" in said
    assert "allowed: checkpoints, sizes" in said


def test_a_misspelt_key_of_a_data_set_is_named_with_those_of_its_source():
    datasets = {"d": {"source": "folder", "pth": "x", "path": "x"}}
    said = message({"retrieval": {**RETRIEVAL, "datasets": datasets}})
    assert "pth: there is no such key; did you mean `path`? allowed: drop_self, path, source" in said


def test_every_mistake_is_said_at_once():
    said = message({"titel": "x", "hidden_states": {"models": {}, "batches": 0}})
    assert "titel" in said and "hidden_states.models" in said and "hidden_states.batches" in said


def test_an_unknown_ablation_is_named_with_the_known_ones():
    assert "corp-8" in message({"retrieval": {**RETRIEVAL, "ablations": ["corp-8"]}})


NAMES = "a name is made of letters (a to z), digits, `.`, `_` and `-`, and begins with a letter or a digit"


@pytest.mark.parametrize(
    ("config", "key", "given"),
    [
        ({"study": "my study"}, "study", "my study"),
        ({"study": ".hidden"}, "study", ".hidden"),
        (
            {"retrieval": RETRIEVAL | {"datasets": {"a/b": RETRIEVAL["datasets"]["d"]}}},
            "retrieval.datasets.a/b",
            "a/b",
        ),
        ({"word_similarity": {"models": {"é": {}}, "datasets": {"d": "d"}}}, "word_similarity.models.é", "é"),
    ],
)
def test_what_a_name_may_be_is_said_in_words(config, key, given):
    said = message(config)
    assert f"  {key}: {NAMES} (given: '{given}')" in said
    assert "pattern" not in said and "^" not in said


def test_a_name_leaves_room_for_what_files_are_called_besides():
    assert "  study: a name has 100 characters at most" in message({"study": "s" * 101})


def test_a_suite_may_not_have_a_name_that_is_no_part_of_a_path():
    with pytest.raises(ConfigError, match="name: a name is made of letters"):
        parse(Suite, {"name": "my suite"}, "my suite.yaml")


def test_a_source_that_is_missing_is_said_so():
    assert "text.corpus: there is no `source` in it" in message({"text": {"corpus": {"path": "x"}}})


def test_too_few_tokens_for_the_batches_are_refused():
    section = {"models": {"minilm": {}}, "tokens": 100, "batch_size": 50, "batches": 3}
    assert "tokens (100) must be at least" in message({"hidden_states": section})


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"retrieval": RETRIEVAL | {key: []}}, f"retrieval.{key}")
        for key in ("ablations", "checkpoint_ablations", "sides", "seeds")
    ]
    + [
        ({"retrieval": RETRIEVAL | {"models": {"minilm": {"sizes": []}}}}, "retrieval.models.minilm.sizes"),
        ({"word_similarity": {"models": {"minilm": {}}, "datasets": {"d": "d"}, "sides": []}},
         "word_similarity.sides"),
    ],
)  # fmt: skip
def test_an_empty_list_is_refused_and_drops_nothing_in_silence(section, key):
    assert f"  {key}: give at least one (given: [])\n" in message(section) + "\n"


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"seeds": [0, -1]}, "seeds.1"),
        ({"random_baseline": {"widths": [8], "seeds": [-1]}}, "random_baseline.seeds.0"),
    ],
)
def test_a_seed_is_a_number_that_a_path_can_hold(section, key):
    said = message({"retrieval": RETRIEVAL | section})
    assert f"  retrieval.{key}: Input should be greater than or equal to 0 (given: -1)" in said


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"retrieval": RETRIEVAL | {"random_baseline": {"widths": [8], "seeds": [0, 3, 0]}}},
         "retrieval.random_baseline.seeds: 0 is there twice"),
        ({"hidden_states": {"models": {"minilm": {"sizes": ["22.7m", "22.7m"]}}}},
         "hidden_states.models.minilm.sizes: 22.7m is there twice"),
        ({"intrinsic_dimension": {"estimators": ["mom", "twonn", "mom"]}},
         "intrinsic_dimension.estimators: mom is there twice"),
    ],
)  # fmt: skip
def test_what_a_list_says_twice_would_be_in_a_table_twice(config, said):
    assert said in message(config)


TASKS = {"models": {"minilm": {}}, "tasks": ["STS12"]}


def test_tables_may_be_scored_on_tasks_alone_but_not_on_nothing():
    assert load_study({"retrieval": TASKS}, DEFAULT).retrieval.datasets == {}
    said = message({"retrieval": {"models": {"minilm": {}}}})
    assert "retrieval: give `datasets`, or other tasks of mteb under `tasks`, or both" in said


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ablations", ["original", "random"]),
        ("checkpoint_ablations", ["crop-8"]),
        ("random_baseline", {"widths": [8], "seeds": [0]}),
    ],
)
def test_what_only_data_sets_are_scored_under_is_refused_without_any(key, value):
    said = message({"retrieval": TASKS | {key: value}})
    assert f"retrieval: `{key}` is of data sets, and there are no `datasets`" in said


def test_a_task_that_no_path_can_hold_is_refused():
    assert "retrieval.tasks.0: a name is made of" in message({"retrieval": TASKS | {"tasks": ["a/b"]}})


def written(path, content):
    """`path`, with a study in it."""
    path.write_text(yaml.safe_dump(content))
    return path


def dimension(**section):
    """The parsed section of a study that says no more about intrinsic dimension than this."""
    return load_study(
        {"study": "s", "title": "S", "intrinsic_dimension": section}, DEFAULT
    ).intrinsic_dimension


def test_a_share_of_ratios_has_the_name_of_whose_choice_it_is_or_is_a_number():
    assert dimension(fractions=["facco", "llm-microscope", 0.5]).fractions == [0.9, 0.2, 0.5]
    assert dimension(fractions=["facco", 0.9]).fractions == [0.9], "one and the same setting"
    assert dimension().fractions == [0.2, 0.9]
    for wrong in ("faco", 0, 1.5):
        assert "intrinsic_dimension.fractions" in message({"intrinsic_dimension": {"fractions": [wrong]}})


def test_figures_show_a_fraction_that_is_computed():
    assert dimension(fractions=["facco", 0.5], figure_fraction="facco").drawn_fraction == 0.9
    said = message({"intrinsic_dimension": {"fractions": ["facco"], "figure_fraction": 0.3}})
    assert "intrinsic_dimension: `figure_fraction` 0.3 is none of the `fractions`" in said


def test_neighbours_of_an_estimator_can_be_set_alone():
    assert dimension().neighbors.model_dump() == {"mada": 20, "mom": 100}
    assert dimension(neighbors={"mom": 50}).neighbors.model_dump() == {"mada": 20, "mom": 50}
    assert "intrinsic_dimension.neighbors.mada" in message(
        {"intrinsic_dimension": {"neighbors": {"mada": 1}}}
    )


def test_the_files_that_a_study_reads_are_named_by_key_but_those_of_a_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = Study.model_validate({
        "study": "s", "title": "S", "text": {"corpus": {"source": "file", "path": "text.txt"}},
        "retrieval": RETRIEVAL | {"datasets": {"docs": {"source": "folder", "path": "d"}}},
        "word_similarity": {"models": {"minilm": {}}, "datasets": {"known": "simlex999.txt", "mine": "pairs.tsv"}},
    })  # fmt: skip
    files = {
        "text.corpus.path": ["text.txt"],
        "retrieval.datasets.docs.path": ["d/corpus.jsonl", "d/queries.jsonl", "d/qrels/test.tsv"],
        "word_similarity.datasets.mine": ["pairs.tsv"],
    }
    assert own_files(study) == files
    Path("simlex999.txt").touch()  # a file of one's own is read before the package's
    assert own_files(study) == files | {"word_similarity.datasets.known": ["simlex999.txt"]}


def test_a_whole_study_replaces_the_default_instead_of_merging_into_it(tmp_path):
    other = written(tmp_path / "other.yaml", {"study": "other", "title": "Other", "retrieval": RETRIEVAL})
    chosen = load_study({}, DEFAULT, [other])
    assert list(chosen.retrieval.models) == ["minilm"]
    assert chosen.hidden_states is None and chosen.text is None


def test_a_setting_replaces_one_section_of_the_default():
    default = yaml.safe_load(DEFAULT.read_text())
    changed = load_study({"retrieval": RETRIEVAL}, DEFAULT)
    assert list(changed.retrieval.models) == ["minilm"]
    assert changed.hidden_states.batch_size == default["hidden_states"]["batch_size"]


def test_a_setting_replaces_one_section_of_a_chosen_study_as_well(tmp_path):
    two = RETRIEVAL | {"models": {"minilm": {}, "smollm2": {}}}
    mine = written(tmp_path / "mine.yaml", {"study": "s", "title": "S", "retrieval": two})
    assert list(load_study({"retrieval": RETRIEVAL}, DEFAULT, [mine]).retrieval.models) == ["minilm"]


def test_two_studies_at_once_are_refused():
    with pytest.raises(ConfigError, match="give one study, not a.yaml and retrieval"):
        load_study({}, DEFAULT, ["a.yaml", "retrieval"])


def test_a_suite_without_a_selection_is_taken_as_it_is():
    section = RETRIEVAL | {"models": {"minilm": None}}
    assert load_study({"retrieval": section}, DEFAULT).retrieval.models["minilm"].sizes == "all"


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"text": {"corpus": {"source": "file", "path": "my {text}.txt"}}}, "text.corpus.path"),
        (
            {"retrieval": RETRIEVAL | {"datasets": {"d": {"source": "folder", "path": "<x>/y"}}}},
            "retrieval.datasets.d",
        ),
        (
            {"word_similarity": {"models": {"minilm": {}}, "datasets": {"d": "a}b"}}},
            "word_similarity.datasets.d",
        ),
    ],
)
def test_a_path_that_snakemake_would_not_take_as_it_is_is_refused_by_key(section, key):
    said = message(section)
    assert key in said and "Snakemake takes braces and < > in a path for names of its own" in said


def test_an_empty_path_is_refused_by_key():
    said = message({"text": {"corpus": {"source": "file", "path": ""}}})
    assert "text.corpus.path: it is empty" in said


def test_all_files_that_are_missing_are_named_at_once_with_what_a_path_is_instead(tmp_path):
    text = {"corpus": {"source": "file", "path": "~/corpus.txt"}}
    pairs = {"models": {"minilm": {}}, "datasets": {"mine": "pairs.tsv", "folder": str(tmp_path)}}
    study = load_study({"text": text, "word_similarity": pairs}, DEFAULT)
    with pytest.raises(ConfigError) as refused:
        require_files(study)
    corpus, mine, folder = str(refused.value).splitlines()
    assert corpus.startswith("text.corpus.path: there is no file ~/corpus.txt (relative to ")
    assert corpus.endswith("; `~` is not read as your home folder: write the path out")
    assert mine.startswith("word_similarity.datasets.mine: there is no file pairs.tsv (relative to ")
    assert folder.startswith(f"word_similarity.datasets.folder: {tmp_path} is a folder, and a file is wanted")


@pytest.mark.parametrize("source", ["folder", "mteb"])
def test_a_name_that_is_also_a_kind_of_data_set_is_a_part_of_the_key(source):
    """The kind itself, by which pydantic tells where it was, is none."""
    datasets = {source: {"source": "mteb", "task": 3}}
    with pytest.raises(ConfigError, match=rf"retrieval\.datasets\.{source}\.task: a text is wanted"):
        load_study({"retrieval": {"models": {"minilm": {}}, "datasets": datasets}}, DEFAULT)


@pytest.mark.parametrize("path", ["a" * 300, "a\0b", "loop/x"])
def test_a_path_that_the_system_does_not_look_at_is_of_no_file(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    study = load_study({"text": {"corpus": {"source": "file", "path": path}}}, DEFAULT)
    with pytest.raises(ConfigError, match="text.corpus.path: there is no file"):
        require_files(study)


def test_a_model_of_such_a_path_is_refused():
    with pytest.raises(ConfigError, match="sizes.s.path: Snakemake takes braces"):
        parse(Suite, {"sizes": {"s": {"path": "{m}"}}}, "s.yaml")


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_data_set_of_ones_own_must_be_there(tmp_path, missing):
    (tmp_path / "qrels").mkdir()
    for name in {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"} - {missing}:
        (tmp_path / name).touch()
    own = {"source": "folder", "path": str(tmp_path)}
    study = load_study({"retrieval": RETRIEVAL | {"datasets": {"mine": own}}}, DEFAULT)
    with pytest.raises(ConfigError, match=f"retrieval.datasets.mine.path: there is no file .*{missing}"):
        require_files(study)
    (tmp_path / missing).touch()
    require_files(study)


def test_a_text_of_ones_own_must_be_there(tmp_path):
    study = load_study({"text": {"corpus": {"source": "file", "path": str(tmp_path / "text")}}}, DEFAULT)
    with pytest.raises(ConfigError, match="text.corpus.path: there is no file"):
        require_files(study)


def test_word_pairs_of_ones_own_must_be_there_and_those_of_the_package_need_not(tmp_path):
    own = tmp_path / "pairs.tsv"
    datasets = {"known": "simlex999.txt", "mine": str(own)}
    study = load_study({"word_similarity": {"models": {"minilm": {}}, "datasets": datasets}}, DEFAULT)
    with pytest.raises(ConfigError) as caught:
        require_files(study)
    said = str(caught.value)
    assert f"word_similarity.datasets.mine: there is no file {own}" in said
    assert "gensim's test data has wordsim353.tsv and simlex999.txt" in said
    own.touch()
    require_files(study)


def test_the_package_has_the_word_pairs_that_a_study_may_name():
    for name in WORD_PAIRS:
        assert word_similarity.read(word_similarity.find(name))


def test_a_mistake_is_said_of_where_it_was_made(tmp_path):
    mine = written(tmp_path / "mine.yaml", {"study": "s", "titel": "S"})
    with pytest.raises(ConfigError, match="^mine.yaml cannot be used:"):
        load_study({}, DEFAULT, [mine])
    assert message({"titel": "S"}).startswith("config.yaml with --config titel cannot be used:")


def test_the_name_of_the_default_study_can_be_set_alone():
    renamed = load_study({"study": "trial"}, DEFAULT)
    assert renamed == load_study({}, DEFAULT).model_copy(update={"study": "trial"})


def test_every_suite_and_every_study_of_the_repository_is_valid():
    suites = load_suites(ROOT / "suites")
    assert {"neox-small", "bert-small", "minilm", "smollm2"} <= set(suites)
    for path in [DEFAULT, *(ROOT / "studies").glob("*.yaml")]:
        assert load_study({}, DEFAULT, [path]).study


def test_a_suite_must_be_named_as_its_file(tmp_path):
    text = (ROOT / "suites" / "minilm.yaml").read_text()
    (tmp_path / "other.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"other\.yaml: name is 'minilm'; it must be 'other'"):
        load_suites(tmp_path)


def test_what_editors_and_other_systems_leave_beside_suites_is_none(tmp_path):
    (tmp_path / "minilm.yaml").write_text((ROOT / "suites" / "minilm.yaml").read_text())
    (tmp_path / "._minilm.yaml").write_bytes(
        b"\0\5\x16\7"
    )  # what macOS keeps of a file on other file systems
    (tmp_path / ".#minilm.yaml").symlink_to("nobody@nowhere.1")  # that Emacs has a file open
    assert list(load_suites(tmp_path)) == ["minilm"]


def test_a_size_without_what_its_source_needs_is_refused():
    size = {"parameters": 1, "width": 1, "vocabulary_rows": 1, "layers": 1}
    suite = {"name": "s", "title": "S", "architecture": "decoder", "tokenizer": "t", "sizes": {"1m": size}}
    with pytest.raises(ConfigError, match="size 1m needs `hub`"):
        parse(Suite, suite, "s.yaml")


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([4, 1], "steps must ascend"),
        ([-1, 1], "steps must ascend without repeats, from 0 or more"),
        ([0, 3, {"first": 4, "last": 3, "every": 1}], "every 1 steps from 4 on, 3 is never met"),
        ([{"first": 0, "last": 10, "every": 3}], "every 3 steps from 0 on, 10 is never met"),
    ],
)
def test_steps_must_ascend_from_0_and_a_range_must_meet_its_end(steps, said):
    with pytest.raises(ConfigError, match=f"checkpoints.steps: {said}"):
        parse(Suite, {"checkpoints": {"steps": steps}}, "s.yaml")


def test_steps_may_be_ranges_and_checkpoints_may_lie_in_other_repositories():
    given = {"steps": [0, 1, {"first": 10, "last": 30, "every": 10}], "revision": "global_step{step}"}
    suite = {"name": "s", "title": "S", "architecture": "decoder", "tokenizer": "t", "checkpoints": given}
    facts = {"parameters": 1, "width": 1, "vocabulary_rows": 1, "layers": 1, "hub": "a/final"}
    own = {"steps": [5], "hub": {5: "a/at-five"}, "revision": "main"}
    sizes = {"plain": facts, "own": facts | {"checkpoints": own}}
    parsed = parse(Suite, suite | {"sizes": sizes}, "s.yaml")
    assert parsed.checkpoints_of("plain").steps == [0, 1, 10, 20, 30]
    assert parsed.checkpoints_of("plain").source("a/final", 20) == ("a/final", "global_step20")
    assert parsed.checkpoints_of("own").source("a/final", 5) == ("a/at-five", "main")
    with pytest.raises(ConfigError, match="each of the steps"):
        parse(Suite, suite | {"sizes": sizes, "checkpoints": given | {"hub": {1: "a/b"}}}, "s.yaml")


def with_revisions(revision: object, hub: object = None) -> Suite:
    """A suite of two steps whose revisions are named so."""
    given = {"steps": [1000, 2000], "revision": revision, "hub": hub}
    suite = {"name": "s", "title": "S", "architecture": "decoder", "tokenizer": "t", "checkpoints": given}
    facts = {"parameters": 1, "width": 1, "vocabulary_rows": 1, "layers": 1, "hub": "a/final"}
    return parse(Suite, suite | {"sizes": {"1b": facts}}, "s.yaml")


@pytest.mark.parametrize(
    ("revision", "hub", "expected"),
    [
        ("step{step:06d}", None, [("a/final", "step001000"), ("a/final", "step002000")]),
        ({1000: "step1000-tokens4B", 2000: "step2000-tokens8B"}, None,
         [("a/final", "step1000-tokens4B"), ("a/final", "step2000-tokens8B")]),
        ("main", {1000: "a/first", 2000: "a/second"}, [("a/first", "main"), ("a/second", "main")]),
        ("{{x}}{step}", "a/steps", [("a/steps", "{x}1000"), ("a/steps", "{x}2000")]),
    ],
)  # fmt: skip
def test_revisions_are_named_by_a_pattern_or_one_by_one(revision, hub, expected):
    checkpoints = with_revisions(revision, hub).checkpoints
    assert [checkpoints.source("a/final", step) for step in (1000, 2000)] == expected


@pytest.mark.parametrize(
    "slip",
    ["step{step}-tokens{tokens}B", "checkpoint-{steps}", "checkpoint-{step", "step}", "step{}", "{0}", "{step.real}",
     "{step:s}", "{step:{width}}", "{step:1000000000000}", "{step:.0e}"],
)  # fmt: skip
def test_a_slip_in_a_pattern_of_revisions_is_refused_by_its_key(slip):
    with pytest.raises(
        ConfigError,
        match=r"checkpoints\.revision\S*: in braces there can be `\{step\}` and no more.*given: '",
    ):
        with_revisions(slip)


@pytest.mark.parametrize(
    ("revision", "hub", "said"),
    [
        ("main", None, r"checkpoints\.revision\S*: without `\{step\}` in it.*\(1000: \.\.\.\)"),
        ("main", "a/steps", r"checkpoints\.revision\S*: without `\{step\}` in it"),
        ("{{step}}", None, r"checkpoints\.revision\S*: without `\{step\}` in it"),
        ("", None, r"checkpoints\.revision\S*: "),
        ({1000: "a"}, None, r"checkpoints\.revision\S*: a mapping must have each of the steps"),
        ({2000: "b", 1000: "a"}, None, r"checkpoints\.revision\S*: a mapping must have each.*, in their order"),
        ({1000: "a", 2000: "a"}, None, "checkpoints: steps 1000 and 2000 are both revision a of the model's own"),
        ("main", {1000: "a/b", 2000: "a/b"}, "checkpoints: steps 1000 and 2000 are both revision main of a/b"),
    ],
)  # fmt: skip
def test_no_two_steps_are_one_revision(revision, hub, said):
    """A revision without the step would give the finished model's numbers for every step."""
    with pytest.raises(ConfigError, match=said):
        with_revisions(revision, hub)


def test_unreadable_yaml_is_named(tmp_path):
    (tmp_path / "broken.yaml").write_text("a: [1,")
    with pytest.raises(ConfigError, match=r"broken\.yaml: not valid YAML"):
        load_suites(tmp_path)


@pytest.mark.parametrize("model", [Study, Suite])
def test_every_key_is_described(model):
    def undescribed(schema: dict) -> list[str]:
        sections = [schema, *schema.get("$defs", {}).values()]
        keys = [(s["title"], k, v) for s in sections for k, v in s.get("properties", {}).items()]
        return [f"{title}.{key}" for title, key, v in keys if "description" not in v and key != "source"]

    assert undescribed(model.model_json_schema()) == []
