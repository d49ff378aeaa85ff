"""When Snakemake takes a result for stale: where what it was made of is another now (lineage.smk), whatever dates say.

Some of its questions are answered otherwise than by itself, as no setting of it does. All are asked when it plans.
"""

from collections import defaultdict
from functools import partial

from snakemake.dag import DAG
from snakemake.io import _IOFile
from snakemake.persistence import NO_PARAMS_CHANGE, PersistenceBase

_is_newer, _params_changed = _IOFile.is_newer, PersistenceBase.params_changed


async def is_newer(file, time):
    """Whether an input may be another than the one that a result of `time` was made from.

    A date alone says nothing: a copy of the checkout has whatever dates it was given, and what was made again is as it
    was. Of a small file Snakemake knows the checksum, and will compare it.
    """
    small = file.rule.workflow.dag_settings.max_checksum_file_size
    return await _is_newer(file, time) and await file.is_checksum_eligible(small)


def params_changed(self, job, file=None):
    """What has changed in the params of files that are there. One that is not is made by whoever needs it.

    Snakemake records a job that failed as if it had made its files; taking back what made it fail would repeat the job,
    and all that was made of the files before.
    """
    there = [each for each in ([file] if file else job.output) if os.path.exists(each)]
    changes = (_params_changed(self, job, each) for each in there)
    return next(filter(None, changes), NO_PARAMS_CHANGE)


def of_what_is_there(changed):
    """The same of other changes."""
    return lambda self, job, file: os.path.exists(file) and changed(self, job, file)


def input_changed(self, job, file):
    """Whether a result has other inputs now: which those are is part of what it was made of, but for `ancient` ones."""
    return False


async def update_needrun(self, create_inventory=False):
    """Which jobs have to run. Of a temporary file that is made again for one job, nobody else hears if it is `ancient`.

    Snakemake would run all that reads it, unless it is there already.
    """
    depending = self.depending
    self.depending = defaultdict(partial(defaultdict, set))
    for job, readers in depending.items():
        heard = {reader: files for reader, files in readers.items() if not all(file.is_ancient for file in files)}
        self.depending[job].update(heard)
    try:
        await _update_needrun(self, create_inventory)
    finally:
        self.depending = depending


_IOFile.is_newer, PersistenceBase.params_changed = is_newer, params_changed
PersistenceBase._input_changed = input_changed
PersistenceBase._software_stack_changed = of_what_is_there(PersistenceBase._software_stack_changed)
_update_needrun, DAG.update_needrun = DAG.update_needrun, update_needrun
