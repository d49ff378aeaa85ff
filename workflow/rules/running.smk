"""What happens around the jobs of a run: their environment, what is said first, rounds, second attempts, a signal."""

import os
import sys

from snakemake import __version__
from snakemake.logging import logger

from lmshape.jobs import environment
from lmshape.jobs.attempts import repeat_no_refusal
from lmshape.jobs.ending import Ending
from lmshape.jobs.scheduler import look_when_needed

environment.settle(os.environ)
sys.executable = environment.quoted(sys.executable)

# Not in the jobs of a cluster, which read this file as well.
ENDING = Ending(workflow, logger) if workflow.is_main_process else None
FIRST_WORDS = []  # functions that yield what a user should know before anything runs


def shows_logs():
    """Whether the logs of failed jobs are shown where the run is followed: by --show-failed-logs or --logger rich."""
    manager = workflow.logger_manager
    rich = any("rich" in type(handler).__module__ for handler in manager.plugin_handlers)
    return rich or manager.settings.show_failed_logs


onstart:
    ENDING.begin()
    if said := look_when_needed(workflow.scheduler, __version__):
        logger.warning(said)
    repeat_no_refusal(workflow.scheduler, ENDING.begun, logger.debug if shows_logs() else logger.error)
    for words in FIRST_WORDS:
        for said in words():
            logger.warning(said)
