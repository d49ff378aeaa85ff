"""A script of the workflow in a process of its own, as Snakemake would run it."""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "scripts"
RUN = """
import inspect, json, runpy, sys

class Names(list):
    def __init__(self, named):
        super().__init__(named.values())
        self.__dict__.update(named)

class Job:
    def __init__(self, log, threads, resources, **names):
        self.log, self.threads, self.resources = log, threads, resources
        self.__dict__.update({name: Names(named) for name, named in names.items()})

script, job, packages, answer = sys.argv[1], *map(json.loads, sys.argv[2:4]), sys.argv[4]
called = set()
if job.pop("traced"):
    def note(frame, event, argument):
        code = frame.f_code
        if code.co_flags & inspect.CO_OPTIMIZED and code.co_filename != "<string>":  # a function that is written out
            called.add((frame.f_globals.get("__name__", ""), code.co_qualname))
    sys.settrace(note)
runpy.run_path(script, {"snakemake": Job(**job)})
sys.settrace(None)
ours = sorted(each for each in called if each[0].startswith("lmshape."))
json.dump([sorted(set(packages) & set(sys.modules)), ours], open(answer, "w"))
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
    return _answers(script, folder, packages, environment, False, names)[0]


def called(script: str, folder: Path, **names: dict) -> list[tuple[str, str]]:
    """Run a script as `run` does; returns (module, qualified name) of all functions of lmshape that were called."""
    return [tuple(each) for each in _answers(script, folder, (), None, True, names)[1]]


def _answers(
    script: str,
    folder: Path,
    packages: Collection[str],
    environment: Mapping[str, str] | None,
    traced: bool,
    names: dict[str, dict],
) -> tuple[list, list]:
    job = {"log": ["log"], "threads": 1, "resources": {}, "traced": traced, **names}
    settings = [json.dumps(job), json.dumps(list(packages)), "answer.json"]
    command = [sys.executable, "-c", RUN, str(SCRIPTS / f"{script}.py"), *settings]
    environment = os.environ | (environment or {})
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, (folder / "log").read_text() + ended.stderr
    return json.loads((folder / "answer.json").read_text())
