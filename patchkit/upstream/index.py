"""A source distribution from the user's package index: found, fetched, never built.

`pip download` would run the package's own build code to learn its metadata. Here the index is read
(PEP 503 pages, or a folder of files), the file is taken by its SHA-256, and unpacked
without running anything.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from threading import Lock
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname

from msgspec import Struct, field
from packaging.version import InvalidVersion, Version

from patchkit.disk.files import read_plain
from patchkit.disk.result_cache import read_as
from patchkit.errors import PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.repository import Repository
from patchkit.manifest.values import normal_name
from patchkit.model.objects import CommitId, lines_of
from patchkit.model.syntax import python_literal
from patchkit.upstream.archive import fetch_unpacked
from patchkit.upstream.fetching import Fetching
from patchkit.upstream.http import Access, Http, HttpError, Page, WrongHashError

# Where the user's own pip or uv looks for packages, and how it gets there.
#
# pip is asked (`pip config list` knows files, virtual environments and PIP_* variables; the help
# text knows the default index), so that no host has to be named here. What uv is told by its
# variables and the user's uv.toml counts as well, and where there is no pip, uv's default. The
# order of indexes does not matter to us: a SHA-256 says which file is meant.
#
# A project's own [tool.uv] does not count: it says where that project's dependencies come from.
# Reading uv.toml needs Python 3.11; with 3.10 the variables alone count.


class _UvIndex(Struct):
    url: str
    default: bool = False


class _UvFile(Struct, rename="kebab"):
    """What a uv.toml says of indexes, in uv's own words."""

    index: tuple[_UvIndex, ...] = ()
    index_url: str = ""
    extra_index_url: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    allow_insecure_host: tuple[str, ...] = ()


def uv_options(environment: Mapping[str, str]) -> dict[str, str]:
    """What uv is configured to use, as pip's options; of the main index variables come first."""
    file = _uv_file(environment)
    firsts = [each.url for each in file.index if each.default]
    more = [each.url for each in file.index if not each.default]
    given = {
        "index-url": (["UV_DEFAULT_INDEX", "UV_INDEX_URL"], [*firsts, file.index_url]),
        "extra-index-url": (["UV_INDEX", "UV_EXTRA_INDEX_URL"], [*more, *file.extra_index_url]),
        "find-links": (["UV_FIND_LINKS"], file.find_links),
        "trusted-host": (["UV_INSECURE_HOST"], file.allow_insecure_host),
    }
    options: dict[str, str] = {}
    for option, (names, texts) in given.items():
        words = [word for name in names for word in re.split(r"[\s,]+", environment.get(name, ""))]
        # an index may have a name: `internal=https://...`
        options[option] = " ".join(
            re.sub(r"^[A-Za-z0-9._-]+=(?=[a-z]+:)", "", word) for word in (*words, *texts) if word
        )
    return options


def _uv_file(environment: Mapping[str, str]) -> _UvFile:
    home = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME", "/"), ".config"))
    path = Path(environment.get("UV_CONFIG_FILE") or Path(home, "uv", "uv.toml"))
    try:
        data = import_module("tomllib").loads(read_plain(path).decode())
    except (ImportError, OSError, ValueError, RecursionError):  # ImportError: Python 3.10
        return _UvFile()
    return read_as(data, _UvFile) or _UvFile()


# The later ones win, as they do for `pip download`; what is set for installing only still counts.
_SECTIONS = ("global", "install", "download", ":env:")

_STEERING = ("PIP_", "UV_", "HOME", "XDG_CONFIG", "VIRTUAL_ENV", "PATH")

_LOCK = Lock()


class IndexConfiguration(Struct, frozen=True):
    """Index URLs (PEP 503), places of plain files (`--find-links`), and the way to them."""

    indexes: tuple[str, ...]  # URLs, the main one first
    find_links: tuple[str, ...] = ()
    access: Access = field(default_factory=Access)


def index_configuration() -> IndexConfiguration:
    """The configuration of this machine's user, read once; SurroundingsError if there is none."""
    steering = sorted(item for item in os.environ.items() if item[0].startswith(_STEERING))
    with _LOCK:
        return _configuration(tuple(steering))


