"""The grid: which combinations are run, which are pruned, and what is refused."""

from pathlib import Path

import pytest
import yaml

from lmshape.errors import ConfigError
from lmshape.study import grid as grids
from lmshape.study.config import Study, load_study
from lmshape.study.strict import parse
from lmshape.study.suites import Suite, load_suites

ROOT = Path(__file__).parents[2]


def suite(name: str, widths: dict[str, int], tokenizer: str = "tok", **more) -> Suite:
    sizes = {
        size: {
            "parameters": 10 * width,
            "width": width,
            "vocabulary_rows": 100,
            "layers": 2,
            "hub": f"o/{size}",
        }
        for size, width in widths.items()
    }
    described = {
        "name": name,
        "title": name,
        "architecture": "decoder",
        "tokenizer": tokenizer,
        "sizes": sizes,
    }
    return parse(Suite, described | more, name)


def study(models: dict, **more) -> Study:
    retrieval = {"models": models, "datasets": {"d": {"source": "folder", "path": "x"}}, **more}
    return parse(Study, {"study": "s", "title": "S", "retrieval": retrieval}, "study")


def words(models: dict, **more) -> Study:
    section = {"models": models, "datasets": {"w": "words.tsv"}, **more}
    return parse(Study, {"study": "s", "title": "S", "word_similarity": section}, "study")


SUITES = {
    "a": suite("a", {"small": 64, "large": 256}, checkpoints={"steps": [0, 8, 64]}),
    "b": suite("b", {"small": 64}, tokenizer_from="a"),
}


def names(combinations: list) -> list[str]:
    return [str(combination) for combination in combinations]


def test_a_deterministic_ablation_is_one_job_and_a_random_one_is_one_for_each_seed():
    grid = grids.build(study({"b": {}}, ablations=["original", "shuffled"], seeds=[3, 5]), SUITES)
    assert names(grid.retrieval) == [
        "retrieval/d/b/small/main/input/original/none",
        "retrieval/d/b/small/main/input/shuffled/3",
        "retrieval/d/b/small/main/input/shuffled/5",
    ]


def test_checkpoints_before_the_final_one_get_their_own_ablations():
    models = {"a": {"sizes": ["small"], "checkpoints": [8]}}
    grid = grids.build(study(models, ablations=["original", "crop-8"]), SUITES)
    assert names(grid.retrieval) == [
        "retrieval/d/a/small/step8/input/original/none",
        "retrieval/d/a/small/main/input/original/none",
        "retrieval/d/a/small/main/input/crop-8/none",
    ]


def test_every_data_set_of_a_study_is_scored_with_every_table():
    sources = {"own": {"source": "folder", "path": "x"}, "scidocs": {"source": "mteb", "task": "SCIDOCS"}}
    grid = grids.build(study({"a": {}}, datasets=sources), SUITES)
    assert names(grid.retrieval) == [
        f"retrieval/{dataset}/a/{size}/main/input/original/none"
        for dataset in sources
        for size in ("small", "large")
    ]


def test_impossible_combinations_are_pruned_with_a_reason():
    grid = grids.build(study({"a": {}}, ablations=["original", "crop-128"]), SUITES)
    assert "retrieval/d/a/large/main/input/crop-128/none" in names(grid.retrieval)
    assert [str(cut.combination) for cut in grid.pruned] == ["retrieval/d/a/small/main/input/crop-128/none"]
    assert "crop-128 is wider than the table (64)" in grid.pruned[0].reason


def test_one_random_table_serves_all_models_of_a_tokenizer_and_width():
    grid = grids.build(study({"a": {}, "b": {}}, ablations=["random"], seeds=[0]), SUITES)
    run = ["retrieval/d/a/small/main/input/random/0", "retrieval/d/a/large/main/input/random/0"]
    assert names(grid.retrieval) == run
    assert grid.pruned[0].reason == "the same numbers as retrieval/d/a/small/main/input/random/0"


def wide(**more) -> Suite:
    """A suite whose output tables are not of the input's shape (100, 64), or of which one size has none."""
    described = suite("wide", {"s": 64, "m": 64}, untied=True).model_dump(mode="json")
    for size, facts in more.items():
        described["sizes"][size] |= facts
    return parse(Suite, described, "wide")


