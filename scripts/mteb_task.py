"""Score one embedding table on a task of mteb."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import mteb_tasks, results
from lmshape.inputs import checkpoints

names, settings, table = snakemake.wildcards, snakemake.params, snakemake.input.table
task, facts = mteb_tasks.load(names.task, snakemake.input.data), checkpoints.information(table)

from lmshape import mteb_bridge
from lmshape.inputs import tokens

model = mteb_bridge.TableModel(
    [checkpoints.load(table)],
    tokens.load_tokenizer(snakemake.input.tokenizer),
    f"lmshape/{names.suite}-{names.size}-{names.checkpoint}-{names.side}",
    facts.model_revision,
    settings.precision,
    settings.max_length,
)
columns = settings.columns | {"side": names.side, "tokenizer": settings.tokenizer, **facts.columns}
columns |= {"task": names.task, "precision": settings.precision}
results.save_rows(mteb_tasks.rows(model, task), columns, snakemake.output[0])
