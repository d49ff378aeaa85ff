"""How much text tasks of mteb have."""

import json
import subprocess
import sys

import pytest

from lmshape.inputs import mteb_sizes
from lmshape.inputs.mteb_sizes import characters


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Statistics of the splits of a task, as mteb ships them."""
    (tmp_path / "descriptive_stats/Retrieval").mkdir(parents=True)
    monkeypatch.setattr(mteb_sizes.packages, "folder", lambda name: tmp_path)

    def ship(name: str, **splits: dict) -> None:
        (tmp_path / f"descriptive_stats/Retrieval/{name}.json").write_text(json.dumps(splits))

    return ship


def test_mteb_is_asked_without_being_imported():
    code = (
        "import sys; from lmshape.inputs.mteb_sizes import characters;"
        "print(characters('SCIDOCS')); assert 'mteb' not in sys.modules"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 25_657 * 1000 < int(said) < 25_657 * 2000  # documents, of abstracts


def test_a_subset_is_smaller_than_the_task():
    assert 0 < characters("MIRACLRetrieval:de") < characters("MIRACLRetrieval")


def test_without_a_split_it_is_test_as_in_the_export_or_the_largest(shipped):
    shipped("Tested", train={"number_of_characters": 50}, test={"number_of_characters": 7})
    shipped("Untested", train={"number_of_characters": 50}, dev={"number_of_characters": 70})
    assert (characters("Tested"), characters("Tested", "train"), characters("Tested", "dev")) == (7, 50, 0)
    assert (characters("Untested"), characters("Untested", "train")) == (70, 50)


@pytest.mark.parametrize("task", ["SCIDOCZ", "Banking77Classification", "CQADupstackRetrieval"])
def test_a_task_that_cannot_be_a_data_set_is_refused_where_it_is_read_and_not_here(task):
    assert characters(task) == 0


def test_without_mteb_nothing_is_known(monkeypatch):
    monkeypatch.setattr(mteb_sizes.importlib.util, "find_spec", lambda name: None)
    assert characters("SCIDOCS") == 0
