"""Studies and suites as YAML: what is written is what is meant, and what is meant twice is refused."""

from pathlib import Path

import pytest
import yaml

from lmshape.errors import ConfigError
from lmshape.study import yaml_files
from lmshape.study.config import load_study
from lmshape.study.suites import load_suites

ROOT = Path(__file__).parents[2]
STUDY = """\
study: s
title: T
retrieval:
  models: {minilm: {}}
  datasets:
    own: {source: folder, path: beir}
"""


@pytest.fixture
def study(tmp_path):
    """Loads the small study above with more lines at its end."""

    def load(more: str, changes: dict | None = None):
        (tmp_path / "study.yaml").write_text(STUDY + more)
        return load_study(changes or {}, tmp_path / "study.yaml")

    return load


def read(tmp_path: Path, text: str | bytes):
    path = tmp_path / "file.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return yaml_files.read(path)


def refusal(act, *arguments) -> str:
    with pytest.raises(ConfigError) as refused:
        act(*arguments)
    return str(refused.value)


def as_written(given: object) -> object:
    """What PyYAML read, with its numbers and truth values as the texts they were written as in these files."""
    if isinstance(given, dict):
        return {str(key): as_written(value) for key, value in given.items()}
    if isinstance(given, list):
        return [as_written(part) for part in given]
    return str(given).lower() if isinstance(given, bool) else given if given is None else str(given)


@pytest.mark.parametrize(
    "path", [*ROOT.glob("*.yaml"), *ROOT.glob("studies/*"), *ROOT.glob("suites/*")], ids=str
)
def test_files_that_say_nothing_odd_are_read_as_pyyaml_does(path):
    numbers = {"0.001": "1.0e-3"}  # the one number that Python writes in another way than a suite does
    expected = yaml.dump(as_written(yaml.safe_load(path.read_text())))
    found = yaml.dump(yaml_files.read(path))
    for python, written in numbers.items():
        expected, found = expected.replace(python, "?"), found.replace(written, "?").replace(python, "?")
    assert found == expected


@pytest.mark.parametrize(
    ("more", "place", "line"),
    [
        ("title: U\n", "title", 7),
        ("    own: {source: folder, path: other}\n", "retrieval.datasets.own", 7),
        ("  seeds: [0]\n  bootstrap: 10\n  seeds: [1]\n", "retrieval.seeds", 9),
        ('"title": quoted\n', "title", 7),
        (
            "  random_baseline: {widths: [8], widths: [16], seeds: [0]}\n",
            "retrieval.random_baseline.widths",
            7,
        ),
    ],
)
def test_a_key_given_twice_is_refused_by_key_and_line(study, more, place, line):
    said = refusal(study, more)
    assert f"study.yaml line {line}: {place}: this key is there twice, first in line" in said


def test_a_size_given_twice_in_a_suite_is_refused(tmp_path):
    text = (ROOT / "suites/gpt2.yaml").read_text()
    assert text.count("\n  small: ") == 1
    start = text.index("  small: ")
    (tmp_path / "gpt2.yaml").write_text(text + text[start:].split("\n")[0] + "\n")
    said = refusal(load_suites, tmp_path)
    assert "gpt2.yaml line" in said and "sizes.small: this key is there twice" in said


@pytest.mark.parametrize(
    ("written", "meant"), [("010", 10), ("0", 0), ("7", 7), ("'8'", 8), ("65_536", 65536), ("4096.0", 4096)]
)
def test_a_number_is_what_people_read(study, written, meant):
    assert study(f"  seeds: [{written}]\n").retrieval.seeds == [meant]


@pytest.mark.parametrize(
    "written", ["1:30", "1e3", "0x10", "0b1", "1.5", "1,000", "１", "yes", "1 0", ".inf", "~"]
)
def test_what_is_no_number_to_everyone_is_refused_by_key_and_line(study, written):
    said = refusal(study, f'  bootstrap: 9\n  seeds: [3,\n    "{written}"]\n')
    assert "  retrieval.seeds.1 (line 9): a whole number is wanted, of the digits 0 to 9" in said


@pytest.mark.parametrize(("written", "meant"), [(".5", 0.5), ("5e-1", 0.5), ("1", 1.0), ("+.25", 0.25)])
def test_a_share_is_what_people_read(study, written, meant):
    text = f"text: {{corpus: {{source: wikipedia-extract}}, held_out: {written}}}\n"
    assert study(text).text.held_out == meant


@pytest.mark.parametrize("written", [".nan", "nan", "1:30", "0,5", "inf"])
def test_what_is_no_share_is_refused(study, written):
    text = f'text: {{corpus: {{source: wikipedia-extract}}, held_out: "{written}"}}\n'
    assert "  text.held_out (line 7): " in refusal(study, text)


