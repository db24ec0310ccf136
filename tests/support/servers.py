"""Servers on this machine: HTTP with every bad habit, and one that accepts and never answers."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    """What one path answers; `sent` cuts the body short while the length promises all of it."""

    body: bytes = b""
    kind: str = "application/octet-stream"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    sent: int | None = None
    ranges: bool = True
    login: str = ""  # "user:password" that it asks for


@dataclass
class Request:
    """What a client asked for."""

    path: str
    headers: dict[str, str]


@dataclass
class HttpServer:
    """Answers from `replies` (path -> what, or what for the n-th request); keeps `requests`."""

    port: int
    replies: dict[str, Reply | Callable[[int], Reply]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its root, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def asked(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(request.path == path for request in self.requests)

    def reply(self, path: str) -> Reply | None:
        """What the path answers now."""
        found = self.replies.get(path)
        return found(self.asked(path)) if callable(found) else found


class Handler(BaseHTTPRequestHandler):
    """Answers as HTTP 1.0 does, and logs nothing."""

    protocol_version = "HTTP/1.0"

    def log_message(self, *_: object) -> None:
        """See BaseHTTPRequestHandler."""


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[int]:
    """The port of a server that hands each request to a handler of its own."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield running.server_address[1]
        finally:
            running.shutdown()
            thread.join()


@contextmanager
def http_server() -> Iterator[HttpServer]:
    """A running HttpServer."""

    class Replying(Handler):
        def do_GET(self) -> None:
            server.requests.append(Request(self.path, dict(self.headers.items())))
            _answer(self, server.reply(self.path) or Reply(status=404))

    with serving(Replying) as port:
        server = HttpServer(port)
        yield server


def _answer(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    wanted = "Basic " + base64.b64encode(reply.login.encode()).decode()
    if reply.login and handler.headers.get("Authorization") != wanted:
        reply = Reply(status=401, headers={"WWW-Authenticate": 'Basic realm="test"'})
    body, status, headers = reply.body, reply.status, dict(reply.headers)
    place = handler.headers.get("Range", "")
    if place and reply.ranges and status == 200:
        start = int(place.removeprefix("bytes=").rstrip("-"))
        status = 206 if start < len(body) else 416
        headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        body = body[start:]
    handler.send_response(status)
    for name, value in ({"Content-Type": reply.kind} | headers).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body if reply.sent is None else body[: reply.sent])


@contextmanager
def silent_server() -> Iterator[int]:
    """The port of a server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def dead_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port
