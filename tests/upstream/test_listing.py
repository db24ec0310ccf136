"""What indexes list, in each of the forms in which they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.upstream.http import Http
from patchkit.upstream.index import ListedFile, place_files, project_files
from tests.support.projects import write_files
from tests.support.servers import HttpServer, Reply

DIGEST = "a" * 64


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


def test_links_are_relative_to_the_base_or_to_where_a_redirect_leads(server: HttpServer) -> None:
    page = b'<base href="https://h.invalid/x/"><a href="demo-1.tar.gz">demo</a>'
    server.replies["/based/demo/"] = Reply(page, "text/html")
    server.replies["/simple/demo/"] = Reply(status=302, headers={"Location": "/mirror/demo/"})
    server.replies["/mirror/demo/"] = Reply(b'<a href="demo-1.tar.gz">x</a>', "text/html")

    (based,) = project_files(Http(), server.url + "/based", "demo")
    (led,) = project_files(Http(), server.url + "/simple", "demo")

    assert based.url == "https://h.invalid/x/demo-1.tar.gz"
    assert led.url == server.url + "/mirror/demo/demo-1.tar.gz"
    assert project_files(Http(), server.url + "/unknown", "demo") == ()


def test_the_index_password_goes_for_its_files_only(server: HttpServer) -> None:
    page = b'<a href="demo-1.tar.gz">x</a><a href="https://h.invalid/demo-2.tar.gz">y</a>'
    server.replies["/simple/demo/"] = Reply(page, "text/html", login="ann:pass")
    index = server.url.replace("//", "//ann:pass@") + "/simple"

    here, elsewhere = project_files(Http(), index, "demo")

    assert here.url.startswith("http://ann:pass@127.0.0.1")
    assert elsewhere.url == "https://h.invalid/demo-2.tar.gz"


def test_an_index_in_a_folder(tmp_path: Path) -> None:
    write_files(tmp_path, {"simple/demo/index.html": '<a href="../../f/demo-1.zip">x</a>'})

    (file,) = project_files(Http(), (tmp_path / "simple").as_uri(), "demo")

    assert file.url == (tmp_path / "f" / "demo-1.zip").as_uri()
    assert project_files(Http(), (tmp_path / "simple").as_uri(), "other") == ()


def test_a_folder_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    write_files(folder, {"demo-1.tar.gz": "", "demo-1-py3-none-any.whl": ""})

    files = place_files(Http(), str(folder))

    assert files == place_files(Http(), folder.as_uri())
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


@pytest.mark.parametrize(
    "name", ["demo-1.0-py3-none-any.whl", "demo-1.0.exe", "demo", "", "demo-extra-1.0.tar.gz"]
)
def test_other_files_are_none_of_the_projects(name: str) -> None:
    file = ListedFile(name, "")

    assert not file.is_of("demo")
    assert (file.version is None) == (not name.endswith(".tar.gz"))
