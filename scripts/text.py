"""Read the study's corpus, clean it, and part what may be trained on from what is held out."""

from lmshape import job

job.start(snakemake)

from pathlib import Path

from lmshape import text
from lmshape.files import writing

corpus, held_out = snakemake.params.text["corpus"], snakemake.params.text["held_out"]
articles = text.articles(corpus, Path(snakemake.output.held_out).parent)
for output, part in zip(snakemake.output, text.split(articles, held_out), strict=True):
    with writing(output) as path:
        text.write(part, path)
