"""Minutes that jobs ask for, from the sizes of what they read: three times what one core took."""


def dataset_minutes(text: float) -> float:
    """Making a data set of `text` MB, also of one that arrives at half a megabyte a second."""
    return 60 + text / 30


def counting_minutes(text: float) -> float:
    """Counting the tokens of a data set of `text` MB; the core did 90 of English a minute."""
    return 60 + text / 30


def scoring_minutes(documents: int, queries: int, counts: float, width: int) -> float:
    """Scoring a table of `width` on so many texts, whose counts are a file of `counts` MB.

    By column of the table, the core did 2e12 pairs of query and document a minute, and summed the rows of 250 MB of
    counts. What does not depend on the width is as 200 columns more.
    """
    return (width + 200) * (documents * queries / 7e11 + counts / 80_000)
