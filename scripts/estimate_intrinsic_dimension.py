"""Estimate the intrinsic dimension of one model's hidden states at every layer."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import intrinsic_dimension, results
from lmshape.models.hidden_states import HiddenStates

settings = snakemake.params.settings
rows = intrinsic_dimension.rows(
    HiddenStates(snakemake.input[0]),
    settings["estimators"],
    settings["fractions"],
    settings["neighbors"],
)
results.save_rows(rows, snakemake.params.columns, snakemake.output[0])
