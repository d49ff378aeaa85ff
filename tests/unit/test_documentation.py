"""The pages of docs/ say what the code says."""

import json
import runpy
from pathlib import Path

import documented
import jsonschema
import pytest
import yaml
from synthetic_tables import all_tables

from lmshape.report import benchmarks
from lmshape.summaries import bells, training_shapes

ROOT = Path(__file__).parents[2]
PAGES = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_have_not_drifted(name):
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name], "run: python docs/generate.py"


@pytest.mark.parametrize(
    "path", [ROOT / "config.yaml", *(ROOT / "studies").glob("*.yaml")], ids=lambda p: p.name
)
def test_studies_fit_the_schema(path):
    jsonschema.validate(yaml.safe_load(path.read_text()), json.loads(PAGES["study.schema.json"]))


@pytest.mark.parametrize("path", sorted((ROOT / "suites").glob("*.yaml")), ids=lambda p: p.name)
def test_suites_fit_the_schema(path):
    jsonschema.validate(yaml.safe_load(path.read_text()), json.loads(PAGES["suite.schema.json"]))


def test_every_column_of_a_table_about_other_tables_is_explained():
    measured = all_tables()
    columns = {
        "anisotropy_bells": bells(measured["anisotropy"]).columns,
        "dimension_over_training": training_shapes(measured["intrinsic_dimension"]).columns,
        "benchmarks": benchmarks.SCHEMA,
    }
    explained = documented.tables()
    assert {name: set(names) for name, names in columns.items()} == {
        name: explained[name] for name in columns
    }
