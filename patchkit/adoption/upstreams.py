"""Which upstreams a carrier names, and where it keeps their pins."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from patchkit import entry_points
from patchkit.adoption.carrier import Carrier, folder_of, folders_up
from patchkit.manifest.pin_places import named_values
from patchkit.model.names import COMMIT_ID
from patchkit.model.variables import expanded

#: Files in which carriers keep pins and URLs.
_KEPT_IN = re.compile(
    r"(?i)(?:dockerfile|containerfile|makefile)(?:[.-].*)?|.*\.(?:dockerfile|mk|cmake|sh|commit)"
    r"|cmakelists\.txt|.*\.(?:md|bb|bbappend|inc|spec|hjson)|conandata\.yml|west.*\.ya?ml|(?:source|vcpkg)\.json|meta\.ya?ml|deps|pkgbuild|apkbuild"
    r"|.*git_tag|.*(?:version|revision|commit)"
)
#: Files of which the only line is a pin.
_ONE_LINE = re.compile(r"(?i).*\.commit|.*git_tag|.*(?:revision|commit)")
#: A release's tag, or a short id.
VERSION = re.compile(r"(?:[A-Za-z][\w-]*[-_/])?v?\d+(?:[._]\d+)+[\w.+-]*|v\d+|[0-9a-f]{7,40}")
_URL = re.compile(r"(?:https?|ssh|git|file)://[^\s\"'<>()\[\]{}`,;\\]+|git@[\w.-]+:[\w./~+-]+")
#: A folder that holds more folders than this is a collection.
_FEW = 50
#: Hosts where a repository is the first two folders of a path.
_FORGE = re.compile(r"(?:^|[.@])(?:git\w*|codeberg|bitbucket|opendev|gerrit)\.")
#: Before the path of one, in the place of file:line.
_SUBMODULE = "submodule "
_FIELD = re.compile(r"^\s*(path|url)\s*=\s*(\S+)\s*$", re.MULTILINE)
_LAST = re.compile(r"(?<=[/:])[^/:]*/\Z")  # of a URL's folders
#: Words of names that say what a value is, and not whose.
_KINDS = frozenset(
    (
        "git",
        "commit",
        "srcrev",
        "version",
        "tag",
        "ref",
        "rev",
        "revision",
        "sha",
        "hash",
        "branch",
        "base",
    )
)
#: Words of paths and repositories that tell none from others.
_COMMON = frozenset(("docker", "git", "lib", "patch", "patches", "src", "release", "latest"))
#: What stands between a repository's name and its commit, in one group.
_AT = r"(?:\.git)?@([\w./+-]+)"
_CHECKED_OUT = r"(?:\.git)?(?:(?!git clone)[\s\S]){0,300}?git checkout(?: -q)? ([\w./+-]+)"

# In a file that takes an archive: variables, URLs, and the SHA-256 nearby.
_ASSIGNED = re.compile(r"\s*(?:export\s+|\{%-?\s*set\s+)?(\w+)\s*[:?+]?=(.*)")
_USED = re.compile(r"\$\((\w+)\)|\$\{(\w+)\}|\$(\w+)|\{\{[ \t]*(\w+)[ \t]*\}\}")
_ARCHIVE = re.compile(
    r"https?://[^\s\"'<>()\[\]{}`,;\\]{1,300}\.(?:tar\.(?:gz|xz|bz2)|tgz|zip)(?![\w.])"
)
_HASH = re.compile(r"\b([0-9a-f]{64})\b|sha256-([A-Za-z0-9+/]{43}=)")
#: No person wrote a longer line.
_LONGEST = 2000
#: How many characters after its URL a hash may stand.
_NEAR = 400


class Upstream(Struct, frozen=True):
    """A repository that a carrier names, and what may be its pin.

    `pin` is what a manifest says: the place where `value`, a commit or a tag, stands; empty where
    no file near the patches says one. `about` are the words that say whose the value is.
    """

    url: str
    pin: tuple[tuple[str, str], ...]
    value: str
    where: str  # file:line of the pin; the submodule; "" without one
    about: frozenset[str]
    kind: str = "git"  # the key of the manifest's source: or archive, of which the pin is a hash

    @property
    def folder(self) -> str:
        """The folder that the pin is in."""
        return folder_of(self.where.removeprefix(_SUBMODULE))

    @property
    def words(self) -> frozenset[str]:
        """The words of the repository's or archive's name."""
        return words_of(self.name)

    @property
    def name(self) -> str:
        """What the repository or the archive is called, without the version of an archive."""
        called = re.sub(r"(\.git|\.tar\.\w+|\.tgz|\.zip)?/*$", "", self.url).rpartition("/")[2]
        if self.kind == "git":
            return called
        if VERSION.fullmatch(called):
            called = next(git_urls(self.url), called).rpartition("/")[2]
        return re.sub(r"[-_]v?\d[\w.+-]*$", "", called)


def words_of(text: str) -> frozenset[str]:
    """The words of a name, in lower case: `SGLANG_COMMIT` is sglang and commit."""
    return frozenset(re.findall(r"[a-z]{2,}[0-9]*", text.lower())) - _COMMON


def upstreams_near(carrier: Carrier, folder: str) -> list[Upstream]:
    """What files in a folder, in those around it and directly below these say."""
    folders = dict.fromkeys(map(folder_of, files_near(carrier, folder)))
    found = [*_submodules(carrier)]
    found += (upstream for inner in folders for upstream in _pinned_in(carrier, inner))
    pinned = {upstream.url.removesuffix(".git") for upstream in found}
    named = dict.fromkeys(url for inner in folders for url in _urls_in(carrier, inner))
    bare = (url for url in named if url.removesuffix(".git") not in pinned)
    found += (Upstream(url, (), "", "", frozenset()) for url in bare)
    first: dict[tuple[str, str], Upstream] = {}
    for upstream in found:
        first.setdefault((upstream.url.removesuffix(".git"), upstream.where), upstream)
    return [*first.values()]


@cache
def _pinned_in(carrier: Carrier, folder: str) -> list[Upstream]:
    """What the files of a folder say of pins, of repositories that it names or one around it."""
    urls = next((urls for up in folders_up(folder) if (urls := _urls_in(carrier, up))), [])
    found: list[Upstream] = []
    for read in map(entry_points.load, entry_points.named("patchkit.pins").values()):
        found += read(carrier, folder)
    for path in pin_files(carrier).get(folder, ()):
        own = set(git_urls(carrier.text(path)))
        for pin in (pin for url in urls for pin in _pins(carrier, path, url)):
            if own == {pin.url}:  # whose else
                found.append(replace(pin, about=pin.about | pin.words))
            elif pin.url in (own or urls) or pin.about & pin.words:
                found.append(pin)
        found += (*_beside_urls(carrier, path), *_archives(carrier, path))
    return found


@cache
def _urls_in(carrier: Carrier, folder: str) -> list[str]:
    """The repositories that files of one folder name."""
    text = "\n".join(carrier.text(path) for path in pin_files(carrier).get(folder, ()))
    return [*dict.fromkeys([*git_urls(text), *_by_variables(text)])]


def files_near(carrier: Carrier, folder: str) -> list[str]:
    """The files that may say of pins: in a folder, in those around it, and directly below these,
    but for folders of a collection, of which each is for something else; and in one of that path
    without its first folders, as `patches/x/y` is for what stands in `x/y`.
    """
    kept, parts = pin_files(carrier), folder.split("/")
    inner = ("/".join(parts[start:]) for start in range(1, len(parts)))
    paths = [path for mirrored in inner for path in kept.get(mirrored, ())]
    for up in folders_up(folder):
        below = [inner for inner in kept if folder_of(inner) == up]
        folders = {up, folder, *(below if len(below) <= _FEW else ())}
        paths += (path for inner in folders for path in kept.get(inner, ()))
    return sorted(set(paths))


@cache
def pin_files(carrier: Carrier) -> dict[str, list[str]]:
    """Folder -> the files in it in which a pin may be kept."""
    found: dict[str, list[str]] = {}
    for path in carrier.files:
        if _KEPT_IN.fullmatch(path.rpartition("/")[2]):
            found.setdefault(folder_of(path), []).append(path)
    return found


def git_urls(text: str) -> Iterator[str]:
    """The git repositories that a text names, as URLs that git takes."""
    for url in _URL.findall(text):
        if url.startswith("git@"):
            yield url
            continue
        try:
            parts = urlsplit(url)
        except ValueError:
            continue
        folders = parts.path.strip("/").partition("@")[0].split("/")
        if any("$" in folder for folder in folders[:2]) or "$" in parts.netloc:
            continue
        whole = next((n for n, name in enumerate(folders, 1) if name.endswith(".git")), 0)
        if whole or (_FORGE.search(parts.netloc) and len(folders) >= 2):
            scheme = "https" if parts.scheme == "git" else parts.scheme  # which forges have no more
            yield f"{scheme}://{parts.netloc}/{'/'.join(folders[: whole or 2])}"


def _by_variables(text: str) -> Iterator[str]:
    """A repository whose owner and name are variables."""
    values = {found.name: found.value for found in named_values(text, ("variable",))}
    owner, name = values.get("REPO_OWNER"), values.get("REPO")
    if owner and name:
        yield f"https://github.com/{owner}/{name}"


def _pins(carrier: Carrier, path: str, url: str) -> Iterator[Upstream]:
    """The values in a file that may be a repository's pin."""
    text, (folder, _, name) = carrier.text(path), path.rpartition("/")
    if _ONE_LINE.fullmatch(name):
        value = text.strip()
        if VERSION.fullmatch(value):
            about = (words_of(name) | words_of(folder)) - _KINDS
            yield Upstream(url, (("file", path),), value, f"{path}:1", about)
        return
    named = [*named_values(text, ("arg", "variable", "cmake"))]
    times = Counter((value.form, value.name) for value in named)
    every = Counter(word for value in named for word in words_of(value.name))
    common = {word for word, many in every.items() if many > max(2, len(named) // 2)}
    for found in named:
        words = words_of(found.name)
        is_pin = words & _KINDS or COMMIT_ID.fullmatch(found.value)
        if is_pin and VERSION.fullmatch(found.value) and times[found.form, found.name] == 1:
            pin, where = (("file", path), (found.form, found.name)), f"{path}:{found.line}"
            yield Upstream(url, pin, found.value, where, words - _KINDS - common)


def _beside_urls(carrier: Carrier, path: str) -> Iterator[Upstream]:
    """The repositories of which a file names the commit behind the URL: `URL@REF`, as pip takes it,
    or a clone and what is checked out of it.
    """
    text = carrier.text(path)
    for found in _URL.finditer(text):
        url = next(git_urls(found[0]), "")
        name = url.rpartition("/")[2].removesuffix(".git")
        for between in (_AT, _CHECKED_OUT) if url else ():
            pattern = re.escape(name) + between
            values = [at for at in re.finditer(pattern, text) if VERSION.fullmatch(at[1])]
            if len(values) == 1:
                line = text.count("\n", 0, values[0].start(1)) + 1
                pin, words = (("file", path), ("pattern", pattern)), words_of(url)
                yield Upstream(url, pin, values[0][1], f"{path}:{line}", words)


def _submodules(carrier: Carrier) -> Iterator[Upstream]:
    for section in carrier.text(".gitmodules").split("[submodule"):
        fields = dict(_FIELD.findall(section))
        path, url = fields.get("path", ""), fields.get("url", "")
        url = _from_remote(carrier.remote, url) if url.startswith(".") else url
        if path in carrier.submodules and _URL.fullmatch(url):
            pin, commit = (("submodule", path),), carrier.submodules[path]
            yield Upstream(url, pin, commit, _SUBMODULE + path, words_of(path))


def _from_remote(remote: str, url: str) -> str:
    """A submodule's URL as git reads it: a relative one starts from the carrier's own remote."""
    place = remote.rstrip("/") + "/"
    while url.startswith("."):
        step, _, url = url.partition("/")
        if step == "..":
            place = _LAST.sub("", place)
    return place + url


def _archives(carrier: Carrier, path: str) -> Iterator[Upstream]:
    """The archives that a file names with their SHA-256, which may stand in a file beside it, on a
    line with the archive's name.
    """
    lines = [line for line in carrier.text(path).split("\n") if len(line) < _LONGEST]
    assigned = filter(None, map(_ASSIGNED.match, lines))
    values = {found[1]: found[2].partition("#")[0].strip(" \t\"'%}-") for found in assigned}
    lines = [_put(line, values) for line in lines]
    urls = {url: at for at, line in enumerate(lines, 1) for url in _ARCHIVE.findall(line)}
    urls |= dict.fromkeys(_by_site(values), 1)
    for url, at in urls.items():
        digest = _beside(carrier, path, url.rpartition("/")[2]) or _behind("\n".join(lines), url)
        if digest:
            pin, where = (("sha256", digest),), f"{path}:{at}"
            yield Upstream(url, pin, digest, where, words_of(path), "archive")


def _put(text: str, values: Mapping[str, str]) -> str:
    """The text with the variables' values in their places."""
    return expanded(
        text, _USED, lambda found: values.get(next(filter(None, found.groups())), found[0])
    )


def _by_site(values: Mapping[str, str]) -> Iterator[str]:
    """As Buildroot's packages have it: X_SITE and X_SOURCE, by default x-VERSION.tar.gz."""
    for name, site in values.items():
        prefix = name.removesuffix("_SITE")
        version = values.get(f"{prefix}_VERSION")
        if prefix != name and version and f"{prefix}_URL" not in values:
            plain = f"{prefix.lower().replace('_', '-')}-{version}.tar.gz"
            url = _put(f"{site}/{values.get(f'{prefix}_SOURCE', plain)}", values)
            yield from _ARCHIVE.findall(url)


def _beside(carrier: Carrier, path: str, archive: str) -> str:
    """The hash of an archive in a file of the same folder; "" for none."""
    for file in carrier.files:
        if folder_of(file) == folder_of(path) and file.endswith((".hash", "SHA256SUMS", "sources")):
            for line in carrier.text(file).split("\n"):
                if line.split()[-1:] == [archive] and (found := _HASH.search(line)):
                    return found[1]
    return ""


def _behind(text: str, url: str) -> str:
    """The hash that follows a URL, or the only one of the file."""
    start = text.find(url)
    found = _HASH.search(text, start, start + len(url) + _NEAR) if start >= 0 else None
    every = {match[0]: match for match in _HASH.finditer(text)}
    if found is None and len(every) == 1:
        [found] = every.values()
    if found is None:
        return ""
    return found[1] or base64.b64decode(found[2]).hex()