def test_ablations_of_an_output_table_go_by_its_own_width():
    suites = {"wide": wide(s={"output_width": 512})}
    asked = study({"wide": {}}, ablations=["crop-128", "pad-128"], seeds=[0], sides=["input", "output"])
    grid = grids.build(asked, suites)
    assert names(grid.retrieval) == [
        "retrieval/d/wide/s/main/output/crop-128/none",
        "retrieval/d/wide/s/main/input/pad-128/0",
        "retrieval/d/wide/m/main/input/pad-128/0",
        "retrieval/d/wide/m/main/output/pad-128/0",
    ]
    assert {str(cut.combination): cut.reason for cut in grid.pruned} == {
        "retrieval/d/wide/s/main/input/crop-128/none": "crop-128 is wider than the table (64)",
        "retrieval/d/wide/m/main/input/crop-128/none": "crop-128 is wider than the table (64)",
        "retrieval/d/wide/m/main/output/crop-128/none": "crop-128 is wider than the table (64)",
        "retrieval/d/wide/s/main/output/pad-128/0": "pad-128 is narrower than the table (512)",
    }


@pytest.mark.parametrize(
    ("facts", "run"),
    [
        ({}, ["s/main/input"]),
        ({"m": {"vocabulary_rows": 104}}, ["s/main/input", "m/main/input"]),  # and m's output table
        ({"m": {"output_width": 96}}, ["s/main/input", "m/main/output"]),
        ({"s": {"output_rows": 96}, "m": {"output_rows": 96}}, ["s/main/input", "s/main/output"]),
    ],
)
def test_random_tables_are_one_only_where_rows_and_width_are_the_same(facts, run):
    suites = {"wide": wide(**facts)}
    grid = grids.build(
        study({"wide": {}}, ablations=["random"], seeds=[0], sides=["input", "output"]), suites
    )
    assert names(grid.retrieval) == [f"retrieval/d/wide/{made}/random/0" for made in run]


def test_a_size_can_be_tied_where_the_others_of_its_suite_are_not():
    grid = grids.build(study({"wide": {}}, sides=["input", "output"]), {"wide": wide(m={"untied": False})})
    outputs = [str(c.model) for c in grid.retrieval if c.side == "output"]
    assert outputs == ["wide/s/main"]
    assert [cut.reason for cut in grid.pruned] == ["tied: the output embedding is the input embedding"]


@pytest.mark.parametrize("facts", [{"output_width": 512}, {"output_rows": 96}])
def test_a_tied_size_has_no_output_table_of_another_shape(facts):
    with pytest.raises(ConfigError, match="size m has an output table of another shape.*`untied: true`"):
        wide(m=facts | {"untied": False})


def test_the_output_side_is_only_there_where_it_is_a_table_of_its_own():
    suites = SUITES | {"c": suite("c", {"small": 64}, untied=True)}
    grid = grids.build(study({"b": {}, "c": {}}, sides=["input", "output"]), suites)
    assert "retrieval/d/c/small/main/output/original/none" in names(grid.retrieval)
    assert [str(cut.combination) for cut in grid.pruned] == ["retrieval/d/b/small/main/output/original/none"]


def test_the_random_baseline_has_the_rows_of_the_widest_vocabulary_or_those_that_the_study_says():
    suites = {"wide": wide(m={"vocabulary_rows": 128, "output_rows": 200})}
    baseline = {"widths": [8], "seeds": [0]}
    for said, rows in ({}, 128), ({"tok": 104}, 104):
        asked = study({"wide": {}}, random_baseline=baseline | {"rows": said})
        assert grids.build(asked, suites).vocabulary_rows("tok") == rows
    with pytest.raises(ConfigError, match=r"retrieval\.random_baseline\.rows\.tik: .*did you mean `tok`\?"):
        grids.build(study({"wide": {}}, random_baseline=baseline | {"rows": {"tik": 104}}), suites)


def test_word_similarity_is_one_job_for_each_table_that_there_is():
    suites = SUITES | {"c": suite("c", {"small": 64}, untied=True)}
    grid = grids.build(words({"b": {}, "c": {}}, sides=["input", "output"]), suites)
    made = ["b/small/main/input", "c/small/main/input", "c/small/main/output"]
    assert names(grid.scored) == [f"word_similarity/w/{name}" for name in made]
    assert [str(cut.combination) for cut in grid.pruned] == ["word_similarity/w/b/small/main/output"]
    assert grid.tables["word_similarity"]["b"] == ["word_similarity/w/b/small/main/input.parquet"]
    assert list(grid.tokenizers) == ["tok"]


