"""What several stages share: resources, where models come from, and the columns that name a combination."""

import math
import os
from functools import cache

from lmshape.inputs.packages import versions
from lmshape.jobs import lost
from lmshape.jobs.memory import table_mb
from lmshape.study.grid import Model


wildcard_constraints:
    dataset="[^/]+",
    task="[^/]+",
    tokenizer="[^/]+",
    suite="[^/]+",
    size="[^/]+",
    checkpoint="main|step[0-9]+",
    side="input|output",
    ablation="[^/]+",
    seed="none|[0-9]+",

# With --cache and a folder in SNAKEMAKE_OUTPUT_CACHE, workflows share the outputs of rules marked `cache: SHARED`.
# An output is found there by what it was made of, whatever it is called: scripts of such rules read no wildcards.
SHARED = workflow.enable_cache and "SNAKEMAKE_OUTPUT_CACHE" in os.environ


# What is gathered without, where a run that failed gathers the rest: see running.smk.
LOST = lost.known()


def there(paths):
    """Those of some results that were not lost."""
    return [path for path in paths if in_results(path) not in LOST]


def losses(paths):
    """The reasons and names of those that were lost, with the path of each."""
    return [{"path": path, **LOST[path]} for path in map(in_results, paths) if path in LOST]


def in_results(path):
    return path.replace("<results>", f"results/{STUDY.study}")


def more(amount):
    """A resource that grows with every attempt at a job."""
    return lambda wildcards, attempt: amount * attempt


def suite_of(wildcards):
    return SUITES[wildcards.suite]


def size_of(wildcards):
    return SUITES[wildcards.suite].sizes[wildcards.size]


def model_of(wildcards):
    return Model(wildcards.suite, wildcards.size, wildcards.checkpoint)


def model_columns(wildcards):
    """The columns that say which model a row is about; what describes the model joins them in `suite_table`."""
    return {"suite": wildcards.suite, "size": wildcards.size, "checkpoint": wildcards.checkpoint}


def from_source(source):
    """A wildcard pattern of the suites that come from `source`: package, pretraining, local or hub."""
    names = [name for name, suite in SUITES.items() if suite.source == source]
    return "|".join(map(re.escape, names)) or "(?!)"


def hub_source(model):
    """(repository, revision) of a model on the hub."""
    suite = SUITES[model.suite]
    hub = suite.sizes[model.size].hub
    return (hub, "main") if model.step is None else suite.checkpoints_of(model.size).source(hub, model.step)


def model_folder(wildcards):
    """The output that holds a model's folder: a suite trained here has all checkpoints of a size in one."""
    trained = suite_of(wildcards).source == "pretraining"
    return f"<results>/models/{wildcards.suite}/{wildcards.size}" + ("" if trained else f"/{wildcards.checkpoint}")


def within(wildcards):
    """Where in `model_folder` the checkpoint is."""
    return wildcards.checkpoint if suite_of(wildcards).source == "pretraining" else "."


def table_shape(wildcards):
    """(rows, width) of a job's embedding table; of the larger one where the job is about both sides."""
    size, side = size_of(wildcards), wildcards.get("side")
    return size.shape(side) if side else max(map(size.shape, ("input", "output")), key=math.prod)


def table_memory(wildcards, attempt):
    """MB for a job with an embedding table, growing with every attempt."""
    return int(table_mb(*table_shape(wildcards)) * attempt)


def model_parameters(wildcards):
    """Parameters of a model, in millions: what memory and time grow with."""
    return size_of(wildcards).parameters / 1e6
