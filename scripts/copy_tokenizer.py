"""Take the tokenizer out of a model folder."""

from lmshape import job

job.start(snakemake)

from lmshape import tokens
from lmshape.files import writing

with writing(snakemake.output[0]) as folder:
    tokens.load_tokenizer(snakemake.input[0]).save_pretrained(folder)
