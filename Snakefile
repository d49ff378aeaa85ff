"""lmshape: how the embeddings of language models take shape with size, across layers and over training.

The study is `config.yaml`, or the one that `--configfile` names. Everything it makes is in `results/<study>/`.
"""

import os
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

from lmshape.errors import ConfigError
from lmshape.jobs.environment import require_checkout, require_numbers
from lmshape.study import grid
from lmshape.study.config import load_study, require_files
from lmshape.study.suites import load_suites

min_version("9.27")

ROOT = Path(workflow.basedir)
try:
    require_checkout(ROOT)
    require_numbers(os.environ)
    SUITES = load_suites(ROOT / "suites")
    STUDY = load_study(dict(workflow.config_settings.config), ROOT / "config.yaml", workflow.overwrite_configfiles)
    require_files(STUDY)
    GRID = grid.build(STUDY, SUITES)
except ConfigError as error:
    raise WorkflowError(str(error)) from None


pathvars:
    results=f"results/{STUDY.study}",
    logs=f"results/{STUDY.study}/logs",
    benchmarks=f"results/{STUDY.study}/benchmarks",


include: "workflow/rules/running.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/study.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/text.smk"
include: "workflow/rules/tokenizers.smk"
include: "workflow/rules/tokenizer_comparison.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/embeddings.smk"
include: "workflow/rules/random_tables.smk"
include: "workflow/rules/retrieval.smk"
include: "workflow/rules/comparisons.smk"
include: "workflow/rules/mteb_tasks.smk"
include: "workflow/rules/word_similarity.smk"
include: "workflow/rules/hidden_states.smk"
include: "workflow/rules/summaries.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/ending.smk"
include: "workflow/rules/sharing.smk"
include: "workflow/rules/lineage.smk"
include: "workflow/rules/staleness.smk"


rule all:
    input:
        rules.report.input,
        tables(*TABLES),
    default_target: True