@cache
def _configuration(steering: Sequence[tuple[str, str]]) -> IndexConfiguration:
    """Asks pip; `steering` are the variables on which the answer depends."""
    environment = dict(steering)
    pip, listing = _asked_pip()
    options = pip_options(listing, environment)
    uv = uv_options(environment)
    first = options.get("index-url") or next(iter(uv["index-url"].split()), "")
    if not first and not _is_true(options.get("no-index", "")):
        first = default_index(
            _output([*([*pip, "install"] if pip else ["uv", "pip", "install"]), "--help"]) or ""
        )
    return configuration(options, uv, first)


def pip_options(listing: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The options in force, from the output of `pip config list`; without pip, from PIP_*."""
    options = {
        name[4:].lower().replace("_", "-"): value
        for name, value in environment.items()
        if name.startswith("PIP_")
    }
    rows = [re.fullmatch(r"([^.]+)\.([a-z0-9-]+)=(.*)", line) for line in lines_of(listing)]
    for section in _SECTIONS:
        for row in rows:
            if row is not None and row[1] == section:
                options[row[2]] = _text(row[3])
    return options


def default_index(help_text: str) -> str:
    """The index that pip or uv uses when none is configured, from its help text; "" for none."""
    plain = re.sub(r"\s+", " ", help_text)
    found = re.search(r"--(?:default-index|index-url) .*?default:? <?(https?://[^\s)>]+)", plain)
    return found[1] if found else ""


def configuration(
    options: Mapping[str, str], uv: Mapping[str, str], first: str
) -> IndexConfiguration:
    """What pip's and uv's options come to, with `first` as the main index."""

    def listed(option: str) -> list[str]:
        return f"{options.get(option, '')} {uv.get(option, '')}".split()

    indexes = [] if _is_true(options.get("no-index", "")) else [first, *listed("extra-index-url")]
    timeout = options.get("timeout") or options.get("default-timeout") or ""
    access = Access(
        proxy=options.get("proxy", ""),
        certificates=options.get("cert", ""),
        client_certificate=options.get("client-cert", ""),
        trusted=frozenset(listed("trusted-host")),
        timeout=float(timeout) if timeout.isdigit() and timeout != "0" else Access().timeout,
    )
    found = IndexConfiguration(_distinct(indexes), _distinct(listed("find-links")), access)
    if not found.indexes and not found.find_links:
        raise SurroundingsError(
            "neither pip nor uv says which package index to use",
            hint="install pip for this Python, or set PIP_INDEX_URL or UV_DEFAULT_INDEX",
        )
    return found


def _distinct(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


def _is_true(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "on")


def _text(written: str) -> str:
    """A value as pip prints it: a Python literal."""
    try:
        return str(python_literal(written))
    except (SyntaxError, ValueError):
        return written


def _asked_pip() -> tuple[list[str], str]:
    """The user's pip (that of this Python, else the one on PATH) and its configuration."""
    for pip in ([sys.executable, "-m", "pip"], ["pip"], ["pip3"]):
        listing = _output([*pip, "config", "list"])
        if listing is not None:
            return pip, listing
    return [], ""


def _output(command: Sequence[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    # in the root folder, where no folder called pip can be taken for it
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "COLUMNS": "200"}
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        cwd="/",
        check=False,
    )
    return done.stdout if done.returncode == 0 else None


# What a package index lists for a project: PEP 503 pages, which every index has; folders of files.


_ACCEPT = "application/vnd.pypi.simple.v1+html, text/html;q=0.5"
_SDIST = re.compile(r"(?P<stem>.+)\.(?:tar\.gz|tgz|tar\.bz2|tar\.xz|tar|zip)", re.IGNORECASE)


class ListedFile(Struct, frozen=True):
    """A file of a project; `sha256` is "" where the index does not tell it."""

    name: str  # of the file, without folders
    url: str  # from which it is downloaded
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
        return normal_name(found) == normal_name(project)


def project_files(http: Http, index: str, project: str) -> tuple[ListedFile, ...]:
    """The files that an index lists for a project; none if it does not know the project."""
    url = f"{index.rstrip('/')}/{normal_name(project)}/"
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


def page_files(page: Page) -> Sequence[ListedFile]:
    """The files that a page names, in its order; ValueError if it is not what it says it is."""
    parser = _Anchors(page.url)
    parser.feed(page.body.decode("utf-8", "replace"))
    return parser.files


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
) -> CommitId:
    """Download and unpack the source distribution into `repository`; the base commit's id."""
    fetching.step("looking it up")
    configuration = index_configuration()
    http = Http(configuration.access)
    files = find_sdist(http, configuration, project, version, digest)
    urls = [file.url for file in files]
    message = f"{normal_name(project)} {version}\n\nSource distribution\nsha256: {digest}\n"
    return fetch_unpacked(http, urls, digest, repository, fetching, message=message)


