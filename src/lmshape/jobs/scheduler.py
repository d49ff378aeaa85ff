"""Snakemake's scheduler looks at the waiting jobs when there is a reason to, and not once a second for ever.

Its limit on the jobs of a time span (`--max-jobs-per-timespan`, by default 100 in a second) makes it look again
when that time is over. In Snakemake 9 every look orders another one, limit reached or not, so that each finished
job leaves a chain of looks, and a thread, until the run ends: CPU time grows with the square of the jobs done. The
limit itself is kept. Snakemake's pull request 3744 is about the same lines; a test tells when this can go.
"""

import threading
from typing import Any

MENDED = "9.27."  # the versions of Snakemake whose scheduler was read for this


def look_when_needed(scheduler: Any, version: str) -> str | None:
    """Let a `snakemake.scheduling.job_scheduler.JobScheduler` order another look only where its limit was reached.

    One look is ordered at a time. Another `version` than those known is left as it is; returns what to say then.
    """
    if not version.startswith(MENDED):
        return (
            f"Snakemake {version} runs with its own scheduler: lmshape knows that of {MENDED}*. "
            "With thousands of jobs, compare the CPU time of Snakemake's main process."
        )
    ordered = threading.Lock()

    def look() -> None:
        ordered.release()
        scheduler._open_jobs.release()

    def order(delay: float) -> None:
        limit = scheduler.job_rate_limiter  # _jobs: those that count for the round that just ended
        reached = limit is None or len(limit._jobs) >= limit.max_jobs
        if reached and ordered.acquire(blocking=False):
            timer = threading.Timer(delay, look)
            timer.daemon = True  # nothing waits for it when the run ends
            timer.start()

    scheduler._schedule_reevalutation = order
    return None
