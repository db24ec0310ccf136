"""Single files of other repositories, from servers of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import SurroundingsError
from patchkit.manifest.values import GitSource
from patchkit.model.objects import CommitId
from patchkit.model.progress import Silent, Stop
from patchkit.upstream.fetching import Fetching
from patchkit.upstream.git import fetch_files
from tests.support.damage import lose_blob
from tests.support.dumb import dumb_server
from tests.support.repos import Content, Symlink, Upstream
from tests.support.servers import dead_port

FILES: dict[str, Content] = {
    "docker/fix.patch": b"the fix\r\n",
    "docker/a[b]*.patch": b"odd\n",
    "ünï.patch": b"\x00\xff",
    "other": "x\n" * 9999,
    "link": Symlink("other"),
}
WANTED = ["docker/fix.patch", "docker/a[b]*.patch", "ünï.patch", "none", "docker", "link"]
FOUND = {name: FILES[name] for name in WANTED[:3]}


@pytest.fixture
def fetching(tmp_path: Path) -> Fetching:
    return Fetching("demo", tmp_path / "cache", Silent(), Stop())


@pytest.mark.parametrize("filters", [True, False])
def test_files_to_the_byte(upstream: Upstream, fetching: Fetching, filters: bool) -> None:
    commit = upstream.commit(FILES)
    upstream.commit({"later": "1\n"})
    upstream.git("config", "uploadpack.allowFilter", str(filters).lower())

    assert fetch_files(GitSource(upstream.url), commit, WANTED, fetching) == FOUND
    assert list(fetching.scratch.iterdir()) == []


def test_a_server_that_gives_out_branches_only(upstream: Upstream, fetching: Fetching) -> None:
    commit = upstream.commit(FILES)
    upstream.commit({"later": "1\n"})
    with dumb_server(upstream) as url:
        assert fetch_files(GitSource(url), commit, WANTED, fetching) == FOUND


def test_mirrors_are_tried_in_order(upstream: Upstream, fetching: Fetching) -> None:
    commit = upstream.commit(FILES)
    source = GitSource(f"git://127.0.0.1:{dead_port()}/r.git", (upstream.url,))

    assert fetch_files(source, commit, WANTED, fetching) == FOUND


def test_every_failure_is_told(upstream: Upstream, fetching: Fetching) -> None:
    upstream.commit(FILES)
    source = GitSource(f"git://127.0.0.1:{dead_port()}/r.git", (upstream.url,))

    with pytest.raises(SurroundingsError) as caught:
        fetch_files(source, CommitId("1" * 40), WANTED, fetching)

    assert len(caught.value.problems) == 2


def test_only_the_blobs_asked_for_are_fetched(upstream: Upstream, fetching: Fetching) -> None:
    commit = upstream.commit(FILES)
    upstream.git("config", "uploadpack.allowFilter", "true")
    lose_blob(upstream, "x\n" * 9999)  # nobody can fetch all of it

    assert fetch_files(GitSource(upstream.url), commit, WANTED, fetching) == FOUND
