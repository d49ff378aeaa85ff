"""What every job does before anything else."""

import logging
import os
import sys
from types import TracebackType
from typing import Any

from lmshape.errors import LmshapeError
from lmshape.jobs import devices


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
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(snakemake.threads)
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = os.environ["TQDM_DISABLE"] = "1"
    return devices.claim(int(snakemake.resources.get("gpu", 0)))


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What a user can mend is said in one message; anything else is a defect and shows where it happened."""
    if isinstance(error, LmshapeError):
        print(f"{kind.__name__}: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
