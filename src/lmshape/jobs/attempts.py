"""A failed job is tried again where that can end otherwise: not after a refusal that it would only repeat.

Jobs write the verdict into their logs, as Snakemake is told nothing of a job but that it failed.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

FINAL = "Another attempt would end in the same way."


def final(logs: Iterable[str | Path], since: float) -> bool:
    """Whether one of a job's logs, if written after `since` (seconds of the epoch), ends with that verdict."""
    return any(_ending(Path(log), since) == FINAL for log in logs)


def _ending(log: Path, since: float) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[-1] if lines and log.stat().st_mtime >= since else ""
    except OSError:  # the job failed before it had a log
        return ""


def repeat_no_refusal(scheduler: Any, since: float) -> None:
    """Let a `snakemake.scheduling.job_scheduler.JobScheduler` not restart jobs that failed for good `since` then."""
    handle = scheduler._handle_error

    def handle_once(job: Any, *arguments: Any, **settings: Any) -> None:
        jobs = list(job.jobs) if job.is_group() else [job]
        retries = {each.rule: each.rule.restart_times for each in jobs}
        if final((log for each in jobs for log in each.log), since):
            for rule in retries:
                rule.restart_times = 0
        handle(job, *arguments, **settings)
        for rule, times in retries.items():
            rule.restart_times = times

    scheduler._handle_error = handle_once