def find_sdist(
    http: Http, configuration: IndexConfiguration, project: str, version: str, digest: str
) -> tuple[ListedFile, ...]:
    """Where to get the file: the one with that SHA-256, else those of that name without a hash.

    SurroundingsError if there is none, WrongHashError if the index has another file.
    """
    listed, problems = _listed(http, configuration, project)
    sdists = [file for file in listed if file.is_of(project)]
    of_version = [file for file in sdists if _same_version(file.version or "", version)]
    exact = next((file for file in listed if file.sha256 == digest), None)
    unhashed = tuple(file for file in of_version if not file.sha256)
    if exact is not None and exact not in of_version:
        what = f"the sha256 of {project} {version} is that of {exact.name}"
        hint = "take version and sha256 of the source distribution, not of a wheel"
        raise WrongHashError(Problem(what, hint=hint))
    if exact is not None or unhashed:
        return unhashed if exact is None else (exact,)
    if not of_version:
        raise _not_there(sdists, problems, project, version)
    there = of_version[0].sha256
    what = f"{project} {version} has sha256 {there} on the index, the manifest says {digest}"
    hint = "if upstream really changed this file, look at it, then correct the pin"
    raise WrongHashError(Problem(what, hint=hint))


def sdist_hash(project: str, version: str) -> str:
    """The SHA-256 that the user's index tells for a source distribution.

    SurroundingsError if there is none, or the index tells no hashes.
    """
    sdists, problems = _sdists(project)
    of_version = [file for file in sdists if _same_version(file.version or "", version)]
    if not of_version:
        raise _not_there(sdists, problems, project, version)
    told = next((file.sha256 for file in of_version if file.sha256), "")
    if not told:
        what = f"the package index has no SHA-256 for {project} {version}"
        raise SurroundingsError(what, hint="download it, and take the output of sha256sum")
    return told


def newest_version(project: str) -> str:
    """The highest version that the user's index has a source distribution of, final ones first.

    SurroundingsError if there is none.
    """
    sdists, problems = _sdists(project)
    found = {file.version: _version(file.version) for file in sdists if file.version}
    versions = {text: version for text, version in found.items() if version is not None}
    if not versions:
        raise _not_there((), problems, project, "")
    return max(versions, key=lambda each: (not versions[each].is_prerelease, versions[each]))


def _sdists(project: str) -> tuple[list[ListedFile], list[Problem]]:
    """The source distributions of a project, and what is wrong with places."""
    configuration = index_configuration()
    listed, problems = _listed(Http(configuration.access), configuration, project)
    return [file for file in listed if file.is_of(project)], problems


def _listed(
    http: Http, configuration: IndexConfiguration, project: str
) -> tuple[list[ListedFile], list[Problem]]:
    """What all places list, in their order, and what is wrong with those that fail."""
    listed: list[ListedFile] = []
    problems: list[Problem] = []
    looks: list[Callable[[], tuple[ListedFile, ...]]] = [
        *(partial(place_files, http, place) for place in configuration.find_links),
        *(partial(project_files, http, index, project) for index in configuration.indexes),
    ]
    for look in looks:
        try:
            listed += look()
        except HttpError as error:
            problems += error.problems
    return listed, problems


def _not_there(
    files: Iterable[ListedFile], problems: list[Problem], project: str, version: str
) -> PatchkitError:
    versions = {file.version: None for file in files if file.version}
    if versions or not problems:
        what = f"no source distribution of {f'{project} {version}'.strip()} on the package index"
        newest = sorted(versions, key=lambda each: _version(each) or Version("0.dev0"))
        shown = ", ".join(newest[-_SHOWN_VERSIONS:])
        hint = f"it has {shown}" if shown else "check the name, or pip's index configuration"
        problems = [Problem(what, hint=hint), *problems]
    return SurroundingsError(*problems)


def _same_version(one: str, other: str) -> bool:
    return one == other or (_version(one) is not None and _version(one) == _version(other))


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
