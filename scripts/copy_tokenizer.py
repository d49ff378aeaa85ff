"""Take the tokenizer out of a model folder."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.files import writing
from lmshape.inputs.tokenizer_loading import copy_tokenizer

with writing(snakemake.output[0]) as folder:
    copy_tokenizer(snakemake.params.path or snakemake.input[0], folder)
