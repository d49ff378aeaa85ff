"""The signals that end a run or one of its jobs: Ctrl-C, SIGTERM, and that of a terminal that was closed."""

import signal
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def on_signals(handle: Callable[[int, FrameType | None], None]) -> None:
    """Have `handle(number, frame)` called on each of them that is not ignored, as `nohup` has it."""
    for each in SIGNALS:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, handle)


def leave(number: int, frame: FrameType | None) -> None:
    """End a job so that it removes what it has half written; further signals do not disturb it."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(f"ended by {signal.Signals(number).name}")
