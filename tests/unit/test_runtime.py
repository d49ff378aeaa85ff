"""The minutes that jobs ask for."""

from lmshape import retrieval
from lmshape.jobs import runtime


def test_counts_are_read_once_for_each_pass_of_queries():
    def minutes(queries: int) -> float:
        return runtime.scoring_minutes(documents=0, queries=queries, counts=1000, width=100)

    assert runtime.SEARCHED == retrieval.SEARCHED
    assert minutes(1) == minutes(4096) > 0
    assert minutes(3 * 4096) == 3 * minutes(1) and minutes(3 * 4096 + 1) == 4 * minutes(1)
