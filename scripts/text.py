"""Read the study's corpus, clean it, and part what may be trained on from what is held out."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape.files import writing
from lmshape.inputs import text

corpus, held_out = snakemake.params.text["corpus"], snakemake.params.text["held_out"]
articles = text.articles(corpus["source"], *snakemake.input)
for output, part in zip(snakemake.output, text.split(articles, held_out), strict=True):
    with writing(output) as path:
        text.write(part, path)
