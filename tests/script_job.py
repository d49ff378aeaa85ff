"""A script of the workflow in a process of its own, as Snakemake would run it."""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "scripts"
RUN = """
import json, runpy, sys

class Names(list):
    def __init__(self, named):
        super().__init__(named.values())
        self.__dict__.update(named)

class Job:
    def __init__(self, log, threads, resources, **names):
        self.log, self.threads, self.resources = log, threads, resources
        self.__dict__.update({name: Names(named) for name, named in names.items()})

script, job, packages, answer = sys.argv[1], *map(json.loads, sys.argv[2:4]), sys.argv[4]
runpy.run_path(script, {"snakemake": Job(**job)})
json.dump(sorted(set(packages) & set(sys.modules)), open(answer, "w"))
"""


def run(
    script: str,
    folder: Path,
    packages: Collection[str] = (),
    environment: Mapping[str, str] | None = None,
    **names: dict,
) -> list[str]:
    """Run a script in `folder`, where it logs; returns which of `packages` it had imported when it was done.

    `names` are Snakemake's: input, output, params, wildcards, each a mapping.
    """
    job = {"log": ["log"], "threads": 1, "resources": {}, **names}
    settings = [json.dumps(job), json.dumps(list(packages)), "answer.json"]
    command = [sys.executable, "-c", RUN, str(SCRIPTS / f"{script}.py"), *settings]
    environment = os.environ | (environment or {})
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, (folder / "log").read_text() + ended.stderr
    return json.loads((folder / "answer.json").read_text())