@pytest.mark.parametrize(
    ("written", "meant"), [("yes", True), ("on", True), ("true", True), ("no", False), ("off", False)]
)
def test_yes_and_no_are_true_and_false_where_one_of_them_is_wanted(study, written, meant):
    assert (
        study(f"    b: {{source: folder, path: b, drop_self: {written}}}\n").retrieval.datasets["b"].drop_self
        is meant
    )


@pytest.mark.parametrize(
    "name", ["no", "on", "1.10", "70e6", "010", "1_0", "2026-11-30", "true", "null", "1"]
)
def test_a_name_stays_as_it_is_written(study, name):
    found = study(f"    {name}: {{source: folder, path: 010}}\n")
    assert list(found.retrieval.datasets) == ["own", name] and found.retrieval.datasets[name].path == "010"
    assert study(f"hidden_states: {{models: {{minilm: {{sizes: ['{name}', 12b]}}}}}}").hidden_states.models[
        "minilm"
    ].sizes == [name, "12b"]


def test_names_as_values_stay_as_they_are_written(tmp_path):
    (tmp_path / "study.yaml").write_text(
        STUDY.replace("study: s", "study: 1.10").replace("title: T", "title: no")
    )
    found = load_study({}, tmp_path / "study.yaml")
    assert (found.study, found.title) == ("1.10", "no")


def test_a_name_that_a_command_makes_a_number_is_asked_for_in_quotes(study):
    """Snakemake reads `--config study=1.10` as 1.1: nobody can say afterwards what was written."""
    assert "study: a text is wanted, in quotes" in refusal(study, "", {"study": 1.1})


def test_a_mistake_on_the_command_line_has_no_line_of_the_file(study):
    assert "  retrieval.models: Field required" in refusal(study, "", {"retrieval": {"datasets": {}}})


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("retreival: {}\n", "retreival (line 7)"),
        ("  bootstrap: 1\n", "retrieval.bootstrap (line 7)"),
        ("    b:\n      source: folder\n      pth: x\n      path: x\n", "pth (line 9)"),
        ("word_similarity:\n  datasets: {w: x}\n", "word_similarity.models (line 7)"),
    ],
)
def test_a_mistake_is_named_with_its_line(study, more, key):
    assert key in refusal(study, more)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a {x: one, y: two}\nb: {<<: *a, y: own}\n",
        "a: &a {x: one}\nb: &b {x: two, y: two}\nc: {z: own, <<: [*a, *b]}\n",
        "a: &a {x: one}\nb: &b {<<: *a, y: two}\nc: {<<: *b, x: own}\n",
    ],
)
def test_what_is_merged_is_replaced_by_a_mappings_own_keys(tmp_path, text):
    assert read(tmp_path, text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &a {x: 1}\nb:\n  <<: *a\n  <<: *a\n", "line 4: b.<<: this key is there twice, first in line 3"),
        ("a: 1\nb: {<<: [x]}\n", "line 2: b.<<: what is merged must be a mapping"),
        ("a:\n  ? [x]\n  : y\n", "line 2: a: a key must be a text"),
        ("a: 1\nb: !!python/object/apply:os.getcwd []\n", "line 2: b: write it without the tag"),
        ("a: !!int '010'\n", "line 1: a: write it without the tag"),
        ("a: 1\n---\nb: 2\n", "not valid YAML: expected a single document"),
        ("a:\n\tb: 1\n", 'file.yaml", line 2'),
        ("a: {b: c\n", 'file.yaml", line'),
        (b"a: b\nc: \xff\n", "invalid leading UTF-8 octet"),
        ("- a\n", "expected a mapping of keys to values"),
        ("", "expected a mapping of keys to values"),
        ("a: &a [*a]\n", "one that holds itself"),
        ("[" * 100_000, "maximum nesting depth"),
        ("a: " + "[" * 990 + "]" * 990, "too many sections inside each other"),
    ],
)
def test_what_nobody_can_mean_is_refused_with_its_place(tmp_path, text, said):
    found = refusal(read, tmp_path, text)
    assert said in found and "file.yaml" in found and "\n" not in found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_encoding_of_yaml_is_read(tmp_path, encoding):
    assert read(tmp_path, "title: Größe\n".encode(encoding)) == {"title": "Größe"}


def test_a_folder_in_place_of_a_file_is_named(tmp_path):
    assert refusal(yaml_files.read, tmp_path) == f"{tmp_path}: cannot be read (Is a directory)"


def test_nothing_is_none_unless_it_is_quoted(tmp_path):
    text = "a:\nb: ~\nc: null\nd: ''\ne: 'null'\nf: \"~\"\n"
    assert read(tmp_path, text) == {"a": None, "b": None, "c": None, "d": "", "e": "null", "f": "~"}
