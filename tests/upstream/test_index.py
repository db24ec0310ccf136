"""Source distributions: found by their hash, fetched, and nothing of theirs is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.repository import init_repository
from patchkit.model.progress import Silent, Stop
from patchkit.upstream.fetching import Fetching
from patchkit.upstream.http import Http, WrongHashError
from patchkit.upstream.index import (
    IndexConfiguration,
    ListedFile,
    fetch_sdist,
    find_sdist,
    sdist_hash,
)
from tests.support.archives import digest, make_tar
from tests.support.repos import tree_files
from tests.support.servers import HttpServer, Reply, dead_port

SDIST = make_tar(
    {
        "demo-1.0/setup.py": "import os; open(os.environ['HOME'] + '/ran', 'w')\n",
        "demo-1.0/demo.py": "x = 1\n",
    }
)
DIGEST = digest(SDIST)


LINK = f"/files/demo-1.0.tar.gz#sha256={DIGEST}"


def _list(server: HttpServer, *links: str, project: str = "demo") -> None:
    page = "".join(f'<a href="{link}">x</a>' for link in links)
    server.replies[f"/simple/{project}/"] = Reply(page.encode(), "text/html")


def _find(*indexes: str, version: str = "1.0", wanted: str = DIGEST) -> tuple[ListedFile, ...]:
    return find_sdist(Http(), IndexConfiguration(indexes), "demo", version, wanted)


@pytest.mark.slow
def test_a_source_distribution_becomes_a_base(
    server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _list(server, LINK)
    server.replies["/files/demo-1.0.tar.gz"] = Reply(SDIST)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", server.url + "/simple")
    repository = init_repository(tmp_path / "r.git")
    fetching = Fetching("demo", tmp_path / "cache", Silent(), Stop())

    commit = fetch_sdist("Demo", "1.0", DIGEST, repository, fetching)

    assert set(tree_files(repository.git_dir, commit)) == {"setup.py", "demo.py"}
    message = repository.git("log", "-1", "--format=%B", commit).out.decode()
    assert message.strip() == f"demo 1.0\n\nSource distribution\nsha256: {DIGEST}"
    assert list(fetching.downloads.iterdir()) == []
    assert not (Path.home() / "ran").exists()


def test_the_hash_decides_and_files_without_one_are_attempted(server: HttpServer) -> None:
    _list(server, f"/files/demo-1.0.zip#sha256={'b' * 64}", LINK, "/files/demo-1.0.tar.xz")
    assert [file.name for file in _find(server.url + "/simple")] == ["demo-1.0.tar.gz"]

    _list(server, "/files/demo-1.0.tar.gz", "/files/demo-1.0.zip", "/files/demo-1.1.tar.gz")
    found = [file.name for file in _find(server.url + "/simple")]
    assert found == ["demo-1.0.tar.gz", "demo-1.0.zip"]


def test_versions_may_be_written_in_several_ways_and_all_indexes_are_asked(
    server: HttpServer,
) -> None:
    _list(server, LINK)
    indexes = [f"http://127.0.0.1:{dead_port()}", server.url + "/none", server.url + "/simple"]

    for version in ("1.0", "1.0.0", "1", "v1.0", "1.0.0.0"):
        assert _find(*indexes, version=version)


def test_a_hash_that_is_not_the_sdists(server: HttpServer) -> None:
    for link, version, said in (
        (f"/files/demo-1.0.tar.gz#sha256={'b' * 64}", "1.0", f"{'b' * 64}(.|\n)*{DIGEST}"),
        (f"/f/demo-1.0-none.whl#sha256={DIGEST}", "1.0", r"that of demo-1\.0-none\.whl"),
        (LINK, "2.0", r"demo 2\.0 is that of demo-1\.0"),
    ):
        _list(server, link)
        with pytest.raises(WrongHashError, match=said):
            _find(server.url + "/simple", version=version)

    assert server.asked("/files/demo-1.0.tar.gz") == 0


def test_what_is_on_no_index(server: HttpServer) -> None:
    missing = "no source distribution of demo 1.0 on the package index"
    with pytest.raises(SurroundingsError, match=missing):
        _find(server.url + "/simple")
    with pytest.raises(SurroundingsError, match="cannot be reached"):
        _find(f"http://127.0.0.1:{dead_port()}/simple")

    _list(server, *(f"/files/demo-0.{n}.tar.gz#sha256={n:064}" for n in (9, 10, 2, 11, 3, 1)))
    with pytest.raises(SurroundingsError) as caught:
        _find(server.url + "/simple")
    (problem,) = caught.value.problems
    assert (problem.what, problem.hint) == (missing, "it has 0.2, 0.3, 0.9, 0.10, 0.11")


@pytest.mark.slow
def test_the_hash_that_the_index_tells(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    _list(
        server,
        f"/f/demo-1.0-py3-none-any.whl#sha256={'b' * 64}",
        f"/f/demo-1.0.zip#sha256={DIGEST}",
    )
    _list(server, "/f/bare-1.0.zip", project="bare")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", server.url + "/simple")

    assert sdist_hash("demo", "1.0.0") == DIGEST
    with pytest.raises(SurroundingsError, match="has no SHA-256"):
        sdist_hash("bare", "1.0")
    with pytest.raises(SurroundingsError, match="no source distribution"):
        sdist_hash("demo", "2.0")
