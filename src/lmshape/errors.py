"""The errors a user of lmshape can cause; each message names what is wrong and what to do."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import shorten
from urllib.error import HTTPError

LONGEST = 600  # characters of another library's message: some list every model that they know


# Classes of errors, by whatever library, of a network or of memory that may be there at another attempt.
SHORTAGES = {
    "ClientConnectionError", "ConnectionError", "HTTPException", "MemoryError", "OutOfMemoryError", "Timeout",
    "TimeoutError", "TransportError", "URLError",
}  # fmt: skip
BUSY = {408, 425, 429}  # what a server answers that is not able to just now, beside 500 and more


class LmshapeError(Exception):
    """Anything lmshape refuses to do: the message names the file, key or combination."""

    short = False  # of memory or a network, which may be there at another attempt


class ConfigError(LmshapeError):
    """A study, a suite or a command-line setting that cannot be used."""


def may_pass(error: BaseException) -> bool:
    """Whether another attempt can end otherwise: no refusal, or one for want of memory or a network."""
    return not isinstance(error, LmshapeError) or any(map(_short, chain(error)))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, what it was raised for, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _short(error: BaseException) -> bool:
    if isinstance(error, LmshapeError):
        return error.short
    status = error.code if isinstance(error, HTTPError) else None
    status = status or getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        return status in BUSY or status >= 500
    return not SHORTAGES.isdisjoint(kind.__name__ for kind in type(error).__mro__)


@contextmanager
def reported_as(kind: type[LmshapeError], what: str, advice: str = "") -> Iterator[None]:
    """Make one `kind` of whatever a library raises about somebody's file: `what`, the library's words, `advice`.

    Errors of lmshape pass, as they say what is wrong already. So do those that begin in lines of lmshape which the
    library calls back: they are defects, and must show where.
    """
    try:
        yield
    except LmshapeError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise  # an interruption; a panic is how libraries written in Rust end, and no Exception
        _, _, *called = traceback.walk_tb(error.__traceback__)  # this function, and the one with the block
        if called and called[-1][0].f_globals.get("__name__", "").split(".")[0] == __package__:
            raise
        raise kind("; ".join(filter(None, (f"{what}: {in_short(error)}", advice)))) from error


def in_short(error: BaseException) -> str:
    """The type and the message of an error in one line."""
    return shorten(f"{type(error).__name__}: {error}", LONGEST, placeholder=" ...").removesuffix(":")
