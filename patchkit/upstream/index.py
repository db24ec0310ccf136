"""A source distribution from the user's package index: found, fetched, never built.

`pip download` would run the package's own build code to learn its metadata. Here the index is read
(PEP 503 pages, PEP 691 JSON, or a folder of files), the file is taken by its SHA-256, and unpacked
without running anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname

from msgspec import Struct
from packaging.version import InvalidVersion, Version

from patchkit.errors import PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.repository import Repository
from patchkit.upstream.archive import commit_archive
from patchkit.upstream.fetching import Fetching
from patchkit.upstream.http import Http, HttpError, Page, WrongHashError, download
from patchkit.upstream.identity import normal_project
from patchkit.upstream.pip_config import IndexConfiguration, index_configuration

# What a package index lists for a project: PEP 503 pages, PEP 691 JSON, folders of files.


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


_SHOWN_VERSIONS = 5


def fetch_sdist(
    project: str, version: str, digest: str, repository: Repository, fetching: Fetching
) -> str:
    """Download and unpack the source distribution into `repository`; the base commit's id."""
    fetching.step("looking it up")
    configuration = index_configuration()
    http = Http(configuration.access)
    files = find_sdist(http, configuration, project, version, digest)
    archive = fetching.downloads / f"{digest}-{repository.git_dir.stem}"
    fetching.step("downloading")
    urls = [file.url for file in files]
    download(http, urls, digest, archive, counter=fetching.count, stop=fetching.stop)
    fetching.step("unpacking")
    message = f"{normal_project(project)} {version}\n\nSource distribution\nsha256: {digest}\n"
    commit = commit_archive(archive, message, repository)
    archive.unlink()
    return commit


def find_sdist(
    http: Http, configuration: IndexConfiguration, project: str, version: str, digest: str
) -> tuple[ListedFile, ...]:
    """Where to get the file: the one with that SHA-256, else those of that name without a hash.

    SurroundingsError if there is none, WrongHashError if the index has another file.
    """
    listed: list[ListedFile] = []
    errors: list[PatchkitError] = []
    for found in _listings(http, configuration, project, errors):
        exact = [file for file in found if file.sha256 == digest]
        if exact:
            return (_source(exact, project, version),)
        listed += found
    of_project = [file for file in listed if file.is_of(project)]
    of_version = [f for f in of_project if _same_version(f.version or "", version)]
    unhashed = tuple(file for file in of_version if not file.sha256)
    if unhashed:
        return unhashed
    if of_version:
        raise _other_file(of_version[0], project, version, digest)
    raise _not_there(of_project, errors, project, version)


def sdist_hash(project: str, version: str) -> str:
    """The SHA-256 that the user's index tells for a source distribution.

    SurroundingsError if there is none, or the index tells no hashes.
    """
    configuration = index_configuration()
    errors: list[PatchkitError] = []
    listed: list[ListedFile] = []
    for found in _listings(Http(configuration.access), configuration, project, errors):
        listed += (file for file in found if file.is_of(project))
        for file in listed:
            if file.sha256 and _same_version(file.version or "", version):
                return file.sha256
    if any(_same_version(file.version or "", version) for file in listed):
        what = f"the package index tells no SHA-256 of {project} {version}"
        raise SurroundingsError(what, hint="download it, and take the output of sha256sum")
    raise _not_there(listed, errors, project, version)


def newest_version(project: str) -> str:
    """The highest version that the user's index has a source distribution of, final ones first.

    SurroundingsError if there is none.
    """
    configuration = index_configuration()
    errors: list[PatchkitError] = []
    listed: list[ListedFile] = []
    for found in _listings(Http(configuration.access), configuration, project, errors):
        listed += (file for file in found if file.is_of(project))
    versions = {v: parsed for v in _versions(listed) if (parsed := _version(v)) is not None}
    if not versions:
        raise _not_there((), errors, project, "")
    return max(versions, key=lambda each: (not versions[each].is_prerelease, versions[each]))


def _versions(files: Iterable[ListedFile]) -> list[str]:
    return [file.version for file in files if file.version]


def _listings(
    http: Http, configuration: IndexConfiguration, project: str, errors: list[PatchkitError]
) -> Iterator[tuple[ListedFile, ...]]:
    """What each place lists, one after the other; a place that fails is noted in `errors`."""
    looks: list[Callable[[], tuple[ListedFile, ...]]] = [
        *(partial(place_files, http, place) for place in configuration.find_links),
        *(partial(project_files, http, index, project) for index in configuration.indexes),
    ]
    for look in looks:
        try:
            yield look()
        except HttpError as error:
            errors.append(error)


def _source(files: Iterable[ListedFile], project: str, version: str) -> ListedFile:
    """The source distribution among the files with the right hash: there is nothing else to be."""
    found = next(iter(files))
    if not found.is_of(project) or not _same_version(found.version or "", version):
        problem = Problem(
            f"the sha256 of {project} {version} is that of {found.name}",
            hint="take version and sha256 of the source distribution, not of a wheel",
        )
        raise WrongHashError(problem)
    return found


def _other_file(file: ListedFile, project: str, version: str, digest: str) -> PatchkitError:
    return WrongHashError(
        Problem(
            f"{project} {version} has sha256 {file.sha256} on the index,"
            f" the manifest says {digest}",
            hint="if upstream really changed this file, look at it, then correct the pin",
        )
    )


def _not_there(
    files: Iterable[ListedFile], errors: list[PatchkitError], project: str, version: str
) -> PatchkitError:
    problems = [problem for error in errors for problem in error.problems]
    versions = list(dict.fromkeys(file.version for file in files if file.version))
    if versions or not problems:
        what = f"no source distribution of {f'{project} {version}'.strip()} on the package index"
        shown = ", ".join(sorted(versions, key=_version_key)[-_SHOWN_VERSIONS:])
        hint = f"there are {shown}" if shown else "check the name, or pip's index configuration"
        problems.insert(0, Problem(what, hint=hint))
    return SurroundingsError(*problems)


def _same_version(one: str, other: str) -> bool:
    return one == other or (_version(one) is not None and _version(one) == _version(other))


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _version_key(text: str) -> Version:
    """Versions that are none come first."""
    return _version(text) or Version("0.dev0")
