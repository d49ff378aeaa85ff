"""Read the study's corpus, clean it, and part what may be trained on from what is held out."""

from lmshape.jobs import job

job.start(snakemake)

from pathlib import Path

from lmshape.files import writing
from lmshape.inputs import text

articles = job.function(snakemake.params.function)(*map(Path, snakemake.input))
for output, part in zip(snakemake.output, text.split(articles, snakemake.params.held_out), strict=True):
    with writing(output) as path:
        text.write(part, path)
