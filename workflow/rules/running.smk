"""What happens around the jobs of a run: the scheduler's rounds."""

from snakemake import __version__
from snakemake.logging import logger

from lmshape.jobs.scheduler import look_when_needed


onstart:
    if said := look_when_needed(workflow.scheduler, __version__):
        logger.warning(said)
