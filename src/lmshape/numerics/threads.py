"""Work on pieces of arrays by as many threads as BLAS may use, where NumPy and SciPy take one."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def allowed() -> int:
    """As many as OMP_NUM_THREADS begins with ("4,2" is 4), or one a processor where it says no number above 0."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return (int(first) if first.isdecimal() else 0) or os.cpu_count() or 1


def each(work: Callable[[Any], None], pieces: Iterable[Any]) -> None:
    """Do the work on every piece."""
    if (threads := allowed()) == 1:
        for piece in pieces:
            work(piece)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, pieces))
