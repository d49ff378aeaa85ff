"""What every job does before anything else."""

import errno
import importlib
import logging
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from lmshape.errors import LmshapeError, may_pass
from lmshape.jobs import devices
from lmshape.jobs.attempts import FINAL
from lmshape.jobs.signals import leave, on_signals

# What a machine says that has no room, or that lets nobody write there: it is no defect of a job
LASTING = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG}
REFUSALS = LASTING | {errno.ENOSPC, errno.EDQUOT, errno.EIO}

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


def start(snakemake: Any) -> str:
    """Send all output to the job's log, claim its GPUs and limit its threads; returns torch's device name.

    Call it before torch or numpy is imported.
    """
    descriptor = os.open(snakemake.log[0], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(descriptor, stream.fileno())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    sys.excepthook = report
    on_signals(leave)
    os.environ |= dict.fromkeys(THREADS, str(snakemake.threads))
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = os.environ["TQDM_DISABLE"] = "1"
    return devices.claim(int(snakemake.resources.get("gpu", 0)))


def function(name: str) -> Callable:
    """A function of lmshape by its dotted name, e.g. report.figures.retrieval_by_width: what a script does by name.

    The names are a rule's param `function` or `functions`, whose code then counts as the rule's own.
    """
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"lmshape.{module}"), attribute)


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What a user can mend is said in one message; anything else is a defect and shows where it happened."""
    number = getattr(error, "errno", None)
    if isinstance(error, LmshapeError) or number in REFUSALS:
        final = number in LASTING or not may_pass(error)
        print(f"{kind.__name__}: {error}", *([FINAL] if final else []), sep="\n", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
