"""Downloads: whole and right, or an error; and no byte twice where the server can resume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from patchkit.errors import SurroundingsError
from patchkit.model.progress import Stop, StoppedError
from patchkit.upstream.http import Http, WrongHashError, download
from tests.support.archives import digest
from tests.support.servers import HttpServer, Reply, dead_port, http_server

DATA = bytes(range(256)) * 1000
DIGEST = digest(DATA)


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with http_server() as running:
        yield running


def _download(into: Path, *urls: str, stop: Stop | None = None) -> list[tuple[int, int | None]]:
    counts: list[tuple[int, int | None]] = []
    download(
        Http(),
        urls,
        DIGEST,
        into,
        counter=lambda done, total: counts.append((done, total)),
        stop=stop or Stop(),
        pause=0.01,
    )
    return counts


def test_a_download_counts_its_bytes(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = Reply(DATA)

    counts = _download(tmp_path / "d" / "f", server.url + "/f")

    assert (tmp_path / "d" / "f").read_bytes() == DATA
    assert counts[-1] == (len(DATA), len(DATA))


def test_a_broken_connection_is_resumed(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = lambda times: Reply(DATA, sent=100_000 if times == 1 else None)

    _download(tmp_path / "f", server.url + "/f")

    assert (tmp_path / "f").read_bytes() == DATA
    assert server.requests[1].headers["Range"] == "bytes=100000-"


def test_an_interrupted_download_is_resumed_later(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = Reply(DATA)
    (tmp_path / "f").write_bytes(DATA[:5000])

    _download(tmp_path / "f", server.url + "/f")

    assert (tmp_path / "f").read_bytes() == DATA
    assert server.requests[0].headers["Range"] == "bytes=5000-"


def test_a_server_that_does_not_resume(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = Reply(DATA, ranges=False)
    (tmp_path / "f").write_bytes(DATA[:5000])

    _download(tmp_path / "f", server.url + "/f")

    assert (tmp_path / "f").read_bytes() == DATA


@pytest.mark.parametrize("left", [b"of another file", DATA + b"too much", DATA[:-1] + b"x"])
def test_what_was_left_is_of_another_file(server: HttpServer, tmp_path: Path, left: bytes) -> None:
    server.replies["/f"] = Reply(DATA)
    (tmp_path / "f").write_bytes(left)

    _download(tmp_path / "f", server.url + "/f")

    assert (tmp_path / "f").read_bytes() == DATA


def test_a_connection_that_always_breaks(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = Reply(DATA, sent=1000, ranges=False)

    with pytest.raises(SurroundingsError, match=f"broke at byte 1000 of {len(DATA)}"):
        _download(tmp_path / "f", server.url + "/f")

    assert server.asked("/f") == 3


def test_a_busy_server_is_asked_again(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = lambda times: Reply(status=503) if times < 3 else Reply(DATA)

    _download(tmp_path / "f", server.url + "/f")

    assert server.asked("/f") == 3


def test_a_wrong_hash_names_both(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = Reply(b"other")

    with pytest.raises(WrongHashError) as caught:
        _download(tmp_path / "f", server.url + "/f")

    assert digest(b"other") in str(caught.value)
    assert DIGEST in str(caught.value)
    assert not (tmp_path / "f").exists()
    assert server.asked("/f") == 1


def test_mirrors_are_tried_in_order(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/wrong"] = Reply(b"other")
    server.replies["/right"] = Reply(DATA)
    dead = f"http://127.0.0.1:{dead_port()}/f"

    _download(tmp_path / "f", dead, server.url + "/wrong", server.url + "/right")

    assert (tmp_path / "f").read_bytes() == DATA


def test_every_failure_is_told(server: HttpServer, tmp_path: Path) -> None:
    dead = f"http://127.0.0.1:{dead_port()}/f"

    with pytest.raises(SurroundingsError) as caught:
        _download(tmp_path / "f", dead, server.url + "/gone")

    assert len(caught.value.problems) == 2


def test_stop_ends_a_download_and_keeps_what_came(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = Reply(DATA)
    stop = Stop()

    with pytest.raises(StoppedError):
        download(
            Http(),
            [server.url + "/f"],
            DIGEST,
            tmp_path / "f",
            counter=lambda _done, _total: stop.ask(),
            stop=stop,
        )

    assert DATA.startswith((tmp_path / "f").read_bytes())
    assert (tmp_path / "f").stat().st_size > 0