@pytest.mark.parametrize("models", [["b"], ["a", "b"], ["b", "a"]])
def test_a_tokenizer_is_read_from_one_suite_whichever_others_a_study_has(models):
    grid = grids.build(study({name: {} for name in models}), SUITES)
    assert grid.tokenizers == {"tok": grids.Model("a", "small", "main")}


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ({"a": None, "b": None}, "the suites a, b read it from a, b; name one of these"),
        ({"a": "b", "b": "a"}, "the suites a, b read it from a, b; name one of these"),
        ({"a": "c", "b": "c"}, "the suites a, b read it from c; name one of these"),
    ],
)
def test_suites_with_one_tokenizer_must_read_it_from_one_of_them(tmp_path, sources, said):
    for name, source in sources.items():
        described = suite(name, {"small": 64}, tokenizer_from=source).model_dump(mode="json")
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(described))
    with pytest.raises(ConfigError, match=f"tokenizer tok: {said}"):
        load_suites(tmp_path)


def test_a_task_of_mteb_is_scored_on_every_table_as_it_is():
    models = {"a": {"sizes": ["small"], "checkpoints": [8]}}
    grid = grids.build(study(models, ablations=["original", "random"], tasks=["STS12"]), SUITES)
    assert grid.tables["mteb_tasks"] == {
        "a": [f"mteb_tasks/STS12/a/small/{checkpoint}/input.parquet" for checkpoint in ("step8", "main")]
    }


def tasks(models: dict, **more) -> Study:
    return study(models, datasets={}, tasks=["STS12"], **more)


def test_a_study_of_tasks_alone_has_their_table_alone():
    grid = grids.build(tasks({"b": {}}), SUITES)
    assert grid.tables == {"mteb_tasks": {"b": ["mteb_tasks/STS12/b/small/main/input.parquet"]}}
    assert grid.retrieval == [] and list(grid.tokenizers) == ["tok"]


@pytest.mark.parametrize(
    ("make", "section"), [(study, "retrieval"), (tasks, "retrieval"), (words, "word_similarity")]
)
def test_a_side_that_no_model_has_is_refused(make, section):
    with pytest.raises(
        ConfigError, match=rf"{section}\.sides: output is possible for no table .* allowed: input"
    ):
        grids.build(make({"a": {}, "b": {}}, sides=["output"]), SUITES)


def test_a_crop_wider_than_every_table_is_refused_with_the_widths():
    with pytest.raises(ConfigError, match=r"retrieval\.ablations: crop-512 .* allowed widths here: 64, 256"):
        grids.build(study({"a": {}, "b": {}}, ablations=["original", "crop-512"]), SUITES)


def test_an_ablation_for_no_checkpoint_is_refused_by_its_own_key_with_the_widths_of_checkpoints_alone():
    models = {"a": {"sizes": ["small"], "checkpoints": [8]}, "b": {}, "c": {}}
    suites = SUITES | {"c": suite("c", {"wide": 512})}
    settings = {"ablations": ["original", "crop-128"], "checkpoint_ablations": ["original", "crop-128"]}
    with pytest.raises(ConfigError) as refusal:
        grids.build(study(models, **settings), suites)
    assert str(refusal.value) == (
        "retrieval.checkpoint_ablations: crop-128 is possible for no table of this study: "
        "crop-128 is wider than the table (64); allowed widths here: 64"
    )


def test_what_repeats_another_combination_is_not_refused():
    models = {"a": {"sizes": ["small"], "checkpoints": [8]}}
    settings = {"ablations": ["random"], "checkpoint_ablations": ["random"], "seeds": [0]}
    grid = grids.build(study(models, **settings), SUITES)
    assert names(grid.retrieval) == ["retrieval/d/a/small/step8/input/random/0"]
    assert len(grid.pruned) == 1


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ({"c": {}}, r"retrieval\.models\.c: there is no such suite.*allowed: a, b"),
        ({"a": {"sizes": ["smal"]}}, r"retrieval\.models\.a\.sizes: .*no size smal; did you mean `small`\?"),
        (
            {"a": {"checkpoints": [9]}},
            r"retrieval\.models\.a\.checkpoints: .*no step 9 of small; allowed: .*0, 8, 64",
        ),
        (
            {"b": {"checkpoints": "all"}},
            r"retrieval\.models\.b\.checkpoints: .*no checkpoints of .*; allowed: final",
        ),
    ],
)
def test_what_a_suite_lacks_is_named_with_what_it_has(models, said):
    with pytest.raises(ConfigError, match=said):
        grids.build(study(models), SUITES)


