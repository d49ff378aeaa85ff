"""Minutes that jobs ask for, from the sizes of what they read: three times what one core took."""

from math import ceil

# queries to a pass over the counts, as in `lmshape.retrieval`, which takes numpy to import
SEARCHED = 4096


def dataset_minutes(text: float) -> float:
    """Making a data set of `text` MB, also of one that arrives at half a megabyte a second."""
    return 60 + text / 30


def counting_minutes(text: float) -> float:
    """Counting the tokens of a data set of `text` MB; the core did 90 of English a minute."""
    return 60 + text / 30


def retrieve_minutes(documents: int, queries: int, counts: float, width: int) -> float:
    """A job of rule `retrieve`: what begins it and ends it, and `scoring_minutes`."""
    return 10 + scoring_minutes(documents, queries, counts, width)


def scoring_minutes(documents: int, queries: int, counts: float, width: int) -> float:
    """Scoring a table of `width` on so many documents and judged queries, whose counts are a file of `counts` MB.

    In a minute the core took 2e12 pairs of query and document through one column of a table, or summed that column
    by 1,200 GB of counts, which it does in each pass. What does not depend on the width is as 200 columns more.
    """
    passes = ceil(queries / SEARCHED)
    return (width + 200) * (documents * queries / 7e11 + passes * counts / 400_000)
