"""Train the tokenizer of a suite on the text that its models are trained on."""

from lmshape.jobs import job

job.start(snakemake)

from pathlib import Path

from lmshape.files import writing
from lmshape.inputs import text
from lmshape.models import pretraining

articles = text.read(Path(snakemake.input[0]))
tokenizer = pretraining.train_tokenizer(
    snakemake.params.model_type, [article.text for article in articles], snakemake.params.vocabulary
)
with writing(snakemake.output[0]) as folder:
    tokenizer.save_pretrained(folder)
