"""What is generated from the code says what the code says."""

import json
import runpy
from pathlib import Path

import jsonschema
import pytest
import yaml

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
