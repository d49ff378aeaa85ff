"""One SIGTERM, Ctrl-C or closed terminal ends a run within seconds, and the next run goes on from there.

Left alone, Snakemake waits for the running jobs to finish, and its handler of SIGTERM takes a lock that the very line
it interrupts may hold, so that a run with much to do hangs. Here the jobs are stopped, and Snakemake sees them fail:
it removes what they left and ends as after any failure.
"""

import contextlib
import logging
import os
import select
import signal
import threading
import time
from collections.abc import Iterable
from types import FrameType, SimpleNamespace
from typing import Any

import psutil

from lmshape.jobs.signals import SIGNALS, on_signals

PATIENCE = 5.0  # seconds that a job has to end by itself
LIMIT = 12.0  # and Snakemake, before it is ended as by a power cut, which harms no result
POLL = 0.2


class Ending:
    """Waits in a thread for a signal, and then ends the run of a `snakemake.workflow.Workflow`.

    `signal` is the name of the one that came, or None. Made while the workflow is read; jobs run from `begin` on, at
    the time `begun` (seconds of the epoch).
    """

    def __init__(self, workflow: Any, logger: logging.Logger):
        self.signal: str | None = None
        self._workflow, self._logger = workflow, logger
        self.begun: float | None = None
        self._left = False
        # Python writes the number of a signal there at once, even while its main thread, which calls the handler, is
        # held up: polars makes Linux go on waiting for a job where SIGINT comes.
        self._came, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write)
        threading.Thread(target=self._wait, daemon=True).start()
        on_signals(self._leave)

    def begin(self) -> None:
        """Take the signals back from Snakemake's scheduler, which is there and about to start jobs."""
        self.begun = time.time()
        on_signals(self._leave)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        """Let Snakemake unlock the folder and go, where no job runs yet."""
        if not self.begun and not self._left:
            self._left = True
            raise SystemExit(f"ended by {signal.Signals(number).name}")

    def _wait(self) -> None:
        while (number := os.read(self._came, 1)[0]) not in SIGNALS:
            pass
        self.signal = signal.Signals(number).name
        start = time.monotonic()
        if self.begun:
            self._start_no_more()
        told: set[psutil.Process] = set()
        again = False  # a second signal is for the impatient
        while (passed := time.monotonic() - start) < LIMIT:
            told |= stop(told)
            if again or passed > PATIENCE:
                send(below(), signal.SIGKILL)
            again = again or bool(select.select([self._came], [], [], POLL)[0])
        if self._workflow.persistence is not None:
            self._workflow.persistence.unlock()
        os._exit(1)

    def _start_no_more(self) -> None:
        """Let the scheduler end as soon as no job runs on this machine, or at once where they run elsewhere."""
        self._logger.warning(f"{self.signal}: the running jobs are stopped. The next run goes on from here.")
        scheduler = self._workflow.scheduler
        scheduler._user_kill = self.signal
        if not self._workflow.local_exec:
            cancel(scheduler, self._workflow.persistence)
        with contextlib.suppress(AttributeError):  # of another Snakemake: then it is ended at the limit
            scheduler._open_jobs.release()


def cancel(scheduler: Any, persistence: Any) -> None:
    """Cancel the jobs that were submitted, and let the scheduler end without waiting to see them go.

    It would look at the queue again in up to three minutes. Those that are being submitted are cancelled as well.
    """
    executor = scheduler._executor
    if hasattr(executor, "_job_submission_executor"):  # of SLURM's
        executor._job_submission_executor.shutdown(cancel_futures=True)
    with scheduler._lock:
        running = list(scheduler.running)
    submitted = [(job, number) for job in running for number in persistence.external_jobids(job)]
    executor.cancel_jobs([SimpleNamespace(job=job, external_jobid=number) for job, number in submitted])
    executor.wait_thread = threading.Thread(target=int)  # for the one that sleeps: it has nothing to look for
    executor.wait_thread.start()
    scheduler.executor_error_callback(KeyboardInterrupt())


def stop(told: Iterable[psutil.Process] = ()) -> set[psutil.Process]:
    """Tell all processes below this one to end, but for those that were `told` before; returns whom it told.

    They are halted first: a shell that is ended while it starts a program would leave that program behind.
    """
    found: set[psutil.Process] = set()
    while new := below() - found - set(told):
        send(new, signal.SIGSTOP)
        found |= new
    send(found, signal.SIGTERM)
    send(found, signal.SIGCONT)
    return found


def below() -> set[psutil.Process]:
    """The processes that this one started, and those that they did."""
    with contextlib.suppress(psutil.Error):  # one may end while it is asked
        return set(psutil.Process().children(recursive=True))
    return set()


def send(processes: Iterable[psutil.Process], number: int) -> None:
    """Send a signal to those of the processes that are still there."""
    for process in processes:
        with contextlib.suppress(psutil.Error):  # gone, or not ours: a program that runs as another user
            process.send_signal(number)
