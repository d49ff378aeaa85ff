"""Intrinsic dimension of a whole model's layers, against the same vectors one set of positions after another.

31 layers of 576 columns, in four batches of 4,096 vectors for each of two sets of positions, or as many layers as the
first argument says. The peer searches every batch of either set alone, and takes the product of every pair twice, as
a loop over `estimate` of any package would. Both have the threads of OMP_NUM_THREADS; ours gives each a layer.
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import measure
import numpy as np

from lmshape.intrinsic_dimension import estimate, rows
from lmshape.models.hidden_states import HiddenStates
from lmshape.numerics import neighbors

LAYERS, BATCHES, BATCH, WIDTH = 31, 4, 4096, 576
TOKENS = BATCH + BATCH // 100  # of a batch: one in 128 is the first of its sequence
ESTIMATORS = ("twonn", "mada", "mom")


def write(folder: Path, layers: int) -> HiddenStates:
    """Vectors as hidden states are: a decaying spectrum around a mean, an outlier dimension, and near twins."""
    rng = np.random.default_rng(0)
    shape = (layers, BATCHES * TOKENS, WIDTH)
    vectors = np.lib.format.open_memmap(folder / "model.npy", "w+", np.float32, shape)
    for layer in vectors:
        layer[:] = rng.standard_normal(layer.shape, np.float32) / np.sqrt(np.arange(1, WIDTH + 1)) + 2
        layer[:, 5] += 300
        layer[1::20] = layer[::20][: len(layer[1::20])] + np.float32(1e-5)
    np.save(folder / "positions.npy", np.arange(shape[1]) % 128)
    about = {
        "name": "benchmark",
        "dtype": "float32",
        "seed": 0,
        "batch_size": BATCH,
        "tokens": [TOKENS] * BATCHES,
        "texts": None,
        "identity": {},
        "stacks": {"model": layers - 1},
    }
    (folder / "hidden_states.json").write_text(json.dumps(about))
    return HiddenStates(folder)


def one_after_another(states: HiddenStates) -> list[float]:
    """The means of every layer, positions and estimator, in the order of `rows`."""
    found = []
    with mock.patch.object(neighbors, "KEPT", 0), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there are near twins indeed
        for cell in states.cells():
            each = [estimate(batch, ESTIMATORS) for batch in cell.batches()]
            found += [float(np.mean([batch[name] for batch in each])) for name in ESTIMATORS]
    return found


def main(layers: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        states = write(Path(scratch), layers)
        seconds, found = measure.timed(lambda: rows(states, ESTIMATORS, [0.9]))
        peak = measure.peak_mib()
        peer_seconds, expected = measure.timed(lambda: one_after_another(states))
    difference = max(abs(row["mean"] / mean - 1) for row, mean in zip(found, expected, strict=True))
    measure.report(
        "whole_model", seconds, "every set of positions alone", peer_seconds, difference, peak, layers=layers
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else LAYERS)
