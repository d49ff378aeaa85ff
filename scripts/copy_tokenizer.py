"""Take the tokenizer out of a model folder."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.files import writing
from lmshape.inputs import tokens

with writing(snakemake.output[0]) as folder:
    tokens.load_tokenizer(snakemake.input[0]).save_pretrained(folder)
