"""A failed job is tried again where that can end otherwise: not after a refusal that it would only repeat.

What was refused is said where the run is followed, as it stands in the job's log. Jobs write the verdict into their
logs, as Snakemake is told nothing of a job but that it failed.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

FINAL = "Another attempt would end in the same way."


def refusals(logs: Iterable[str | Path], since: float) -> list[str]:
    """What was refused for good by the jobs of these logs: the line before the verdict, where a log ends with it.

    A log counts if it was written after `since` (seconds of the epoch).
    """
    endings = [["", "", *lines_since(log, since)][-2:] for log in logs]
    return [said for said, last in endings if last == FINAL]


def lines_since(log: str | Path, since: float) -> list[str]:
    """The lines of a log, none if it was written before; a job that fails early leaves that of an earlier run."""
    try:
        lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
        return lines if Path(log).stat().st_mtime >= since else []
    except OSError:
        return []


def repeat_no_refusal(scheduler: Any, since: float, say: Callable[[str], object]) -> None:
    """Let a `snakemake.scheduling.job_scheduler.JobScheduler` not restart jobs that failed for good `since` then.

    `say` is given what they refused. In a run that keeps going, jobs that were to share a submission with them, or
    with a job that waits for them, go without them.
    """
    handle = scheduler._handle_error

    def handle_once(job: Any, *arguments: Any, **settings: Any) -> None:
        jobs = list(job.jobs) if job.is_group() else [job]
        retries = {each.rule: each.rule.restart_times for each in jobs}
        refused = {each: said for each in jobs if (said := refusals(each.log, since))}
        for said in refused.values():
            say("\n".join(said))
        for rule in retries if refused else ():
            rule.restart_times = 0
        handle(job, *arguments, **settings)
        for rule, times in retries.items():
            rule.restart_times = times
        if job in scheduler.failed and scheduler.keepgoing:
            _leave_groups(refused or jobs, scheduler.workflow.dag)

    scheduler._handle_error = handle_once


def _leave_groups(failed: Iterable[Any], dag: Any) -> None:
    """Take failed jobs, and all that waits for them, out of the groups that are submitted together."""
    lost, waiting = set(), list(failed)
    while waiting:
        job = waiting.pop()
        if job not in lost:
            lost.add(job)
            waiting += dag.depending[job]
    for group in {dag._group[job] for job in lost if job in dag._group}:
        if rest := group.jobs - lost:
            smaller = type(group)(group.groupid, rest, group.global_resources)
            smaller.finalize()
            dag._group.update(dict.fromkeys(rest, smaller))
            dag.update_ready(rest)
