"""Refuse a model whose own tokenizer numbers tokens otherwise than the one that its texts are read with."""

from lmshape.jobs import job

job.start(snakemake)

import json

from lmshape.files import writing
from lmshape.inputs import tokens

files, model = snakemake.input, "/".join(snakemake.wildcards)
equal = tokens.compare(files.own, files.used, model, snakemake.params.tokenizer)
with writing(snakemake.output[0]) as temporary:
    temporary.write_text(json.dumps({"equal_ids": equal}) + "\n")
