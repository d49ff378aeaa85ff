"""How much text mteb's tasks have, for the memory and time of jobs that are planned.

A module of its own, which no script imports: what plans a job is no part of what it computes.
"""

import importlib.util
import json

from lmshape.inputs import packages


def characters(task: str, split: str | None = None) -> int:
    """How many characters a task's data set has by the statistics that mteb ships; 0 where they do not say.

    `task` and `split` are those of `lmshape.inputs.datasets.export_mteb`; without a split it is test, or the largest.
    mteb is not imported, and need not be there.
    """
    name, _, subset = task.partition(":")
    sizes = {"": 0}
    there = importlib.util.find_spec("mteb")
    for file in packages.folder("mteb").glob(f"descriptive_stats/*/{name}.json") if there else ():
        for of, found in json.loads(file.read_text()).items():
            found = (found.get("hf_subset_descriptive_stats") or {}).get(subset, found)
            sizes[of] = found.get("number_of_characters", 0)
    return sizes.get(split or "test", 0 if split else max(sizes.values()))
