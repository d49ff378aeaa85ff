"""Work on pieces of arrays by as many threads as BLAS may use, where NumPy and SciPy take one."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import threadpool_limits


def allowed() -> int:
    """As many as OMP_NUM_THREADS begins with ("4,2" is 4), or one a processor where it says no number above 0."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return (int(first) if first.isdecimal() else 0) or os.cpu_count() or 1


def each(work: Callable[[Any], Any], pieces: Iterable[Any]) -> list[Any]:
    """What the work makes of every piece, in their order. BLAS takes one thread for each, if there are several."""
    if (threads := allowed()) == 1:
        return [work(piece) for piece in pieces]
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, pieces))
