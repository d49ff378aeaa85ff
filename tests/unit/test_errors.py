"""What a library raises about somebody's file is one message; what is wrong with lmshape shows where."""

import json
import socket
import ssl
from http.client import IncompleteRead
from urllib.error import HTTPError, URLError

import httpx2
import pytest
import requests
from huggingface_hub.errors import HfHubHTTPError
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from lmshape.errors import ConfigError, LmshapeError, may_pass, reported_as
from lmshape.inputs import tokenizer_files


def test_a_librarys_error_is_one_line_that_says_what_and_why_and_what_to_do():
    with (
        pytest.raises(ConfigError) as refusal,
        reported_as(ConfigError, "a.json: unreadable", "fetch it again"),
    ):
        json.loads('{\n"a')
    reason = "JSONDecodeError: Unterminated string starting at: line 2 column 1 (char 2)"
    assert str(refusal.value) == f"a.json: unreadable: {reason}; fetch it again"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("spm"), "m: KeyError: 'spm'"),
        (OSError("one\n\n  two"), "m: OSError: one two"),
        (AssertionError(), "m: AssertionError"),
        (ValueError("model " * 1000), "m: ValueError: " + "model " * 97 + "..."),
    ],
)
def test_of_a_message_what_fits_a_line_is_kept(error, told):
    with pytest.raises(LmshapeError) as refusal, reported_as(LmshapeError, "m"):
        raise error
    assert str(refusal.value) == told


def test_what_lmshape_refuses_is_not_told_twice():
    with pytest.raises(ConfigError, match="^a key$"), reported_as(LmshapeError, "m"):
        raise ConfigError("a key")


def test_a_defect_in_lmshape_that_a_library_called_keeps_its_own_type():
    with pytest.raises(TypeError), reported_as(LmshapeError, "m"):
        list(map(tokenizer_files.among, [None]))


def test_a_panic_of_a_library_in_rust_is_an_error_of_the_file():
    """Tokenizers panics where a template names a token that is not there."""
    described = json.loads(Tokenizer(WordLevel({"a": 0}, "a")).to_str())
    described["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [5], "tokens": ["[CLS]"]}},
    }
    described["post_processor"]["special_tokens"] = {}
    with pytest.raises(LmshapeError, match="m: "), reported_as(LmshapeError, "m"):
        Tokenizer.from_str(json.dumps(described)).encode("a")


def test_an_interruption_is_no_error_of_a_file():
    with pytest.raises(KeyboardInterrupt), reported_as(LmshapeError, "m"):
        raise KeyboardInterrupt


def answered(status: int) -> HfHubHTTPError:
    """What the hub's client raises for an answer of a server."""
    response = httpx2.Response(status, request=httpx2.Request("GET", "http://hub"))
    return HfHubHTTPError("no", response=response)


def refused_for(error: Exception) -> LmshapeError:
    with pytest.raises(LmshapeError) as refusal, reported_as(LmshapeError, "m"):
        raise error
    return refusal.value


@pytest.mark.parametrize(
    "error",
    [
        httpx2.ConnectError("no route"),
        httpx2.ReadTimeout("slow"),
        answered(503),
        answered(429),
        requests.exceptions.ConnectionError("reset"),
        requests.exceptions.ReadTimeout("slow"),
        URLError(socket.gaierror("no name")),
        HTTPError("http://a", 502, "bad gateway", None, None),
        IncompleteRead(b"a"),
        ConnectionResetError(),
        TimeoutError(),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_refusal_for_want_of_memory_or_a_network_may_pass(error):
    assert may_pass(refused_for(error)) and may_pass(error)


@pytest.mark.parametrize(
    "error",
    [
        answered(404),
        HTTPError("http://a", 404, "not found", None, None),
        FileNotFoundError("a"),
        ssl.SSLError("a certificate"),
        ValueError("a"),
        type("Refusal", (Exception,), {"code": 503})(),  # a number of something else
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_other_refusal_would_be_repeated(error):
    assert not may_pass(refused_for(error)) and not may_pass(LmshapeError("a"))


def test_a_defect_may_pass():
    """What lmshape does not know the reason of is tried again."""
    assert may_pass(ZeroDivisionError())
