"""Downloads: whole and right, or an error; and no byte twice where the server can resume."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from patchkit.errors import SurroundingsError
from patchkit.model.progress import Stop, StoppedError
from patchkit.upstream.http import Http, WrongHashError, download
from tests.support.archives import digest
from tests.support.projects import write_files
from tests.support.servers import HttpServer, Reply, dead_port

DATA = bytes(range(256)) * 1000
DIGEST = digest(DATA)


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


@pytest.mark.parametrize(
    ("left", "reply", "ranges"),
    [
        pytest.param(b"", Reply(DATA), [None], id="whole"),
        pytest.param(
            b"",
            lambda times: Reply(DATA, sent=100_000 if times == 1 else None),
            [None, "bytes=100000-"],
            id="broken",
        ),
        pytest.param(DATA[:5000], Reply(DATA), ["bytes=5000-"], id="interrupted"),
        pytest.param(DATA[:5000], Reply(DATA, ranges=False), ["bytes=5000-"], id="no ranges"),
        pytest.param(b"of another", Reply(DATA), ["bytes=10-", None], id="of another file"),
        pytest.param(DATA + b"too much", Reply(DATA), ["bytes=256008-", None], id="too much"),
        pytest.param(DATA[:-1] + b"x", Reply(DATA), ["bytes=256000-", None], id="wrong"),
        pytest.param(
            b"",
            lambda times: Reply(status=503) if times < 3 else Reply(DATA),
            [None, None, None],
            id="busy",
        ),
    ],
)
def test_a_download_is_whole_and_no_byte_comes_twice(
    server: HttpServer,
    tmp_path: Path,
    left: bytes,
    reply: Reply | Callable[[int], Reply],
    ranges: list[str | None],
) -> None:
    file = tmp_path / "d" / "f"
    server.replies["/f"] = reply
    if left:
        write_files(tmp_path, {"d/f": left})

    counts = _download(file, server.url + "/f")

    assert file.read_bytes() == DATA
    assert counts[-1] == (len(DATA), len(DATA))
    assert [each.headers.get("Range") for each in server.requests] == ranges


def test_a_connection_that_always_breaks(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = Reply(DATA, sent=1000, ranges=False)

    with pytest.raises(SurroundingsError, match=f"broke at byte 1000 of {len(DATA)}"):
        _download(tmp_path / "f", server.url + "/f")

    assert server.asked("/f") == 3


def test_a_wrong_hash_names_both(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/f"] = Reply(b"other")

    with pytest.raises(WrongHashError) as caught:
        _download(tmp_path / "f", server.url + "/f")

    assert {digest(b"other"), DIGEST} <= set(re.findall(r"\b[0-9a-f]{64}\b", str(caught.value)))
    assert not (tmp_path / "f").exists()
    assert server.asked("/f") == 1


def test_mirrors_are_tried_in_order_and_every_failure_is_told(
    server: HttpServer, tmp_path: Path
) -> None:
    server.replies["/wrong"] = Reply(b"other")
    server.replies["/right"] = Reply(DATA)
    dead = f"http://127.0.0.1:{dead_port()}/f"

    with pytest.raises(SurroundingsError) as caught:
        _download(tmp_path / "f", dead, server.url + "/gone")
    _download(tmp_path / "f", dead, server.url + "/wrong", server.url + "/right")

    assert len(caught.value.problems) == 2
    assert (tmp_path / "f").read_bytes() == DATA


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