def test_a_suite_trained_here_needs_text_that_is_not_held_out():
    config = {"text": {"corpus": {"source": "wikipedia-extract"}, "held_out": 1.0}}
    changed = load_study(config, ROOT / "config.yaml")
    with pytest.raises(ConfigError, match=r"text\.held_out: suite neox-small"):
        grids.build(changed, load_suites(ROOT / "suites"))


def test_a_bert_that_is_trained_here_is_not_planned_to_be_run_on_more_tokens_than_it_has_positions():
    section = {"models": {"neox-small": {}}, "sequence_length": 129}
    grids.build(load_study({"hidden_states": section}, ROOT / "config.yaml"), load_suites(ROOT / "suites"))
    changed = load_study({"hidden_states": section | {"models": {"bert-small": {}}}}, ROOT / "config.yaml")
    with pytest.raises(
        ConfigError, match=r"^hidden_states.sequence_length 129: suite bert-small .* for 128 tokens"
    ):
        grids.build(changed, load_suites(ROOT / "suites"))


def test_a_suite_trained_here_without_a_text_section_is_told_to_add_one():
    with pytest.raises(ConfigError, match=r"text: suite neox-small .* allowed sources: wikipedia-extract"):
        grids.build(study({"neox-small": {}}), load_suites(ROOT / "suites"))


def test_a_tokenizer_that_is_trained_here_needs_text_to_be_trained_on():
    suites = load_suites(ROOT / "suites")
    suites["b"] = suite("b", {"small": 64}, tokenizer="neox-small", tokenizer_from="neox-small")
    with pytest.raises(ConfigError, match=r"text: suite neox-small is trained by the workflow"):
        grids.build(study({"b": {}}), suites)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            {"parameters": 1500000},
            "parameters is 1500000, and the model that is trained has 1457664",
        ),
        ({"untied": False}, "untied is False, and the model that is trained has True"),
        (
            {"output_rows": 9},
            "the shape of the output table is (9, 96), and the model that is trained has (4096, 96)",
        ),
    ],
)
def test_what_is_not_so_of_a_model_trained_here_is_refused_with_what_is(facts, said):
    """Of a suite that the study uses: a rough number in another one's file is nobody's business."""
    described = yaml.safe_load((ROOT / "suites" / "neox-small.yaml").read_text())
    described["sizes"]["1.5m"] |= facts
    suites = SUITES | {"neox-small": parse(Suite, described, "neox-small.yaml")}
    grids.build(study({"a": {}}), suites)
    with pytest.raises(ConfigError) as caught:
        grids.build(study({"neox-small": {}}), suites)
    assert f"suite neox-small, size 1.5m: {said}" in str(caught.value)


def own(path, **more) -> Suite:
    """A suite of the user's own models."""
    size = {"path": str(path), "parameters": 1, "width": 64, "vocabulary_rows": 9, "layers": 1}
    described = {
        "name": "own",
        "title": "O",
        "architecture": "decoder",
        "tokenizer": "own",
        "sizes": {"s": size},
    }
    return parse(Suite, described | more, "own")


def test_a_model_of_the_users_own_must_be_there(tmp_path):
    suites = {"own": own(tmp_path / "model")}
    with pytest.raises(
        ConfigError, match=f"suite own: there is no {tmp_path}/model .*, which should be own/s/main"
    ):
        grids.build(study({"own": {}}), suites)
    grids.build(study({"a": {}}), SUITES | suites)  # a study without it does not need it
    (tmp_path / "model").mkdir()
    with pytest.raises(ConfigError, match=f"suite own, size s: {tmp_path}/model: has no config.json"):
        grids.build(study({"own": {}}), suites)
    (tmp_path / "model/config.json").write_text("{}")
    (tmp_path / "model/model.safetensors").touch()
    assert grids.build(study({"own": {}}), suites).models == [grids.Model("own", "s", "main")]


def test_checkpoints_of_ones_own_are_folders_in_the_finished_models(tmp_path):
    suite = own(tmp_path, checkpoints={"steps": [5], "revision": "checkpoint-{step}"})
    assert suite.source == "local"
    assert (suite.path_of("s", None), suite.path_of("s", 5)) == (str(tmp_path), f"{tmp_path}/checkpoint-5")
    with pytest.raises(ConfigError, match=f"there is no {tmp_path}/checkpoint-5 .* own/s/step5"):
        grids.build(study({"own": {"checkpoints": "all"}}), {"own": suite})
    elsewhere = own(tmp_path, checkpoints={"steps": [5], "hub": "else/where"})
    assert elsewhere.path_of("s", 5) == "else/where/step5"


