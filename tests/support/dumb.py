"""A git server that only serves files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.repos import Upstream
from tests.support.servers import Reply, http_server


@contextmanager
def dumb_server(upstream: Upstream, *, login: str = "") -> Iterator[str]:
    """The repository as plain files over HTTP: no shallow fetches, no commits by id."""
    upstream.git("update-server-info")
    with http_server() as server:
        for path in upstream.path.rglob("*"):
            if path.is_file():
                name = path.relative_to(upstream.path).as_posix()
                server.replies[f"/r.git/{name}"] = Reply(path.read_bytes(), login=login)
        server.replies["/r.git/info/refs?service=git-upload-pack"] = server.replies[
            "/r.git/info/refs"
        ]
        yield f"{server.url}/r.git"
