"""Every job logs to its file, says a user's mistake in one message, and starts before torch."""

import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from lmshape.jobs.attempts import FINAL, refusals
from lmshape.jobs.signals import SIGNALS

ROOT = Path(__file__).parents[2]


def run(body: str, tmp_path: Path, ignored: Collection[signal.Signals] = ()) -> tuple[int, str]:
    """Exit status and log of a job with this body, with these signals `ignored` whatever runs the tests ignores."""

    def set_signals() -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN if each in ignored else signal.SIG_DFL)

    program = f"""
        from types import SimpleNamespace
        from lmshape.jobs import job
        log = {str(tmp_path / "job.log")!r}
        snakemake = SimpleNamespace(log=[log], threads=3, resources={{}})
        device = job.start(snakemake)
        {body}
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, capture_output=True, text=True, preexec_fn=set_signals)
    assert ended.stdout == "" and ended.stderr == ""
    return ended.returncode, (tmp_path / "job.log").read_text()


def test_what_a_job_prints_goes_to_its_log(tmp_path):
    body = "import os; print(device, os.environ['OMP_NUM_THREADS'], flush=True); os.system('echo from a child >&2')"
    assert run(body, tmp_path) == (0, "cpu 3\nfrom a child\n")


def test_a_job_has_the_threads_of_its_rule_whatever_its_environment_says(tmp_path, monkeypatch):
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
        monkeypatch.setenv(name, "0")
    assert run("import polars; print(polars.thread_pool_size())", tmp_path) == (0, "3\n")


def test_a_users_mistake_is_one_line_and_a_verdict(tmp_path):
    body = "from lmshape.errors import LmshapeError; raise LmshapeError('a.yaml: no key')"
    assert run(body, tmp_path) == (1, f"LmshapeError: a.yaml: no key\n{FINAL}\n")
    assert refusals([tmp_path / "none.log", tmp_path / "job.log"], since=0) == [
        "LmshapeError: a.yaml: no key"
    ]


def test_a_refusal_that_may_pass_has_no_verdict(tmp_path):
    body = "from lmshape.errors import LmshapeError; raise LmshapeError('no network') from ConnectionError()"
    assert run(body, tmp_path) == (1, "LmshapeError: no network\n")
    assert refusals([tmp_path / "job.log"], since=0) == []


def test_the_verdict_of_an_earlier_run_does_not_count(tmp_path):
    run("from lmshape.errors import LmshapeError; raise LmshapeError('a.yaml: no key')", tmp_path)
    assert refusals([tmp_path / "job.log"], since=time.time() + 60) == []


def test_a_full_disk_is_one_message_that_names_the_file(tmp_path):
    body = f"""
        import errno
        from lmshape.files import writing
        with writing({str(tmp_path / "result")!r}) as path:
            raise OSError(errno.ENOSPC, "No space left on device")
    """
    said = f"OSError: [Errno 28] No space left on device: '{tmp_path}/result'\n"
    assert run(body, tmp_path) == (1, said)


def test_a_folder_that_nobody_may_write_to_is_refused_once(tmp_path):
    status, log = run("raise PermissionError(13, 'Permission denied', 'results')", tmp_path)
    assert (status, log) == (1, f"PermissionError: [Errno 13] Permission denied: 'results'\n{FINAL}\n")


def test_a_defect_shows_where_it_happened(tmp_path):
    status, log = run("raise ZeroDivisionError('oops')", tmp_path)
    assert status == 1 and "Traceback" in log and "ZeroDivisionError: oops" in log


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_ends_a_job_that_removes_what_it_has_half_written(name, tmp_path):
    body = f"""
        import os, signal, time
        from lmshape.files import writing
        with writing({str(tmp_path / "result")!r}) as path:
            path.write_text("half")
            os.kill(os.getpid(), signal.{name})
            time.sleep(60)
    """
    assert run(body, tmp_path) == (1, f"ended by {name}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["job.log"]


def test_a_job_begun_with_nohup_outlives_its_terminal(tmp_path):
    body = "import os, signal; os.kill(os.getpid(), signal.SIGHUP); print('done')"
    assert run(body, tmp_path, ignored=[signal.SIGHUP]) == (0, "done\n")


@pytest.mark.parametrize("script", sorted((ROOT / "scripts").glob("*.py")), ids=lambda path: path.name)
def test_scripts_are_short_and_start_before_they_import(script):
    lines = script.read_text().splitlines()
    assert len(lines) <= 40
    start = next(i for i, line in enumerate(lines) if "job.start(snakemake)" in line)
    imports = [line for line in lines[:start] if line.startswith(("import ", "from "))]
    assert imports == ["from lmshape.jobs import job"]
