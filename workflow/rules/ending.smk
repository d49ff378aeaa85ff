"""How a run ends: with what there is, and with loud words where that is nothing.

A run that went on after failures (--keep-going) starts Snakemake once more, for the rules below, which do without what
is lost and name it. It fails all the same, and the next run makes the rest. Included after all that gathers.
"""

import shlex
import subprocess
import tempfile
from itertools import chain

from snakemake.executors.local import common_settings

GATHERING = lost.Gathering(
    partly=["suite_table", "table", "benchmarks", "write_report"],
    wholly=["study", "summarize", "compare_with_published", "figure"],
)
NOT_GATHERING = {"--force", "--no-hooks", "--ignore-incomplete"}  # of the options that Snakemake gives its jobs


def gather(files, without):
    """Make tables, figures and report of all but what is lost, on this machine; returns what is lost in the end."""
    options = shlex.split(workflow.spawned_job_args_factory.general_args(common_settings))
    command = [*shlex.split(sys.executable), "-m", "snakemake", *files, "--snakefile", workflow.main_snakefile]
    command += [option for option in options if option not in NOT_GATHERING]
    command += ["--allowed-rules", *GATHERING.rules, "--keep-going", "--rerun-incomplete"]
    command += ["--cores", str(workflow.resource_settings.cores if workflow.local_exec else 2)]
    command += ["--workflow-profile", "none", "--quiet", "all"]
    with tempfile.TemporaryDirectory() as folder:
        told = f"{folder}/lost.json"
        lost.write(without, told)
        variables = {**os.environ, lost.VARIABLE: told, "SNAKEMAKE_PROFILE": "none"}
        subprocess.run(command, cwd=workflow.workdir_init, env=variables)
        return lost.read(told)


def made(jobs):
    """What these jobs are to make: results that tables are made of, and what is gathered of them."""
    paths = {in_results(f"<results>/{path}") for path in chain(*chain(*map(dict.values, TABLES.values())))}
    results = {path for job in jobs for path in map(str, job.output) if path in paths}
    return results, {str(path) for job in jobs if job.rule.name in GATHERING.rules for path in job.output} - results


def tell_of_nothing():
    """Say loudly which of the tables of this run have no value at all."""
    import polars as pl

    from lmshape.report.missing import valueless

    names = {job.wildcards.table for job in workflow.dag.jobs if job.rule.name == "table"}
    files = {name: Path(in_results(f"<results>/tables/{name}.parquet")) for name in names}
    found = {name: pl.read_parquet(file) for name, file in files.items() if file.exists()}
    for name, said in valueless(found).items():
        logger.error(f"NOTHING WAS MEASURED for table {name}: {said}.")


onerror:
    if workflow.execution_settings.keep_going and not ENDING.signal:
        before = lost.known()
        found, files = lost.find(workflow, GATHERING, ENDING.begun)
        everything = before | found
        if files and len(everything) > len(before):
            everything = gather(files, everything)
        if before:  # this run gathers, for one that will tell
            lost.write(everything, os.environ[lost.VARIABLE])
        elif not ENDING.signal:  # still
            results, gathered = made(workflow.dag.jobs)
            logger.error(lost.summary(everything, results, gathered))
            tell_of_nothing()


onsuccess:
    if not lost.known():
        tell_of_nothing()
