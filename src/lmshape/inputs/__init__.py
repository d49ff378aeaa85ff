"""What a study reads: models, texts and data sets from packages, files and the hub; embedding tables and tokens."""
