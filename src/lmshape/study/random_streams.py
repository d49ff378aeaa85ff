"""Which random tables a study draws, and what is known of them before they are drawn.

A stream is what one seed draws for one shape of matrix. All that takes columns of it reads them from one file, which
has as many of its first columns as the study needs.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lmshape.study.ablation_names import RANDOM_WIDTH, Ablation
from lmshape.study.grid import Combination, Grid, shape


class Stream(NamedTuple):
    """The numbers that `seed` draws for a matrix of (rows, length), row by row."""

    rows: int
    length: int
    seed: str

    def __str__(self) -> str:
        """Its file below `results/<study>/random_tables/`, without the ending."""
        return f"{self.rows}/{self.length}/{self.seed}"


def drawn(grid: Grid, combination: Combination) -> Stream | None:
    """The stream whose columns a combination is scored with; None where it draws none."""
    length = Ablation.parse(combination.ablation).length
    return length and Stream(shape(combination, grid.suites)[0], length, combination.seed)


def baseline(grid: Grid, combination: Combination) -> str | None:
    """The random baseline that has scored the same table, as a path below `random_baseline/`; None if none has."""
    retrieval = grid.study.retrieval
    settings, tokenizer = retrieval.random_baseline, grid.suites[combination.model.suite].tokenizer
    if combination.ablation != "random" or not settings or int(combination.seed) not in settings.seeds:
        return None
    rows, width = shape(combination, grid.suites)
    same = width in settings.widths and rows == grid.vocabulary_rows(tokenizer)
    return f"{combination.dataset}/{tokenizer}/{combination.seed}" if same else None


def of_baseline(grid: Grid, tokenizer: str, seed: str) -> Stream:
    """The stream of a tokenizer's random baseline."""
    return Stream(grid.vocabulary_rows(tokenizer), RANDOM_WIDTH, seed)


def columns(grid: Grid) -> dict[Stream, int]:
    """Every stream that the study draws, with how many of its first columns are needed."""
    needed: dict[Stream, int] = {}
    for stream, width in uses(grid):
        needed[stream] = max(width, needed.get(stream, 0))
    return needed


def uses(grid: Grid) -> Iterator[tuple[Stream, int]]:
    """Each stream that something is scored with, and the columns that it takes."""
    for combination in grid.retrieval:
        if (stream := drawn(grid, combination)) and not baseline(grid, combination):
            width = shape(combination, grid.suites)[1]
            yield stream, Ablation.parse(combination.ablation).width(width)
    settings = grid.study.retrieval and grid.study.retrieval.random_baseline
    for tokenizer in grid.scored_tokenizers if settings else ():
        for seed in settings.seeds:
            yield of_baseline(grid, tokenizer, str(seed)), max(settings.widths)
