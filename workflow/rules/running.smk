"""What happens around the jobs of a run: what is said first, the scheduler's rounds, and the end by a signal."""

from snakemake import __version__
from snakemake.logging import logger

from lmshape.jobs.ending import Ending
from lmshape.jobs.scheduler import look_when_needed

# Not in the jobs of a cluster, which read this file as well.
ENDING = Ending(workflow, logger) if workflow.is_main_process else None


onstart:
    ENDING.begin()
    if said := look_when_needed(workflow.scheduler, __version__):
        logger.warning(said)
    for _, path in grid.own_models(GRID.models, SUITES):
        for said in local_models.passed_over(path):
            logger.warning(said)
