"""Archives that a carrier takes: a URL, parts of which may be variables, and its SHA-256 nearby."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping

from patchkit.adoption.carrier import Carrier, folder_of

_ASSIGNED = re.compile(r"\s*(?:export\s+|\{%-?\s*set\s+)?(\w+)\s*[:?+]?=(.*)")
_USED = re.compile(r"\$\((\w+)\)|\$\{(\w+)\}|\$(\w+)|\{\{[ \t]*(\w+)[ \t]*\}\}")
_URL = re.compile(
    r"https?://[^\s\"'<>()\[\]{}`,;\\]{1,300}\.(?:tar\.(?:gz|xz|bz2)|tgz|zip)(?![\w.])"
)
_HASH = re.compile(r"\b([0-9a-f]{64})\b|sha256-([A-Za-z0-9+/]{43}=)")
#: Variables of variables are put in so often at most.
_ROUNDS = 5
#: A longer line is none that a person wrote.
_LONGEST = 2000
#: A hash stands at most so many characters behind its URL.
_NEAR = 400


def archives_in(carrier: Carrier, path: str) -> Iterator[tuple[str, str, int]]:
    """URL, SHA-256 and line of each archive that a file names; the hash may stand in a file beside
    it, on a line with the archive's name.
    """
    lines = [line for line in carrier.text(path).split("\n") if len(line) < _LONGEST]
    assigned = filter(None, map(_ASSIGNED.match, lines))
    values = {found[1]: found[2].partition("#")[0].strip(" \t\"'%}-") for found in assigned}
    lines = [_put(line, values) for line in lines]
    urls = {url: at for at, line in enumerate(lines, 1) for url in _URL.findall(line)}
    urls |= dict.fromkeys(_by_site(values), 1)
    for url, at in urls.items():
        digest = _beside(carrier, path, url.rpartition("/")[2]) or _behind("\n".join(lines), url)
        if digest:
            yield url, digest, at


def _put(text: str, values: Mapping[str, str]) -> str:
    """The text with the variables' values in their places."""
    for _ in range(_ROUNDS):
        put = _USED.sub(
            lambda found: values.get(next(filter(None, found.groups())), found[0]), text
        )
        if put == text or len(put) > 10 * _LONGEST:
            break
        text = put
    return text


def _by_site(values: Mapping[str, str]) -> Iterator[str]:
    """As Buildroot's packages have it: X_SITE and X_SOURCE, by default x-VERSION.tar.gz."""
    for name, site in values.items():
        prefix = name.removesuffix("_SITE")
        version = values.get(f"{prefix}_VERSION")
        if prefix != name and version:
            plain = f"{prefix.lower().replace('_', '-')}-{version}.tar.gz"
            url = _put(f"{site}/{values.get(f'{prefix}_SOURCE', plain)}", values)
            yield from _URL.findall(url)


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
