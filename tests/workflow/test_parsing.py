"""Every command parses the workflow, and on a cluster every job, so that must be quick."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "transformers", "mteb", "scipy", "seaborn", "polars"}
PARSE = """
import contextlib, json, sys
from snakemake.cli import main

with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
    main(["--list-rules", "--configfile", sys.argv[1]])
print(json.dumps([name for name in sys.modules if "." not in name]))
"""


@pytest.mark.parametrize("study", ["config.yaml", "studies/published.yaml"])
def test_parsing_imports_no_heavy_package(study):
    command = [sys.executable, "-c", PARSE, study]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    modules = set(json.loads(ended.stdout))
    assert {"snakemake", "lmshape"} <= modules and "retrieve" in ended.stderr.split()
    assert modules & HEAVY == set()
