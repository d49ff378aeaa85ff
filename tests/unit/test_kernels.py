"""Scores do not depend on the processor's kernels or on threads: docs/measures.md says what may differ.

NumPy and OpenBLAS choose their kernels by the processor; the environment can make them take older ones.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import kernel_scores
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from skipping import skip

HERE = Path(kernel_scores.__file__)
KERNELS = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
OLD = "Nehalem"  # OpenBLAS's kernels for processors of 2008, which every later one of that make runs
DISPATCHED = " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name])
HASWELL = {"OPENBLAS_CORETYPE": "Haswell"} if __cpu_features__.get("AVX2") else {}


def run(threads: int, **environment: str) -> dict:
    settings = {name: f"{threads}" for name in THREADS} | environment
    inherited = {name: value for name, value in os.environ.items() if name not in KERNELS}
    ended = subprocess.run(
        [sys.executable, str(HERE)], env=inherited | settings, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def expected():
    """With old kernels and one thread."""
    found = run(1, OPENBLAS_CORETYPE=OLD, NPY_DISABLE_CPU_FEATURES=DISPATCHED)
    if found["kernels"]["blas"] != [OLD]:
        skip(f"NumPy's BLAS has no other kernels to compare with: {found['kernels']}")
    return found


@pytest.mark.parametrize(("threads", "environment"), [(1, HASWELL), (2, HASWELL), (1, {}), (2, {})], ids=str)
def test_scores_depend_on_no_kernels_and_no_threads(expected, threads, environment):
    found = run(threads, **environment)
    for library in ("blas", "numpy"):
        assert found["kernels"][library] != expected["kernels"][library]
    assert found["kernels"]["threads"] == [min(threads, os.cpu_count())]
    ours, theirs = found["computed"], expected["computed"]
    assert ours["cosines"] == theirs["cosines"] and ours["sums"] == theirs["sums"]
    for measured in ("measures", "difference"):  # of which NumPy's logarithms are a part
        for name, value in ours[measured].items():
            assert value == pytest.approx(theirs[measured][name], rel=0, abs=1e-12), name
    assert ours["stderr"] == pytest.approx(theirs["stderr"], abs=1e-12)
    for query, documents in ours["pca"].items():
        assert documents == pytest.approx(theirs["pca"][query], abs=1e-6)
