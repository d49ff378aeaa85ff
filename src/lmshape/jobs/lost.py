"""What a run did not come to, and why: what its failed jobs were to make, and the jobs that wait for it.

A run that goes on after a failure (--keep-going) ends with a second one, which gathers tables, figures and report
from what there is. A file says what is lost: path -> reason, and the wildcards that name the combination.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from lmshape.jobs.attempts import FINAL, lines_since

VARIABLE = "LMSHAPE_LOST"  # of the environment: the file that says what is lost, where a run gathers without
ERROR = re.compile(
    r"[A-Za-z_][\w.]*: "
)  # how the last lines of a traceback, and lmshape's own messages, begin
LONGEST = 500  # characters of a reason
SHOWN = 10  # reasons that are said at the end of a run
GATHERED = "Tables, figures and report are made of the rest, and name what is missing."

Lost = dict[str, dict[str, Any]]


def known() -> Lost:
    """What was lost before this run, which gathers the rest; nothing in any other run."""
    told = os.environ.get(VARIABLE)
    return read(told) if told else {}


def read(path: str | Path) -> Lost:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write(lost: Lost, path: str | Path) -> None:
    Path(path).write_text(json.dumps(lost), encoding="utf-8")


@dataclass(frozen=True)
class Gathering:
    """Rules that put results together: `partly` those that do without some of their inputs, `wholly` the others."""

    partly: Sequence[str]
    wholly: Sequence[str]

    @property
    def rules(self) -> list[str]:
        return [*self.partly, *self.wholly]


def find(workflow: Any, gathering: Gathering, since: float) -> tuple[Lost, list[str]]:
    """What a `snakemake.workflow.Workflow` that failed did not make, and the files that can be gathered nevertheless.

    An older file under the name of a result is lost as well: the job that was to replace it did not.
    """
    dag, known = workflow.dag, {}
    failed = {each for job in workflow.scheduler.failed for each in (job.jobs if job.is_group() else [job])}

    def why(job: Any) -> str | None:
        if job not in known:
            known[job] = find_out(job)
        return known[job]

    def find_out(job: Any) -> str | None:
        name = job.rule.name
        if dag.finished(job) or not dag.needrun(job):
            return None
        if job in failed:
            return f"{name} failed: {message(job.log, since)}"
        if name in gathering.partly:
            return None
        inherited = next(filter(None, map(why, dag.dependencies[job])), None)
        return inherited or (None if name in gathering.wholly else f"{name} was not run")

    lost: Lost = {}
    gathered: list[str] = []
    for job in dag.needrun_jobs():
        if reason := why(job):
            lost |= {str(path): {"reason": reason, "names": dict(job.wildcards_dict)} for path in job.output}
        elif job.rule.name in gathering.rules:
            gathered += map(str, job.output)
    return lost, sorted(gathered)


def message(logs: Iterable[str | Path], since: float) -> str:
    """What a failed job's log says of the error, in one line."""
    for log in logs:
        lines = lines_since(log, since)
        said = [number for number, line in enumerate(lines) if ERROR.match(line)]
        if said and (lines[-1] == FINAL or said[-1] == len(lines) - 1):
            words = " ".join(line for line in lines[said[-1] :] if line != FINAL)
            return shorten(words, LONGEST, placeholder=" ...")
        return f"it ended without a message; see {log}"
    return "it has no log"


def summary(lost: Lost, results: Iterable[str], gathered: Iterable[str]) -> str:
    """The end of a run that lost some of its `results`, or of what was to be `gathered` of them; and why."""
    results, gathered = set(results), set(gathered)
    told = [each["reason"] for path, each in lost.items() if path in results | gathered]
    reasons = Counter(told).most_common()
    files = len(gathered & lost.keys())
    return "\n".join(
        [
            f"{len(results & lost.keys())} of {len(results)} results could not be made"
            + (f", nor {files} of {len(gathered)} files gathered from them:" if files else ":"),
            *(f"  {count}: {reason}" for reason, count in reasons[:SHOWN]),
            *([f"  and {len(reasons) - SHOWN} other reasons"] if len(reasons) > SHOWN else []),
            *([GATHERED] if gathered - lost.keys() else []),
        ]
    )
