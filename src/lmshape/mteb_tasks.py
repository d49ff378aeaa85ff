"""Any task of mteb on texts as a measure of an embedding table: similarity, classification, clustering, ...

A task's data is fetched once into a folder of its own and read from there without a network. In the cache that
`datasets` shares between everything, it would take a data set's latest copy for the revision that mteb pins.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmshape.errors import reported_as
from lmshape.files import writing
from lmshape.inputs import datasets
from lmshape.numerics.ranking import RetrievalError

if TYPE_CHECKING:
    from lmshape.mteb_bridge import TableModel


def fetch(name: str, folder: str | Path) -> None:
    """Keep the data of mteb's task `name` in a folder (downloads it). To be called once, before mteb is imported."""
    with writing(folder) as temporary:
        os.environ["HF_DATASETS_CACHE"] = str(temporary)
        datasets.load_data(datasets.mteb_task(name))


def load(name: str, folder: str | Path) -> Any:
    """mteb's task `name` with the data that `fetch` kept. To be called once, before mteb is imported."""
    os.environ |= {"HF_DATASETS_CACHE": str(Path(folder).resolve()), "HF_HUB_OFFLINE": "1"}
    task = datasets.mteb_task(name)
    datasets.load_data(task)
    return task


def rows(model: "TableModel", task: Any) -> list[dict[str, Any]]:
    """One row for each split and subset of a task: its main score, or None and the reason."""
    import mteb  # only now, so that `fetch` and `load` can say where data lies

    facts = task.metadata
    about = {
        "task_type": facts.type,
        "metric": facts.main_score,
        "dataset_revision": facts.dataset["revision"],
    }
    nothing = about | dict.fromkeys(("split", "subset", "value"))
    if not all(np.isfinite(panel).all() for panel in model.panels):
        return [nothing | {"reason": "the table holds values that are not finite"}]
    try:
        with reported_as(datasets.DatasetError, f"mteb task {facts.name} cannot be scored"):
            found = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False)
    except RetrievalError as error:
        return [nothing | {"reason": str(error)}]
    scores = found.task_results[0].scores
    return [about | score(split, part) for split, parts in scores.items() for part in parts]


def score(split: str, part: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of one of mteb's scores, which is NaN where nothing could be correlated."""
    value = float(part["main_score"])
    known = math.isfinite(value)
    found = {"split": split, "subset": part["hf_subset"], "value": value if known else None}
    return found | {"reason": None if known else f"mteb's score is {value}"}
