"""Run one model over the held-out text and keep a sample of its token vectors at every layer."""

from lmshape.jobs import job

device = job.start(snakemake)

from pathlib import Path

import numpy as np
import torch

from lmshape.inputs import model_files
from lmshape.models import hidden_states, sampling
from lmshape.models.identity import identity

torch.set_num_threads(snakemake.threads)
settings, text = snakemake.params.settings, np.load(snakemake.input.token_ids)
folder = Path(snakemake.input.model) / snakemake.params.within
frame = (text["before"], text["after"])
length, tokens = settings["sequence_length"], settings["tokens"]
pieces = sampling.cut(
    text["ids"], text["bounds"], length, tokens, settings["seed"], frame, settings["batches"]
)
hidden_states.collect(
    model_files.loaded(folder),
    pieces.sequences,
    snakemake.output[0],
    name="/".join(snakemake.wildcards),
    batches=pieces.batches,
    texts=len(np.unique(pieces.texts)),
    batch_size=settings["batch_size"],
    dtype=settings["dtype"],
    device=device,
    seed=settings["seed"],
    identity=identity(folder),
)
