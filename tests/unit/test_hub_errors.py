"""What goes wrong on the way to the hub ends in one message: what was asked for, what happened, what to do."""

import errno
import json
import os
import resource
import socket
import ssl
from http import HTTPStatus
from pathlib import Path

import httpx2
import numpy as np
import pytest
from hub_server import HubServer
from huggingface_hub import errors as theirs
from safetensors.numpy import save_file
from test_hub import Worker, worker

from lmshape.errors import LmshapeError, may_pass
from lmshape.inputs import hub_errors


@pytest.fixture(scope="module")
def server():
    with HubServer() as server:
        yield server


@pytest.fixture(scope="module")
def fetch(server, tmp_path_factory):
    with worker(server.endpoint, tmp_path_factory.mktemp("home")) as call:
        yield call


@pytest.fixture
def hub(server, tmp_path):
    """The server with one model, owner/model at main."""
    server.clear()
    served = tmp_path / "served"
    served.mkdir()
    (served / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (served / "tokenizer.json").write_text("{}")
    save_file(
        {"wte.weight": np.ones((500, 64), np.float32), "h": np.ones(10**6, np.float32)},
        served / "model.safetensors",
    )
    server.add("owner/model", "main", served)
    return server


@pytest.mark.parametrize("files", ["model", "embedding"])
@pytest.mark.parametrize("place", ["revision/main", "config.json", "model.safetensors"])
@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (
            HTTPStatus.UNAUTHORIZED,
            "there is no valid token in use: log in with `hf auth login` or set HF_TOKEN",
        ),
        (HTTPStatus.FORBIDDEN, "the token in use may not read it"),
        (HTTPStatus.NOT_FOUND, "check the name, and HF_ENDPOINT if it is set"),
    ],
)
def test_what_a_server_refuses_is_named_with_its_answer_and_what_to_do(
    hub, fetch, tmp_path, files, place, status, advice
):
    hub.refuses[place] = status
    said = fetch("owner/model", "main", tmp_path / "model", files)
    assert said.startswith("HubError: owner/model at ")
    assert f"{hub.endpoint} answers {status}: {advice}" in said
    assert place == "revision/main" or f", {place}: " in said
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (HTTPStatus.TOO_MANY_REQUESTS, "too many requests came from here: run again later"),
        (HTTPStatus.SERVICE_UNAVAILABLE, "it has trouble; run again later"),
    ],
)
def test_a_server_that_is_busy_or_down_is_named(hub, fetch, tmp_path, status, advice):
    hub.refuses["revision/main"] = status
    assert f"owner/model at main: {hub.endpoint} answers {status}: {advice}" in fetch(
        "owner/model", "main", tmp_path / "model"
    )


@pytest.mark.parametrize("files", ["model", "embedding", "tokenizer"])
def test_a_repository_that_was_given_another_name_is_followed(hub, fetch, tmp_path, files):
    hub.moved["owner/old"] = "owner/model"
    commit = fetch("owner/model", "main", tmp_path / "new", files)
    assert fetch("owner/old", "main", tmp_path / "old", files) == commit


def test_a_page_in_place_of_the_hub_is_no_answer(hub, fetch, tmp_path):
    hub.page = b"<html>Log in to the network</html>"
    said = fetch("owner/model", "main", tmp_path / "model")
    assert f"owner/model at main: what answers at {hub.endpoint} is no hub" in said


def test_a_file_that_changes_while_it_is_read_is_no_table(hub, fetch, tmp_path):
    hub.unsteady = True
    said = fetch("owner/model", "main", tmp_path / "model", "embedding")
    assert "model.safetensors: changed while it was read; run again" in said
    assert not (tmp_path / "model").exists()


def test_a_pointer_in_place_of_weights_is_named(hub, fetch, tmp_path):
    """As a repository has it whose owner never had Git LFS."""
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    (tmp_path / "served/model.safetensors").write_text(pointer)
    hub.add("owner/pointers", "main", tmp_path / "served")
    for files in ("model", "embedding"):
        said = fetch("owner/pointers", "main", tmp_path / files, files)
        assert "model.safetensors: a Git LFS pointer" in said and not (tmp_path / files).exists()


def test_an_adapter_on_the_hub_is_named_with_the_model_that_it_is_of(hub, fetch, tmp_path):
    folder = tmp_path / "adapter"
    folder.mkdir()
    adapter = {"peft_type": "LORA", "base_model_name_or_path": "owner/base"}
    (folder / "adapter_config.json").write_text(json.dumps(adapter))
    (folder / "adapter_model.safetensors").write_bytes(b"of no use alone")
    hub.add("owner/adapter", "main", folder)
    for files in ("model", "embedding", "tokenizer"):
        assert "it is an adapter (LORA) of owner/base" in fetch(
            "owner/adapter", "main", tmp_path / files, files
        )


