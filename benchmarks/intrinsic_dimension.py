"""Three estimators of intrinsic dimension on one batch, against scikit-dimension and llm-microscope.

Ours and scikit-dimension are called equally often after a warm-up; the best call of each counts.
"""

import runpy
import time
from contextlib import suppress
from importlib.util import find_spec
from operator import itemgetter
from unittest import mock

import measure
import numpy as np
import skdim
import torch

from lmshape.intrinsic_dimension import estimate
from lmshape.study.estimator_settings import LLM_MICROSCOPE

ROUNDS = 2  # of each, in turn, so that a busy moment hits all; the best counts
ROWS, WIDTH = 4096, 1024
FEW = 256  # rows of scikit-dimension's warm-up
PART = 64  # rows for which llm-microscope's loop is timed; it does the same for every row


def batch() -> np.ndarray:
    """Vectors as hidden states are: a decaying spectrum around a mean, and an outlier dimension."""
    X = np.random.default_rng(0).standard_normal((ROWS, WIDTH)) / np.sqrt(np.arange(1, WIDTH + 1)) + 2
    X[:, 5] += 300
    return X.astype(np.float32)


def scikit_dimension(X: np.ndarray) -> dict[str, float]:
    estimators = {"twonn": skdim.id.TwoNN(), "mada": skdim.id.MADA(), "mom": skdim.id.MOM()}
    return {name: float(estimator.fit(X).dimension_) for name, estimator in estimators.items()}


class Enough(Exception):
    """Stops llm-microscope's loop."""


def llm_microscope_seconds(X: np.ndarray) -> float:
    """Seconds that llm-microscope's TwoNN would spend in its loop over rows: those of PART rows, scaled.

    Each row calls torch.kthvalue twice; that call keeps the time, and ends the loop when it has run for long enough.
    """
    times: list[float] = []
    kthvalue = torch.kthvalue

    def watched(*arguments, **options):
        times.append(time.perf_counter())
        if len(times) > 2 * PART:
            raise Enough
        return kthvalue(*arguments, **options)

    # the package cannot be imported: it misses a module of its own
    functions = runpy.run_path(f"{find_spec('llm_microscope').submodule_search_locations[0]}/functions.py")
    with mock.patch("torch.kthvalue", watched), suppress(Enough):
        functions["intrinsic_dimension"](torch.from_numpy(X), "cpu")
    return (times[-1] - times[0]) * ROWS / PART


def main() -> None:
    X = batch()
    calls = {
        "ours": lambda: estimate(X),
        "alone": lambda: estimate(X, "twonn", LLM_MICROSCOPE),
        "peer": lambda: scikit_dimension(X),
    }
    calls["ours"]()
    peak = measure.peak_mib()  # ours: the peers, not run yet, take more
    scikit_dimension(X[:FEW])
    timed = [{name: measure.timed(call) for name, call in calls.items()} for _ in range(ROUNDS)]
    best = {name: min((found[name] for found in timed), key=itemgetter(0)) for name in calls}
    (seconds, found), (peer_seconds, expected) = best["ours"], best["peer"]
    slow = llm_microscope_seconds(X)
    measure.report(
        "intrinsic_dimension",
        seconds,
        "scikit-dimension",
        peer_seconds,
        max(abs(found[name] / expected[name] - 1) for name in expected),
        peak,
        ratio_llm_microscope=slow / best["alone"][0],
    )


if __name__ == "__main__":
    main()
