"""Every command parses the workflow, and on a cluster every job: it must be quick, and settle what jobs inherit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "transformers", "mteb", "scipy", "seaborn", "polars"}
PARSE = """
import contextlib, json, os, sys
from snakemake.cli import main

with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(SystemExit):
    main(["--list-rules", "--configfile", sys.argv[1]])
modules = [name for name in sys.modules if "." not in name]
print(json.dumps([modules, dict(os.environ), sys.executable]))
"""


NOTEBOOK = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "POLARS_ENGINE_AFFINITY": "streaming"}


@pytest.mark.parametrize("study", ["config.yaml", "studies/published.yaml"])
def test_parsing_imports_no_heavy_package_and_settles_the_environment_of_jobs(study, tmp_path):
    (tmp_path / "a folder").symlink_to(Path(sys.executable).parents[1])
    command = [tmp_path / "a folder/bin" / Path(sys.executable).name, "-c", PARSE, study]
    environment = os.environ | NOTEBOOK
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    modules, inherited, executable = json.loads(ended.stdout)
    assert {"snakemake", "lmshape"} <= set(modules) and "retrieve" in ended.stderr.split()
    assert HEAVY.isdisjoint(modules)
    assert inherited["MPLBACKEND"] == "agg" and "POLARS_ENGINE_AFFINITY" not in inherited
    assert executable == f"'{command[0]}'", "Snakemake puts it into commands as it is"
