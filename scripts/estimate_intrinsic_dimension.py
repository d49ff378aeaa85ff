"""Estimate the intrinsic dimension of one model's hidden states at every layer."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import intrinsic_dimension, results
from lmshape.models.hidden_states import HiddenStates

params = snakemake.params
estimators = {name: job.function(f"intrinsic_dimension.{name}") for name in params.neighbors}
states = HiddenStates(snakemake.input[0])
rows = intrinsic_dimension.rows_of(states, estimators, params.fractions, params.neighbors)
results.save_rows(rows, params.columns, snakemake.output[0])
