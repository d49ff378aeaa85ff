"""The functions that scripts of the workflow call by names that their rules give them."""

from typing import get_args

from lmshape.report.figure_list import FIGURES
from lmshape.study import config
from lmshape.study.ablation_names import KINDS
from lmshape.study.estimator_settings import NEIGHBORS


def _sources(annotation: object) -> list[type]:
    """The classes of a union of sections that are told apart by `source`."""
    return list(get_args(get_args(annotation)[0]))


FUNCTIONS = {
    "figure": [f"report.figures.{name}" for name in FIGURES],
    "retrieve": [f"numerics.ablation.{name}" for name in KINDS],
    "estimate_intrinsic_dimension": [f"intrinsic_dimension.{name}" for name in NEIGHBORS],
    "summarize": ["summaries.bells", "summaries.training_shapes"],
    "dataset": [source.made_by for source in _sources(config.RetrievalDataset)],
    "text": [source.read_by for source in _sources(config.Corpus)],
}
