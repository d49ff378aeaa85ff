"""What every result was made of: one more param of every rule with a script. Included after all other rules.

A rule whose script calls a function of lmshape by name has that name as its param `function`, or several as
`functions`: they count as code of the rule. So does, as its param `scripts`, each script that makes one of its inputs
which are `ancient`. Labels are no params, nor are resources.
"""

from inspect import signature

from snakemake.common import overwrite_function_params
from snakemake.exceptions import WorkflowError
from snakemake.jobs import Job
from snakemake.settings.types import DeploymentMethod

from lmshape.errors import LmshapeError
from lmshape.jobs import fingerprint
from lmshape.jobs.contents import Contents
from lmshape.jobs.lineage import made_of

CODE = fingerprint.Code()
CONTENTS = Contents(Path(".snakemake/contents.json"))
IN_CONDA = workflow.deployment_settings and DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method


@cache
def code_of(script, functions):
    return CODE.of(ROOT / "scripts" / script, *functions)


@cache
def reads_wildcards(script):
    return fingerprint.reads_wildcards(ROOT / "scripts" / script)


@cache
def environment(rule):
    return CONTENTS.digest(ROOT / "envs" / Path(rule.conda_env).name)


def settings_of(job, params):
    """What a job's script is given: params, wildcards where it reads them, and its environment if that is its own."""
    settings = dict(params.items())
    if reads_wildcards(Path(job.rule.script).name):
        settings["wildcards"] = sorted(job.wildcards_dict.items())
    if IN_CONDA:
        settings["environment"] = environment(job.rule)
    return settings


@cache
def maker_of(path):
    """The job that makes a file, of a rule that this run does not look at (`--allowed-rules`); None for other files."""
    made_by = next((each for each in workflow.rules if any(output.match(path) for output in each.output)), None)
    return made_by and Job(made_by, workflow.dag, made_by.get_wildcards(path), targetfile=path)


def inputs_of(job):
    """What each of a job's inputs was made of; of files that no job makes, their names and what they hold.

    An input that is `ancient` must only be there.
    """
    makers = {path: maker for maker, paths in job.dag.dependencies.get(job, {}).items() for path in paths}
    for path in job.input:
        maker = makers.get(path) or maker_of(str(path))
        if maker is None:
            yield f"{Path(path).name} {CONTENTS.digest(path)}"
        elif not path.is_ancient:
            yield f"{maker.params.made_of} {list(maker.output).index(path)}"


def with_lineage(rule):
    """Expands the params of a rule's jobs as the rule does, and adds `made_of`.

    A process that runs a job on a cluster does without, unless it looks for what the job makes in the cache.
    """
    expand, known = rule.expand_params, {}

    def lineage(job, params):
        functions = (*params.get("functions", ()), *filter(None, [params.get("function")]))
        scripts = (Path(rule.script).name, *params.get("scripts", ()))
        code = " ".join(code_of(script, functions) for script in scripts)
        return code, made_of(code, settings_of(job, params), inputs_of(job))

    def expand_params(wildcards, input, output, job, omit_callable=False):
        params, recorded = expand(wildcards, input, output, job, omit_callable)
        if workflow.is_main_process or SHARED:
            key = tuple(sorted(wildcards.items()))
            try:
                code, made = known[key] = known.get(key) or lineage(job, params)
            except LmshapeError as error:
                raise WorkflowError(str(error), rule=rule) from None
            params.append(made)
            params._add_name("made_of")
            recorded += [f"made of {made}", f"code {code}"]  # as they are shown where they have changed
        return params, recorded

    return expand_params


for each in workflow.rules:
    if each.script:
        each.expand_params = with_lineage(each)
    for function in filter(callable, (*each.input, *each.params)):  # Snakemake would look three times for every job
        overwrite_function_params(function, signature(function).parameters)
