"""What tells one checkpoint of a model from another."""

import logging
from pathlib import Path

from lmshape.inputs import checkpoints, revisions
from lmshape.inputs.tensor_files import CheckpointError

log = logging.getLogger(__name__)


def identity(folder: Path) -> dict[str, str | None]:
    """Columns of what is measured on a model folder: `model_revision`, and `table_sha256` of its input embeddings.

    The hash is the one that `checkpoints.Embedding` gives, so it equals that of the table when it is scored: of
    the checkpoint's own bytes, or, for a quantised GGUF file, of the float32 values that they stand for. It is read
    without loading the model. Any model can be measured, also one of a family whose embeddings are not known by
    name: its hash is null, which the log says.
    """
    try:
        table = checkpoints.embedding(folder).sha256()
    except CheckpointError as error:
        log.warning("no table_sha256, so a checkpoint that repeats another would not be noticed: %s", error)
        table = None
    return {"table_sha256": table, "model_revision": revisions.read(folder)}