def test_a_tokenizer_of_ones_own_must_be_there(tmp_path):
    suites = {
        "own": own(tmp_path / "model"),
        "c": suite("c", {"s": 64}, tokenizer="own", tokenizer_from="own"),
    }
    with pytest.raises(ConfigError, match="which should be own/s/main"):
        grids.build(study({"c": {}}), suites)


def test_a_study_that_measures_nothing_is_told_what_it_can_measure():
    nothing = Study(study="empty", title="Nothing")
    with pytest.raises(
        ConfigError, match="empty measures nothing: .*`retrieval`, `word_similarity` or `hidden"
    ):
        grids.build(nothing, SUITES)


def test_the_embedded_study_has_two_packaged_and_two_trained_suites():
    grid = grids.build(load_study({}, ROOT / "config.yaml"), load_suites(ROOT / "suites"))
    sources = {name: grid.suites[name].source for name in grid.suite_names}
    assert sorted(sources.values()) == ["package", "package", "pretraining", "pretraining"]
    for name in (name for name, source in sources.items() if source == "pretraining"):
        trained = [model for model in grid.hidden_states if model.suite == name]
        assert len({model.size for model in trained}) >= 3
        assert len({model.step for model in trained}) >= 6 and 0 in {model.step for model in trained}


def test_both_sides_of_the_embedded_study_are_the_output_tables_of_the_one_untied_suite():
    config = load_study({}, ROOT / "config.yaml")
    retrieval = config.retrieval.model_copy(update={"sides": ["input", "output"]})
    grid = grids.build(config.model_copy(update={"retrieval": retrieval}), load_suites(ROOT / "suites"))
    outputs = [c for c in grid.scored if c.side == "output"]
    assert {c.model.suite for c in outputs} == {"neox-small"}
    assert {c.measure for c in outputs} == {"retrieval", "word_similarity"}
    tied = [cut.combination for cut in grid.pruned if cut.reason.startswith("tied")]
    assert {c.model.suite for c in tied} == {"bert-small", "minilm", "smollm2"}
    inputs = [c for c in grid.scored if c.side == "input"]
    random = [
        cut for cut in grid.pruned if cut.reason.startswith("the same numbers")
    ]  # one serves both sides
    assert len(outputs) + len(tied) + len(random) == len(inputs)


def test_every_file_of_a_table_is_listed_once_in_its_suite():
    grid = grids.build(study({"a": {}, "b": {}}, ablations=["original"]), SUITES)
    files = [file for group in grid.tables["retrieval"].values() for file in group]
    assert len(files) == len(set(files)) == len(grid.retrieval)
    assert all(file.startswith("retrieval/d/a/") for file in grid.tables["retrieval"]["a"])


def test_the_step_of_a_checkpoint():
    assert grids.Model("a", "small", "step64").step == 64
    assert grids.Model("a", "small", "main").step is None


def test_sizes_are_compared_from_small_to_large_by_the_original_tables_of_their_finished_models():
    models = {"a": {"sizes": ["large", "small"], "checkpoints": "all"}, "b": {}}
    grid = grids.build(study(models, ablations=["original", "random"]), SUITES)
    assert grid.tables["comparisons"] == {"a": ["comparisons/a.parquet"]}  # b has one size
    assert names(grid.originals("a")) == [
        f"retrieval/d/a/{size}/main/input/original/none" for size in ("small", "large")
    ]


@pytest.mark.parametrize(
    ("suite_name", "dataset", "compared"),
    [
        ("pythia", {"source": "mteb", "task": "SCIDOCS"}, {"d": ["published/d.parquet"]}),
        ("a", {"source": "mteb", "task": "SCIDOCS"}, None),
        ("pythia", {"source": "mteb", "task": "NFCorpus"}, None),
        ("pythia", {"source": "folder", "path": "scidocs"}, None),
    ],
)
def test_published_numbers_are_compared_on_their_own_suites_and_data_set(suite_name, dataset, compared):
    suites = {name: suite(name, {"small": 64}) for name in ("pythia", "a")}
    grid = grids.build(study({suite_name: {}}, datasets={"d": dataset}), suites)
    assert grid.tables.get("published") == compared
