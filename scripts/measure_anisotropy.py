"""Measure the anisotropy of one model's hidden states at every layer."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import anisotropy, results
from lmshape.models.hidden_states import HiddenStates

rows = anisotropy.rows(HiddenStates(snakemake.input[0]))
results.save_rows(rows, snakemake.params.columns, snakemake.output[0])
