"""How the embeddings of language models take shape: across sizes, layers and training."""
