"""Files of the hub, read in parts: what is asked for comes over the network, and no more.

Not the client's own file system: that takes the whole file for the range where a server ignores ranges.
"""

import os
import re
from http import HTTPStatus
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, BinaryIO

import httpx2
from huggingface_hub import constants, hf_hub_url
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_backoff, http_stream_backoff

from lmshape.inputs.hub_errors import HubError, Interrupted, named

BLOCK = 2**18  # bytes that a small read takes: a header or so; tables are read in larger pieces
EXTENT = re.compile(r"bytes \d+-\d+/(\d+)")


class NoRanges(HubError):
    """A server that gives files whole or not at all."""


def open_remote(repository: str, commit: str, name: str) -> BinaryIO:
    """Open a file of the hub for reading; JSON comes whole, because servers compress it. Raises HubError."""
    url = hf_hub_url(repository, name, revision=commit)
    if not name.endswith(".json"):
        return BufferedReader(RemoteFile(repository, commit, name, url), BLOCK)
    with named(repository, commit, name):
        response = http_backoff(
            "GET", url, headers=build_hf_headers(), timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT
        )
        hf_raise_for_status(response)
    return BytesIO(response.content)


class RemoteFile(RawIOBase):
    """A file of the hub, read by byte range. NoRanges where the server gives none, HubError for all else."""

    def __init__(self, repository: str, commit: str, name: str, url: str):
        self.asked, self.url, self.position = (repository, commit, name), url, 0
        with named(*self.asked), http_stream_backoff("GET", url, **_range(0, 0)) as first:
            hf_raise_for_status(first)
            self.etag = first.headers.get("ETag")
            self.size = self._whole(first)  # before the content is read: it could be the whole file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.position = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.size}[whence]
        return self.position

    def readinto(self, buffer: memoryview) -> int:
        length = max(0, min(len(buffer), self.size - self.position))
        if length:
            buffer[:length] = self._bytes(self.position, self.position + length - 1)
            self.position += length
        return length

    def _bytes(self, first: int, last: int) -> bytes:
        with named(*self.asked):
            response = http_backoff("GET", self.url, **_range(first, last))
            hf_raise_for_status(response)
        self.etag = self.etag or response.headers.get("ETag")  # which not all servers of a network give
        if (self._whole(response), response.headers.get("ETag", self.etag)) != (self.size, self.etag):
            raise Interrupted("{} at {}, {}: changed while it was read; run again".format(*self.asked))
        if len(response.content) != last - first + 1:
            raise Interrupted("{} at {}, {}: a part of it did not arrive; run again".format(*self.asked))
        return response.content

    def _whole(self, response: httpx2.Response) -> int:
        """The size of the whole file, as an answer with a part of it says."""
        extent = EXTENT.fullmatch(response.headers.get("Content-Range", ""))
        if response.status_code != HTTPStatus.PARTIAL_CONTENT or not extent:
            raise NoRanges("{} at {}, {}: the server does not give byte ranges".format(*self.asked))
        return int(extent[1])


def _range(first: int, last: int) -> dict[str, Any]:
    """What a request for some bytes carries."""
    headers = build_hf_headers() | {"Range": f"bytes={first}-{last}", "Accept-Encoding": "identity"}
    return {"headers": headers, "timeout": constants.HF_HUB_DOWNLOAD_TIMEOUT}
