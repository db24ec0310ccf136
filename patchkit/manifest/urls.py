"""Which URLs a manifest may name, and what is wrong with the others.

Remote: https, http, ssh, git, and ssh's short form `user@host:path`. Local, because a manifest is
always a file of this machine: only said outright, as `file:///folder` or as a path that begins with
`./` or `../` (taken from the project's root). Everything else is refused: `ext::` and other remote
helpers run programs, a leading `-` would be read as an option, a bare path may be meant as either.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from patchkit.manifest.shapes import Complaint

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_REST = r"/[^\s\\]+"
_USER = r"(?:[^\s@/:-][^\s@/]*@)?"
_LOCAL = r"file:///[^\s\\]+|\.\.?(?:/[^\s\\]*)?"

#: What the JSON Schema can say about a git URL, an archive URL.
GIT_PATTERN = (
    rf"(?:https?|ssh|git)://{_USER}{_HOST}{_REST}"
    rf"|[A-Za-z0-9_][A-Za-z0-9_.-]*@{_HOST}:[^\s\\-][^\s\\]*|{_LOCAL}"
)
ARCHIVE_PATTERN = rf"https?://{_USER}{_HOST}{_REST}|{_LOCAL}"

_RELATIVE = re.compile(r"\.\.?(/.*)?")
_PASSWORD = re.compile(r"(?P<scheme>https?|git|ssh)://(?P<user>[^@/]*)@")

_FORMS = "https://host/path, ssh://host/path, user@host:path, file:///folder or ./folder"


def is_local(url: str) -> bool:
    """Whether `url` names a place on this machine."""
    return url.startswith("file:") or _RELATIVE.fullmatch(url) is not None


def resolve_url(url: str, root: Path) -> str:
    """`url` with a relative path made a file URL; `root` is the project's folder."""
    if not _RELATIVE.fullmatch(url):
        return url
    from urllib.parse import quote  # noqa: PLC0415 (3 ms, and rarely needed)

    return "file://" + quote(os.path.normpath(root.absolute() / url))


def holds_secret(url: str) -> bool:
    """Whether `url` carries a password, or a user name where only a token makes sense."""
    match = _PASSWORD.match(url)
    if match is None:
        return False
    return ":" in match["user"] or match["scheme"].startswith("http")


def without_secret(text: str) -> str:
    """A text with what could be a secret in a URL left out, for messages."""
    return re.sub(r"((?<=http://)|(?<=https://))[^/@]*@|(?<=://)[^/@:]*:[^/@]*@", "", text)


def check_url(text: str) -> Complaint | None:
    """What is wrong with the URL of a repository or an archive, beyond its pattern."""
    if text.startswith("-"):
        return Complaint("begins with -, which programs read as an option", _FORMS)
    if re.match(r"[A-Za-z0-9+.-]*::", text):
        return Complaint("names a remote helper, which runs a program", _FORMS)
    if re.match(r"file://[^/]", text) or text in ("file:", "file://", "file:///"):
        return Complaint("names no folder of this machine", "file:///absolute/path, or ./path")
    if "\\" in text:
        return Complaint("has a backslash", "write forward slashes")
    if re.search(r"\s", text):
        return Complaint("has a blank in it", "write %20 for a blank in a URL")
    return _path_complaint(text)


def _path_complaint(text: str) -> Complaint | None:
    if text.startswith("/"):
        return Complaint("is a path, not a URL", f"file://{text} if a local folder is meant")
    if text.startswith("~"):
        return Complaint("is in a home folder, which is another one for everybody", _FORMS)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):/", text)
    if scheme and scheme[1] not in ("https", "http", "ssh", "git", "file"):
        return Complaint(f"has the scheme {scheme[1]}, which is not allowed", _FORMS)
    if ":" not in text and not _RELATIVE.fullmatch(text):
        return Complaint("is no URL", f"./{text} if a local folder is meant; else {_FORMS}")
    return None
