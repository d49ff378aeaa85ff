"""A server on this machine that speaks as much of the Hugging Face hub's protocol as fetching a model needs.

    with HubServer() as hub:
        commit = hub.add("owner/name", "main", folder)
        subprocess.run(..., env={"HF_ENDPOINT": hub.endpoint, ...})
        hub.requests  # what was asked for

Weight files are served as the hub serves large files: a redirect to a content address, which takes byte ranges.
Other files are compressed, as the hub's are, so that a range of one is of no use.
"""

import gzip
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

WEIGHTS = (".safetensors", ".bin")
INFORMATION = re.compile(r"/api/(?:models|datasets)/([^/]+/[^/]+)(?:/revision/([^/]+))?")
TREE = re.compile(r"/api/(?:models|datasets)/([^/]+/[^/]+)/tree/([^/]+)(?:/.*)?")
FILE = re.compile(r"/(?:datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
CONTENT = re.compile(r"/content/(\w+)")


@dataclass(frozen=True)
class Request:
    """What a client asked for, and how many bytes of content it was sent."""

    method: str
    path: str
    content: int


class Hold:
    """Keeps one request waiting: `reached` when it has come, and answered when it is `released`."""

    def __init__(self):
        self.reached, self.released = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.reached.set()
        self.released.wait()


@dataclass
class HubServer:
    """Repositories of files in memory: `add` revisions to it, and read `requests` afterwards."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)  # commit -> file name -> content
    revisions: dict[str, dict[str, str]] = field(default_factory=dict)  # repository -> revision -> commit
    gated: set[str] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    gives_ranges: bool = True
    withheld: set[str] = field(default_factory=set)  # names of files that the server fails to give
    drops: list[int] = field(default_factory=list)  # for the next contents: bytes sent before the line drops
    holds: dict[str, "Hold"] = field(default_factory=dict)  # by file name: what keeps the next request for it
    refuses: dict[str, HTTPStatus] = field(
        default_factory=dict
    )  # by the end of an address: what is answered instead
    moved: dict[str, str] = field(default_factory=dict)  # repository -> the name that it has now
    page: bytes = b""  # what is answered to everything, as a network does before one has logged in to it
    unsteady: bool = False  # whether a file is another one each time that a part of it is asked for

    def add(self, repository: str, revision: str, folder: Path) -> str:
        """Serve a folder's files as a revision of a repository; returns its commit."""
        files = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
        listing = [(name, hashlib.sha256(data).hexdigest()) for name, data in files.items()]
        commit = hashlib.sha1(repr([repository, revision, listing]).encode()).hexdigest()
        self.commits[commit] = files
        self.revisions.setdefault(repository, {}).update({revision: commit, commit: commit})
        return commit

    def clear(self) -> None:
        """Forget every repository and request."""
        for state in vars(self).values():
            if isinstance(state, dict | set | list):
                state.clear()
        self.gives_ranges, self.page, self.unsteady = True, b"", False

    def content_sent(self, suffix: str) -> int:
        """Bytes of content that went out of files whose name ends in `suffix`."""
        addresses = {
            f"/content/{hashlib.sha256(data).hexdigest()}"
            for files in self.commits.values()
            for name, data in files.items()
            if name.endswith(suffix)
        }
        return sum(r.content for r in self.requests if r.path in addresses or r.path.endswith(suffix))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> "HubServer":
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HubServer

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.hub.page:
            return self.send(self.hub.page)
        for end, status in self.hub.refuses.items():
            if path.endswith(end):
                return self.fail(status, None)
        for old, new in self.hub.moved.items():
            if f"/{old}" in path:
                location = {"Location": self.path.replace(f"/{old}", f"/{new}")}
                return self.send(b"", HTTPStatus.TEMPORARY_REDIRECT, location)
        for pattern, answer in (
            (CONTENT, self.send_content),
            (TREE, self.send_tree),
            (INFORMATION, self.send_information),
            (FILE, self.send_file),
        ):
            if match := pattern.fullmatch(path):
                return answer(*match.groups())
        self.fail(HTTPStatus.NOT_FOUND, "EntryNotFound")

    do_HEAD = do_GET

    def send_information(self, repository: str, revision: str | None) -> None:
        if commit := self.commit(repository, revision or "main"):
            names = [{"rfilename": name} for name in self.hub.commits[commit]]
            self.send(json.dumps({"id": repository, "sha": commit, "siblings": names}).encode())

    def send_tree(self, repository: str, revision: str) -> None:
        if commit := self.commit(repository, revision):
            files = self.hub.commits[commit].items()
            tree = [
                {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                for name, data in files
            ]
            self.send(json.dumps(tree).encode())

    def send_file(self, repository: str, revision: str, name: str) -> None:
        commit = self.commit(repository, revision)
        if not commit:
            return
        data = self.hub.commits[commit].get(name)
        if data is None:
            return self.fail(HTTPStatus.NOT_FOUND, "EntryNotFound", {"X-Repo-Commit": commit})
        if hold := self.hub.holds.pop(name, None):
            hold.wait()
        if name in self.hub.withheld:
            return self.fail(HTTPStatus.FORBIDDEN, "Withheld")
        headers = {"X-Repo-Commit": commit, "ETag": f'"{hashlib.sha1(data).hexdigest()}"'}
        if not name.endswith(WEIGHTS):
            compress = "gzip" in self.headers.get("Accept-Encoding", "")
            encoding = {"Content-Encoding": "gzip"} if compress else {}
            return self.send(gzip.compress(data) if compress else data, headers=headers | encoding)
        address = hashlib.sha256(data).hexdigest()
        linked = {"X-Linked-Etag": f'"{address}"', "X-Linked-Size": str(len(data))}
        # another host than the hub's, so that the client keeps to what it does with a content network
        location = {"Location": f"{self.hub.endpoint.replace('127.0.0.1', 'localhost')}/content/{address}"}
        self.send(b"", HTTPStatus.FOUND, headers | linked | location)

    def send_content(self, address: str) -> None:
        contents = (data for files in self.hub.commits.values() for data in files.values())
        data = next(data for data in contents if hashlib.sha256(data).hexdigest() == address)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not wanted or not self.hub.gives_ranges:
            return self.send(data, headers={"ETag": f'"{address}"'})
        first, last = int(wanted[1]), min(int(wanted[2] or len(data)), len(data) - 1)
        etag = f"{address}-{len(self.hub.requests)}" if self.hub.unsteady else address
        headers = {"ETag": f'"{etag}"', "Content-Range": f"bytes {first}-{last}/{len(data)}"}
        self.send(data[first : last + 1], HTTPStatus.PARTIAL_CONTENT, headers)

    def commit(self, repository: str, revision: str) -> str | None:
        """The commit of a revision; where there is none, the hub's answer is sent."""
        if repository in self.hub.gated:
            return self.fail(HTTPStatus.FORBIDDEN, "GatedRepo")
        if repository not in self.hub.revisions:  # the hub does not tell strangers what is private
            return self.fail(HTTPStatus.UNAUTHORIZED, "RepoNotFound")
        if revision not in self.hub.revisions[repository]:
            return self.fail(HTTPStatus.NOT_FOUND, "RevisionNotFound")
        return self.hub.revisions[repository][revision]

    def fail(self, status: HTTPStatus, code: str | None, headers: dict[str, str] | None = None) -> None:
        said = {"X-Error-Code": code, "X-Error-Message": code} if code else {}
        self.send(b"", status, said | (headers or {}))

    def send(self, body: bytes, status=HTTPStatus.OK, headers: dict[str, str] | None = None) -> None:
        sent = b"" if self.command == "HEAD" else body
        is_content = self.path.startswith("/content/") and self.command == "GET"
        if is_content and self.hub.drops:
            sent, self.close_connection = sent[: self.hub.drops.pop(0)], True
        self.hub.requests.append(Request(self.command, unquote(urlsplit(self.path).path), len(sent)))
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_) -> None:
        """Tests read `requests` instead."""
