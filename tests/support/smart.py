"""A git server over HTTP as hosts run it (git http-backend), that can be made to misbehave."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.support.repos import Upstream
from tests.support.servers import Handler, serving


@dataclass(frozen=True)
class Trick:
    """What is done to an answer: `cut` closes after so many bytes of its body, `stall` says no more
    after that many, `garbage` overwrites what follows them; or another `status` altogether, with
    `headers`.
    """

    cut: int | None = None
    stall: int | None = None
    garbage: int | None = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class SmartServer:
    """Answers for the repositories below a folder; `tricks` are played on the answers to come, one
    each, None for an honest one; then all are honest. `sizes` are those of the bodies so far.
    """

    port: int
    folder: Path
    tricks: list[Trick | None] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Its root, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def next_trick(self) -> Trick:
        """What to do now."""
        return (self.tricks.pop(0) if self.tricks else None) or Trick()


@contextmanager
def smart_server(upstream: Upstream) -> Iterator[SmartServer]:
    """A server for one repository; it gives any commit, and filters."""
    upstream.git("config", "uploadpack.allowAnySHA1InWant", "true")
    upstream.git("config", "uploadpack.allowFilter", "true")

    class Acting(Handler):
        def do_GET(self) -> None:  # noqa: N802  (as http.server calls it)
            with suppress(OSError):  # the client may have gone
                _answer(self, server)

        do_POST = do_GET  # noqa: N815  (as http.server calls it)

    with serving(Acting) as port:
        server = SmartServer(port, upstream.path.parent)
        try:
            yield server
        finally:
            server.closing.set()


def _answer(handler: BaseHTTPRequestHandler, server: SmartServer) -> None:
    trick = server.next_trick()
    if trick.status != 200:
        handler.send_response(trick.status)
        for name, value in trick.headers:
            handler.send_header(name, value)
        handler.end_headers()
        return
    head, body = _backend(handler, server.folder)
    server.sizes.append(len(body))
    handler.send_response(200)
    for name, value in head:
        handler.send_header(name, value)
    handler.end_headers()
    if trick.garbage is not None:
        body = body[: trick.garbage] + bytes(range(256)) * (len(body[trick.garbage :]) // 256 + 1)
    stop = trick.cut if trick.cut is not None else trick.stall
    handler.wfile.write(body[:stop])
    handler.wfile.flush()
    if trick.stall is not None:
        server.closing.wait(60)


def _backend(handler: BaseHTTPRequestHandler, folder: Path) -> tuple[list[tuple[str, str]], bytes]:
    """What git http-backend answers: headers and body."""
    path, _, query = handler.path.partition("?")
    length = handler.headers.get("Content-Length", "0")
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(folder),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": handler.command,
        "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": length,
        "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
        "REMOTE_ADDR": "127.0.0.1",
    }
    done = subprocess.run(
        ["git", "http-backend"],
        input=handler.rfile.read(int(length)),
        env=environment,
        capture_output=True,
        check=False,
    )
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    rows = [row.partition(": ") for row in head.decode("ascii").split("\r\n") if row]
    return [(name, value) for name, _, value in rows if name != "Status"], body
