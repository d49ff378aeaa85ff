"""What of a study gives it a figure, beside the table that the figure reads.

Light on purpose, as `lmshape.report.figure_list` is: the workflow asks while it is parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmshape.study.grid import over_training

if TYPE_CHECKING:
    from lmshape.study.grid import Grid  # how jobs are planned makes no report stale


@dataclass(frozen=True)
class Need:
    """Keys of a study without which a figure would be empty, and whether a study that has the table meets them."""

    keys: str
    met: Callable[[Grid], bool] = lambda grid: True


def _originals(grid: Grid) -> bool:
    return any(grid.originals(suite) for suite in grid.suite_names)


def _retrieval_over_training(grid: Grid) -> bool:
    return over_training(c.model for c in grid.retrieval if c.ablation == "original")


def _states_over_training(grid: Grid) -> bool:
    return over_training(grid.hidden_states)


def _twonn(grid: Grid) -> bool:
    return "twonn" in grid.study.intrinsic_dimension.estimators


def _sizes(grid: Grid) -> bool:
    return len({grid.suites[model.suite].sizes[model.size].parameters for model in grid.models}) > 1


RETRIEVAL = Need("retrieval.datasets")
ORIGINALS = Need("retrieval.ablations with original", _originals)
COMPARISONS = Need("retrieval.models with several sizes of a suite, retrieval.ablations with original")
RETRIEVAL_OVER_TRAINING = Need(
    "retrieval.models with checkpoints (all, or two steps or more) of a suite that has them, "
    "retrieval.checkpoint_ablations with original",
    _retrieval_over_training,
)
RANDOM_BASELINE = Need("retrieval.random_baseline")
WORD_SIMILARITY = Need("word_similarity")
HIDDEN_STATES = Need("hidden_states")
TWONN = Need("hidden_states, intrinsic_dimension.estimators with twonn", _twonn)
STATES_OVER_TRAINING = Need(
    "hidden_states.models with checkpoints (all, or two steps or more) of a suite that has them",
    _states_over_training,
)
TWONN_OVER_TRAINING = Need(
    f"{STATES_OVER_TRAINING.keys}, intrinsic_dimension.estimators with twonn",
    lambda grid: _states_over_training(grid) and _twonn(grid),
)
PRETRAINING = Need("models of a suite that the workflow trains (pretraining in its file)")
SIZES = Need("models of several sizes", _sizes)