def test_a_disk_that_is_full_in_the_middle_keeps_what_arrived(hub, fetch, tmp_path):
    limit = 10**6  # bytes that a process may write to a file; the weights are four times as long
    full = Worker(hub.endpoint, tmp_path / "home")
    resource.prlimit(full.pid, resource.RLIMIT_FSIZE, (limit, limit))
    with full:
        full.ask("owner/model", "main", tmp_path / "model")
        said = full.answer()
        full.stdin.close()
    assert "model.safetensors: no room for it on the disk" in said and "make room and run again" in said
    assert not (tmp_path / "model").exists()
    fetch("owner/model", "main", tmp_path / "model")
    whole = (tmp_path / "served/model.safetensors").stat().st_size
    assert (tmp_path / "model/model.safetensors").stat().st_size == whole
    assert len([r for r in hub.requests if r.path.endswith("/tokenizer.json") and r.content]) == 1


def test_a_folder_that_cannot_be_written_is_named(hub, fetch, tmp_path):
    (tmp_path / "a file").touch()
    said = fetch("owner/model", "main", tmp_path / "a file" / "model")
    assert f"cannot be written here: File exists: {tmp_path}/a file" in said


def raised(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def answered(status: int, kind: type = theirs.HfHubHTTPError) -> theirs.HfHubHTTPError:
    request = httpx2.Request("GET", "https://hub.example/owner/model")
    return kind(f"{status} for owner/model", response=httpx2.Response(status, request=request))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (httpx2.ConnectError("[Errno -2] Name or service not known"), "cannot be reached ([Errno -2] Name"),
        (httpx2.ReadTimeout("The read operation timed out"), "cannot be reached (The read operation timed out)"),
        (raised(httpx2.ConnectError("bad"), ssl.SSLError("certificate verify failed")), "cannot be reached (bad)"),
        (httpx2.ProxyError("407 Proxy Authentication Required"), "check HTTPS_PROXY and NO_PROXY"),
        (httpx2.UnsupportedProtocol("Request URL is missing"), "HF_ENDPOINT is "),
        (httpx2.InvalidURL("Invalid port"), "HF_ENDPOINT is "),
        (httpx2.LocalProtocolError("Illegal header value b'Bearer hf_ '"), "HF_TOKEN must be a token"),
        (UnicodeEncodeError("ascii", "Bearer hf_ä", 10, 11, "ordinal not in range"), "HF_TOKEN must be a token"),
        (ImportError("Using SOCKS proxy, but the 'socksio' package is not installed."), "the 'socksio' package"),
        (answered(451, theirs.DisabledRepoError), "the hub has disabled it"),
        (answered(403, theirs.GatedRepoError), "is gated: accept its terms"),
        (theirs.HFValidationError("Repo id must be in the form"), "no such repository on the hub"),
        (theirs.OfflineModeIsEnabled("offline"), "HF_HUB_OFFLINE is set"),
        (raised(theirs.LocalEntryNotFoundError("An error happened"), answered(502)), "answers 502: it has trouble"),
        (theirs.LocalEntryNotFoundError("cannot find it"), "LocalEntryNotFoundError: cannot find it"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "no room for it on the disk (No space left on device)"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "no room for it on the disk"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "cannot be written here: Permission denied: /x"),
        (OSError("Consistency check failed: file should\nbe of size 9"), "OSError: Consistency check failed: file"),
        (ValueError("The file is too large. Install `hf_xet`"), "ValueError: The file is too large. Install"),
        (KeyError("sha"), "KeyError: 'sha'"),
        (raised(RuntimeError("datasets' own words"), answered(401)), "answers 401: there is no valid token"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
    ],
)  # fmt: skip
def test_every_error_of_the_client_becomes_one_line(error, said):
    with pytest.raises(hub_errors.HubError) as found, hub_errors.named("owner/model", "step3", "config.json"):
        raise error
    message = str(found.value)
    assert (
        message.startswith("owner/model at step3, config.json: ") and said in message and "\n" not in message
    )


def test_what_arrived_in_part_is_worth_another_attempt():
    for error, again in ((OSError("Consistency check failed: size 3"), True), (OSError("else"), False)):
        with pytest.raises(hub_errors.HubError) as found, hub_errors.named("owner/model", None):
            raise error
        assert may_pass(found.value) == again


def test_what_lmshape_says_itself_is_not_said_anew():
    with pytest.raises(LmshapeError, match=r"^as it was$"), hub_errors.named("owner/model", None):
        raise LmshapeError("as it was")


def test_the_hub_is_not_asked_where_its_address_is_none(tmp_path):
    with worker("hub.example", tmp_path / "home") as fetch:
        said = fetch("owner/model", "main", tmp_path / "model")
    assert "HF_ENDPOINT is hub.example, which is no address" in said
    assert not Path(tmp_path / "model").exists()
