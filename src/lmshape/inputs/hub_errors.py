"""What goes wrong between this machine and the Hugging Face hub, in one message that says what to do.

The client raises errors of a dozen kinds, and of any kind where what answers is no hub: a proxy, a mirror, the login
page of a network.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from json import JSONDecodeError

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from lmshape.errors import LmshapeError, chain, in_short

LOG_IN = "log in with `hf auth login` or set HF_TOKEN to a token"
SHOWN = 300  # characters of the client's own words
CUT_SHORT = "Consistency check failed"  # the client, of a file that has another length than the hub says
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class HubError(LmshapeError):
    """A repository, revision or file that the hub does not have, or does not give."""


class Interrupted(HubError):
    """A file that did not arrive as it is; another attempt may get it."""

    short = True


@contextmanager
def named(repository: str, revision: str | None, file: str | None = None) -> Iterator[None]:
    """Raise HubError, naming what was asked for, in place of whatever the hub's client raises.

    Only the client's own calls belong inside: a defect of anything else would be taken for one of the hub's.
    """
    try:
        yield
    except LmshapeError:
        raise
    except Exception as error:
        asked = repository + (f" at {revision}" if revision else "") + (f", {file}" if file else "")
        kind = Interrupted if CUT_SHORT in str(error) else HubError
        raise kind(f"{asked}: {said(error)}") from error


def said(error: BaseException) -> str:
    """What an error of the client means and what to do: by itself, or by that which it was raised for."""
    known = (meaning(link) for link in chain(error))
    return next(filter(None, known), in_short(error))


def _line(error: BaseException) -> str:
    """An error's words, in one line."""
    return " ".join(str(error).split())[:SHOWN]


def meaning(error: BaseException) -> str | None:
    """What one error means and what to do; None of one that only stands for another, or that is not known."""
    match error:
        case LocalEntryNotFoundError():
            return None  # raised for whatever kept the client from asking the hub
        case GatedRepoError():
            return f"is gated: accept its terms on the hub, then {LOG_IN}"
        case DisabledRepoError():
            return "the hub has disabled it; take another repository"
        case RepositoryNotFoundError() | HFValidationError():
            return f"no such repository on the hub, or a private one: check its name, or {LOG_IN}"
        case RevisionNotFoundError():
            return "has no such revision, and no other is taken in its place"
        case EntryNotFoundError():
            return f"has no such file: {_line(error)}"
        case OfflineModeIsEnabled():
            return f"not in the cache {constants.HF_HUB_CACHE}, and HF_HUB_OFFLINE is set: fetch it with a network"
        case HfHubHTTPError():
            return _refusal(error.response.status_code, error.server_message)
        case JSONDecodeError():
            return (
                f"what answers at {constants.ENDPOINT} is no hub, but perhaps a page to log in to the network: check "
                "the network, the proxy and HF_ENDPOINT"
            )
        case httpx2.ProxyError():
            return f"the proxy does not let it through ({_line(error)}): check HTTPS_PROXY and NO_PROXY"
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return f"HF_ENDPOINT is {constants.ENDPOINT}, which is no address ({_line(error)})"
        case httpx2.LocalProtocolError() | UnicodeEncodeError():
            return (
                f"cannot be asked for ({_line(error)}): HF_TOKEN must be a token, without spaces or line ends"
            )
        case httpx2.TransportError():
            return (
                f"{constants.ENDPOINT} cannot be reached ({_line(error)}): check the network, the proxy and "
                "HF_ENDPOINT; with HF_HUB_OFFLINE=1, the client's cache is used alone"
            )
        case OSError(errno=number) if number in NO_ROOM:
            return f"no room for it on the disk ({error.strerror}): make room and run again; what arrived is kept"
        case OSError(errno=number) if number:
            return f"cannot be written here: {error.strerror}: {error.filename}"
    return None


def _refusal(status: int, message: str | None) -> str:
    answer = f"{constants.ENDPOINT} answers {status}" + (f" ({message})" if message else "")
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return f"{answer}: there is no valid token in use: {LOG_IN}"
        case HTTPStatus.FORBIDDEN:
            return f"{answer}: the token in use may not read it, or none is: {LOG_IN} that may"
        case HTTPStatus.TOO_MANY_REQUESTS:
            return f"{answer}: too many requests came from here: run again later, or {LOG_IN}"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"{answer}: it has trouble; run again later"
    return f"{answer}: check the name, and HF_ENDPOINT if it is set"
