"""Tokenize the held-out text once for every tokenizer; beside it, the special tokens that frame a text."""

from lmshape.jobs import job

job.start(snakemake)

from pathlib import Path

import numpy as np

from lmshape.files import writing
from lmshape.inputs import text, tokens

articles = text.read(Path(snakemake.input.text))
tokenizer = tokens.load_tokenizer(snakemake.input.tokenizer)
before, after = tokens.frame(tokenizer)
ids, bounds = tokens.token_ids([article.text for article in articles], tokenizer, special=False)
tokens.require_known(np.bincount(ids), tokenizer, f"{snakemake.input.tokenizer}, on the study's text")
with writing(snakemake.output[0]) as path, path.open("wb") as file:
    np.savez_compressed(file, ids=ids, bounds=bounds, before=before, after=after)
