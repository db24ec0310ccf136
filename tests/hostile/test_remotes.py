"""Git hosts that cut, stall, send garbage or say no: a sample of `python -m bench.remotes`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.remotes import Point, Stage
from tests.support.repos import Upstream
from tests.support.smart import Trick, smart_server

pytestmark = pytest.mark.slow

#: What is played on which answer (0: refs and capabilities), and what is then said.
TRICKS = {
    "cut in the greeting": (0, Trick(cut=80), "the connection broke"),
    "cut in the pack": (-1, Trick(cut=9000), "the connection broke"),
    "garbage in the greeting": (0, Trick(garbage=0), "the connection broke"),
    "garbage in the pack": (-1, Trick(garbage=9000), "the connection broke"),
    "no more bytes": (-1, Trick(stall=50), "the connection broke"),
    "no right": (0, Trick(status=403), "authentication needed"),
    "no login": (0, Trick(status=401), "authentication needed"),
    "not there": (0, Trick(status=404), "not found"),
    "broken": (0, Trick(status=500), "cannot be reached"),
    "too often": (0, Trick(status=429), "cannot be reached"),
    "to a file": (0, Trick(status=302, headers=(("Location", "file:///etc/x"),)), "error:"),
    "to a command": (0, Trick(status=302, headers=(("Location", "ext::sh -c id"),)), "error:"),
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("remotes")
        for name in ("HOME", "PATCHKIT_CACHE"):
            patch.setenv(name, str(folder / "home"))
        upstream = Upstream.create(folder / "upstream.git")
        with smart_server(upstream) as server:
            yield Stage(folder, upstream, server)


@pytest.mark.parametrize("name", TRICKS)
def test_a_fetch(stage: Stage, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request, trick, word = TRICKS[name]
    monkeypatch.setenv("PATCHKIT_CACHE", str(stage.root / "work" / "cache"))
    monkeypatch.setenv("GIT_HTTP_LOW_SPEED_TIME", "")
    point = Point("fetch", request % len(stage.sizes["fetch"]), name, trick)
    assert stage.broken(point) == []
    assert word in stage.said


@pytest.mark.parametrize("command", ["apply", "bump"])
def test_a_command_that_needs_the_pack(
    stage: Stage, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHKIT_CACHE", str(stage.root / "work" / "cache"))
    last = len(stage.sizes[command]) - 1
    assert (
        stage.broken(Point(command, last, "cut", Trick(cut=stage.sizes[command][last] // 2))) == []
    )
    assert "the connection broke" in stage.said
