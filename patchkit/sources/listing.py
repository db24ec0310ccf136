"""What a package index lists for a project: PEP 503 pages, PEP 691 JSON, folders of files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname

from msgspec import Struct

from patchkit.sources.http import Http, HttpError, Page
from patchkit.sources.identity import normal_project

_ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2,"
    " text/html;q=0.1"
)
_SDIST = re.compile(r"(?P<stem>.+)\.(?:tar\.gz|tgz|tar\.bz2|tar\.xz|tar|zip)", re.IGNORECASE)


class ListedFile(Struct, frozen=True):
    """A file of a project; `sha256` is "" where the index does not tell it."""

    name: str
    url: str
    sha256: str = ""

    @property
    def version(self) -> str | None:
        """The version of a source distribution; None for any other file."""
        match = _SDIST.fullmatch(self.name)
        return match["stem"].rpartition("-")[2] if match else None

    def is_of(self, project: str) -> bool:
        """Whether it is a source distribution of that project."""
        match = _SDIST.fullmatch(self.name)
        found = match["stem"].rpartition("-")[0] if match else ""
        return normal_project(found) == normal_project(project)


def project_files(http: Http, index: str, project: str) -> tuple[ListedFile, ...]:
    """The files that an index lists for a project; none if it does not know the project."""
    url = f"{index.rstrip('/')}/{normal_project(project)}/"
    folder = _local(url)
    if folder is not None:
        url = (folder / "index.html").as_uri()
    try:
        page = http.page(url, accept=_ACCEPT)
    except HttpError as error:
        if error.status in (404, 410):
            return ()
        raise
    return tuple(_with_login(file, index) for file in page_files(page))


def place_files(http: Http, place: str) -> tuple[ListedFile, ...]:
    """The files of a `--find-links` place: a folder, a page on disk, or the URL of a page."""
    path = Path(place).expanduser() if "://" not in place else _local(place)
    if path is not None and path.is_dir():
        return tuple(ListedFile(each.name, each.as_uri()) for each in sorted(path.iterdir()))
    url = path.absolute().as_uri() if path is not None else place
    return tuple(_with_login(file, url) for file in page_files(http.page(url, accept=_ACCEPT)))


def page_files(page: Page) -> Iterator[ListedFile]:
    """The files that a page names, in its order; ValueError if it is not what it says it is."""
    if page.kind.endswith("json"):
        yield from _json_files(page)
    else:
        parser = _Anchors(page.url)
        parser.feed(page.body.decode("utf-8", "replace"))
        yield from parser.files


def _json_files(page: Page) -> Iterator[ListedFile]:
    try:
        files = json.loads(page.body)["files"]
        for file in files:
            digest = file.get("hashes", {}).get("sha256", "")
            name = str(file["filename"])
            yield ListedFile(name, urljoin(page.url, file["url"]), digest.lower())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        hint = "this is no package index, or it is broken"
        raise HttpError(page.url, "its JSON lists no files", hint=hint) from error


class _Anchors(HTMLParser):
    """Collects the links of a page; their text does not matter, the file is named by the URL."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._base = url
        self.files: list[ListedFile] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See HTMLParser."""
        target = dict(attrs).get("href")
        if target is None:
            return
        with suppress(ValueError):  # no URL
            if tag == "base":
                self._base = urljoin(self._base, target)
            elif tag == "a":
                self.files.append(_linked(urljoin(self._base, target)))


def _linked(url: str) -> ListedFile:
    parts = urlsplit(url)
    digest = re.search(r"(?:^|&)sha256=([0-9a-fA-F]{64})", parts.fragment)
    name = unquote(parts.path.rpartition("/")[2])
    return ListedFile(
        name, parts._replace(fragment="").geturl(), digest[1].lower() if digest else ""
    )


def _local(url: str) -> Path | None:
    """The path of a file URL."""
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None


def _with_login(file: ListedFile, index: str) -> ListedFile:
    """The index's user and password go for its files on the same host, too, as with pip."""
    login, found, host = urlsplit(index).netloc.rpartition("@")
    parts = urlsplit(file.url)
    if not found or parts.netloc != host:
        return file
    url = parts._replace(netloc=f"{login}@{host}").geturl()
    return ListedFile(file.name, url, file.sha256)
