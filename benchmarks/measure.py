"""What every benchmark does: time a call, read the peak of memory, print one line of JSON."""

import json
import resource
import time
from collections.abc import Callable
from typing import Any


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that a call took, and what it returned."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def peak_mib() -> float:
    """The largest resident memory of this process so far, MiB (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(
    name: str, seconds: float, peer: str, peer_seconds: float, difference: float, peak: float, **more: Any
) -> None:
    """Print the line: ratio is peer over ours, difference the largest in the result compared."""
    line = {
        "name": name,
        "seconds": seconds,
        "peer": peer,
        "peer_seconds": peer_seconds,
        "ratio": peer_seconds / seconds,
        "difference": difference,
        "peak_mib": peak,
    }
    print(
        json.dumps(
            {key: float(f"{x:.4g}") if isinstance(x, float) else x for key, x in (line | more).items()}
        )
    )
