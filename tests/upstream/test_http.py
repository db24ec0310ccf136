"""HTTP: redirects, passwords, and errors that say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.upstream.http import Access, Http, HttpError
from tests.support.servers import HttpServer, Reply, dead_port, http_server, silent_server


def test_a_page(server: HttpServer) -> None:
    """For which no certificate is read."""
    server.replies["/p"] = Reply(b"hello", "text/html; charset=utf-8")

    page = Http(Access(certificates="/nothing.pem")).page(server.url + "/p", accept="text/html")

    assert (page.body, page.url) == (b"hello", server.url + "/p")
    assert server.requests[0].headers["Accept"] == "text/html"


def test_redirects_are_followed_to_their_end(server: HttpServer) -> None:
    server.replies["/a"] = Reply(status=302, headers={"Location": "b"})
    server.replies["/b"] = Reply(status=301, headers={"Location": server.url + "/c"})
    server.replies["/c"] = Reply(b"here")
    server.replies["/loop"] = Reply(status=302, headers={"Location": "/loop"})

    page = Http().page(server.url + "/a")

    assert (page.body, page.url) == (b"here", server.url + "/c")
    with pytest.raises(HttpError, match="redirected more than"):
        Http().page(server.url + "/loop")


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://h/x", "data:,x"])
def test_a_redirect_stays_on_the_web(server: HttpServer, target: str) -> None:
    server.replies["/a"] = Reply(status=302, headers={"Location": target})

    with pytest.raises(HttpError, match="less safe"):
        Http().page(server.url + "/a")


def test_a_password_is_in_the_url_or_in_netrc(server: HttpServer) -> None:
    server.replies["/p"] = Reply(b"secret page", login="ann:p@ss")
    with pytest.raises(HttpError) as caught:
        Http().page(server.url + "/p")
    assert "netrc" in caught.value.problems[0].hint

    assert Http().page(server.url.replace("//", "//ann:p%40ss@") + "/p").body == b"secret page"
    netrc = Path.home() / ".netrc"
    netrc.write_text("machine 127.0.0.1 login ann password p@ss\n")
    netrc.chmod(0o600)
    assert Http().page(server.url + "/p").body == b"secret page"


def test_a_password_goes_to_its_host_only(server: HttpServer) -> None:
    with http_server() as other:
        server.replies["/a"] = Reply(status=302, headers={"Location": other.url + "/b"})
        other.replies["/b"] = Reply(b"here")

        Http().page(server.url.replace("//", "//ann:pass@") + "/a")

        assert "Authorization" in server.requests[0].headers
        assert "Authorization" not in other.requests[0].headers


def test_errors_do_not_show_passwords(server: HttpServer) -> None:
    with pytest.raises(HttpError) as caught:
        Http().page(server.url.replace("//", "//ann:pass@") + "/gone")

    assert caught.value.status == 404
    assert str(caught.value) == f"{server.url}/gone: the server says 404 Not Found"


def test_some_errors_are_passing(server: HttpServer) -> None:
    server.replies["/p"] = Reply(status=503)
    with silent_server() as silent:
        for port, said, passing in (
            (dead_port(), "cannot be reached", False),
            (silent, "timed out", True),
            (server.port, "503", True),
        ):
            with pytest.raises(HttpError, match=said) as caught:
                Http(Access(timeout=0.2)).page(f"http://127.0.0.1:{port}/p")
            assert caught.value.passing is passing


def test_a_proxy_is_used(server: HttpServer) -> None:
    server.replies["http://index.invalid/p"] = Reply(b"through the proxy")

    page = Http(Access(proxy=server.url)).page("http://index.invalid/p")

    assert page.body == b"through the proxy"


def test_certificates_that_are_not_there() -> None:
    with pytest.raises(HttpError, match=r"nothing\.pem"):
        Http(Access(certificates="/nothing.pem")).page("https://index.invalid/")


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(b"here")

    assert Http().page((tmp_path / "a b").as_uri()).body == b"here"
    with pytest.raises(HttpError) as caught:
        Http().page((tmp_path / "gone").as_uri())
    assert caught.value.status == 404
