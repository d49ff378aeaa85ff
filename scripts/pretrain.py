"""Train one size of a suite, keeping its checkpoints and the loss of every step."""

from lmshape.jobs import job

device = job.start(snakemake)

import dataclasses
from pathlib import Path

import polars as pl
import torch

from lmshape.files import writing
from lmshape.inputs import text, tokens
from lmshape.models import pretraining, sampling

torch.set_num_threads(snakemake.threads)
settings, size = snakemake.params.pretraining, snakemake.params.size
tokenizer = tokens.load_tokenizer(snakemake.input.tokenizer)
articles = [article.text for article in text.read(Path(snakemake.input.text))]
ids, bounds = tokens.token_ids(articles, tokenizer, special=False)
sequences, _ = sampling.pieces(ids, bounds, settings["sequence_length"], tokens.frame(tokenizer))
torch.manual_seed(settings["seed"])
model = pretraining.build(settings["model_type"], size, settings["sequence_length"], tokenizer)
with writing(snakemake.output.models) as folder, writing(snakemake.output.losses) as losses:
    history = pretraining.train(model, tokenizer, sequences, snakemake.params.steps, settings, folder, device)
    rows = [{**snakemake.params.names, **dataclasses.asdict(loss)} for loss in history]
    pl.DataFrame(rows).write_parquet(losses)
