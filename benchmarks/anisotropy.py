"""Anisotropy of one batch of hidden states against the decomposition of the authors of "The shape of learning"."""

import runpy
from importlib.util import find_spec

import measure
import numpy as np
import torch

from lmshape.anisotropy import anisotropy

ROUNDS = 5  # of both, in turn, so that a busy moment hits both; the best of each counts
ROWS, WIDTH = 4096, 1024


def batch() -> np.ndarray:
    """Vectors as hidden states are: a decaying spectrum around a mean, and an outlier dimension."""
    X = np.random.default_rng(0).standard_normal((ROWS, WIDTH)) / np.sqrt(np.arange(1, WIDTH + 1)) + 2
    X[:, 5] += 300
    return X.astype(np.float32)


def main() -> None:
    X = batch()
    # the package cannot be imported: it misses a module of its own
    functions = runpy.run_path(f"{find_spec('llm_microscope').submodule_search_locations[0]}/functions.py")
    by_svd, tensor = functions["calculate_anisotropy_torch"], torch.from_numpy(X)
    anisotropy(X)
    peak = measure.peak_mib()  # ours: the peer, not run yet, takes more
    ours, peers = [], []
    for _ in range(ROUNDS):
        ours.append(measure.timed(lambda: anisotropy(X)))
        peers.append(measure.timed(lambda: by_svd(tensor)))
    exact = by_svd(tensor.to(torch.float64))
    measure.report(
        "anisotropy", min(ours)[0], "torch.linalg.svd", min(peers)[0], abs(ours[0][1] / exact - 1), peak
    )


if __name__ == "__main__":
    main()
