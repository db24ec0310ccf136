"""What indexes list, in each of the forms in which they do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from patchkit.upstream.http import Http
from patchkit.upstream.index import ListedFile, place_files, project_files
from tests.support.servers import HttpServer, Reply, http_server

DIGEST = "a" * 64


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with http_server() as running:
        yield running


def test_an_html_page(server: HttpServer) -> None:
    page = f"""<!DOCTYPE html><html><body><a name="top">Links</a>
    <a href="../../files/demo_x-1.0.tar.gz#sha256={DIGEST.upper()}" data-yanked>demo</a>
    <a href="https://h.invalid/demo_x-1.0-py3-none-any.whl#md5=1&amp;sha256={DIGEST}">wheel</a>
    <a href='/files/demo%20x-2.tar.gz'>no hash</a></body></html>"""
    server.replies["/simple/demo-x/"] = Reply(page.encode(), "text/html")

    assert project_files(Http(), server.url + "/simple/", "Demo_X") == (
        ListedFile("demo_x-1.0.tar.gz", f"{server.url}/files/demo_x-1.0.tar.gz", DIGEST),
        ListedFile(
            "demo_x-1.0-py3-none-any.whl", "https://h.invalid/demo_x-1.0-py3-none-any.whl", DIGEST
        ),
        ListedFile("demo x-2.tar.gz", f"{server.url}/files/demo%20x-2.tar.gz"),
    )


def test_a_base_in_an_html_page(server: HttpServer) -> None:
    page = b'<base href="https://h.invalid/x/"><a href="demo-1.tar.gz">demo</a>'
    server.replies["/simple/demo/"] = Reply(page, "text/html")

    (file,) = project_files(Http(), server.url + "/simple", "demo")

    assert file.url == "https://h.invalid/x/demo-1.tar.gz"


def test_links_are_relative_to_where_a_redirect_leads(server: HttpServer) -> None:
    server.replies["/simple/demo/"] = Reply(status=302, headers={"Location": "/mirror/demo/"})
    server.replies["/mirror/demo/"] = Reply(b'<a href="demo-1.tar.gz">x</a>', "text/html")

    (file,) = project_files(Http(), server.url + "/simple", "demo")

    assert file.url == server.url + "/mirror/demo/demo-1.tar.gz"


def test_an_index_that_does_not_know_the_project(server: HttpServer) -> None:
    assert project_files(Http(), server.url + "/simple", "demo") == ()


def test_the_index_password_goes_for_its_files_only(server: HttpServer) -> None:
    page = b'<a href="demo-1.tar.gz">x</a><a href="https://h.invalid/demo-2.tar.gz">y</a>'
    server.replies["/simple/demo/"] = Reply(page, "text/html", login="ann:pass")
    index = server.url.replace("//", "//ann:pass@") + "/simple"

    here, elsewhere = project_files(Http(), index, "demo")

    assert here.url.startswith("http://ann:pass@127.0.0.1")
    assert elsewhere.url == "https://h.invalid/demo-2.tar.gz"


def test_an_index_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "simple" / "demo").mkdir(parents=True)
    (tmp_path / "simple" / "demo" / "index.html").write_text('<a href="../../f/demo-1.zip">x</a>')

    (file,) = project_files(Http(), (tmp_path / "simple").as_uri(), "demo")

    assert file.url == (tmp_path / "f" / "demo-1.zip").as_uri()
    assert project_files(Http(), (tmp_path / "simple").as_uri(), "other") == ()


@pytest.mark.parametrize("as_url", [True, False])
def test_a_folder_of_files(tmp_path: Path, as_url: bool) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "demo-1.tar.gz").touch()
    (folder / "demo-1-py3-none-any.whl").touch()

    files = place_files(Http(), folder.as_uri() if as_url else str(folder))

    assert [file.name for file in files] == ["demo-1-py3-none-any.whl", "demo-1.tar.gz"]
    assert files[1].url == (folder / "demo-1.tar.gz").as_uri()


def test_a_page_of_files(server: HttpServer, tmp_path: Path) -> None:
    server.replies["/all.html"] = Reply(b'<a href="demo-1.tar.gz">x</a>', "text/html")
    (tmp_path / "all.html").write_text('<a href="demo-1.tar.gz">x</a>')

    assert place_files(Http(), server.url + "/all.html")[0].url == server.url + "/demo-1.tar.gz"
    assert place_files(Http(), str(tmp_path / "all.html"))[0].url.startswith("file://")


@pytest.mark.parametrize(
    ("name", "project", "version"),
    [
        ("demo-1.0.tar.gz", "demo", "1.0"),
        ("megatron_core-0.16.0.tar.gz", "megatron-core", "0.16.0"),
        ("megatron-core-0.12.1.tar.gz", "Megatron.Core", "0.12.1"),
        ("demo-1.0.post1.zip", "demo", "1.0.post1"),
        ("demo-1.0+local.tar.xz", "demo", "1.0+local"),
    ],
)
def test_names_of_source_distributions(name: str, project: str, version: str) -> None:
    file = ListedFile(name, "")

    assert file.is_of(project)
    assert file.version == version


@pytest.mark.parametrize("name", ["demo-1.0-py3-none-any.whl", "demo-1.0.exe", "demo", ""])
def test_other_files_have_no_version(name: str) -> None:
    assert ListedFile(name, "").version is None
    assert not ListedFile(name, "").is_of("demo")


def test_a_longer_name_is_another_project() -> None:
    assert not ListedFile("demo-extra-1.0.tar.gz", "").is_of("demo")
