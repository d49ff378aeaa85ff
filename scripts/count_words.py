"""Count the tokens of word pairs once for every tokenizer."""

from lmshape.jobs import job

job.start(snakemake)

from lmshape import word_similarity

pairs = word_similarity.read(word_similarity.find(snakemake.params.pairs))
word_similarity.save(word_similarity.count(pairs, snakemake.input.tokenizer), snakemake.output[0])
