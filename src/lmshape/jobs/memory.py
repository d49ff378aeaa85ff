"""Memory and temporary files that jobs ask for, in MB, from the sizes of what they read."""

from pathlib import Path


def table_mb(rows: int, width: int) -> float:
    """What packages take, and an embedding table, which any ablation holds twice in float32."""
    return 1500 + 2.2 * 4 * rows * width / 1e6


def texts_mb(counts: str | Path) -> float:
    """What scoring texts takes more: blocks of vectors and scores, and a file of token counts.

    Counts are in memory up to five times while texts are put in order, the file mapped among them.
    """
    return 850 + 5 * Path(counts).stat().st_size / 1e6


def dataset_mb(text: float) -> float:
    """Making a data set of `text` MB of text: we hold it twice, and mteb, where it comes from there, as often."""
    return 2000 + 4 * text


def counting_mb(text: float) -> float:
    """What a job takes that counts the tokens of a data set of `text` MB; of English it was five times that."""
    return 2000 + 7 * text


def drawn_mb(rows: int, width: int) -> int:
    """On disk, not in memory: what is drawn of a random table, two bytes a number."""
    return round(2 * rows * width / 1e6)


def distances_mb(vectors: int) -> float:
    """The distances of all pairs of so many vectors, in float64: what `lmshape.numerics.neighbors` keeps of them."""
    return min(8 * vectors**2, 2**29) / 1e6
