"""Snakemake's scheduler is told to look again only where its limit held jobs back, one look at a time."""

import threading
from types import SimpleNamespace

import pytest

from lmshape.jobs.scheduler import look_when_needed

VERSION = "9.27.1"


class Looks:
    """A scheduler whose limit is two jobs in a time span."""

    def __init__(self, started: int):
        self.job_rate_limiter = SimpleNamespace(max_jobs=2, _jobs=[0.0] * started)
        self._open_jobs = threading.Semaphore(0)
        assert look_when_needed(self, VERSION) is None

    def order(self, times: int, delay: float) -> None:
        for _ in range(times):
            self._schedule_reevalutation(delay)


def waiting() -> list[threading.Timer]:
    return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_no_look_is_ordered_while_the_limit_is_not_reached():
    Looks(started=1).order(times=5, delay=60)
    assert waiting() == []


def test_one_look_is_ordered_at_a_time_and_holds_up_no_exit():
    Looks(started=2).order(times=5, delay=60)
    [timer] = waiting()
    timer.cancel()
    assert timer.daemon


def test_after_a_look_the_next_can_be_ordered():
    looks = Looks(started=2)
    for _ in range(3):
        looks.order(times=1, delay=0)
        assert looks._open_jobs.acquire(timeout=60)


@pytest.mark.parametrize("version", ["9.26.0", "9.28.0", "10.0.0"])
def test_the_scheduler_of_another_version_is_left_alone_and_said(version):
    scheduler = SimpleNamespace()
    assert f"Snakemake {version}" in look_when_needed(scheduler, version)
    assert vars(scheduler) == {}
