"""What a commit's subject tells about how it landed, and where people can look at it."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

_REQUEST = re.compile(
    r"\(#(\d{1,18})\)\s*$|^Merge pull request #(\d{1,18})\b"
    r"|\(!(\d{1,18})\)\s*$|^!(\d{1,18})\b|See merge request \S*!(\d{1,18})\b"
)
_REVERT = re.compile(r'^(?:Revert|Reapply) "|^revert[:(]', re.IGNORECASE)
_SCP = re.compile(r"(?:[A-Za-z0-9._~-]+@)?([A-Za-z0-9.-]+):([^/:].*)")


def request_number(subject: str) -> int | None:
    """The pull or merge request that a commit came by, as its subject says; the last one named."""
    found = [number for match in _REQUEST.findall(subject) for number in match if number]
    return int(found[-1]) if found else None


def is_revert(subject: str) -> bool:
    """Whether the subject says that the commit takes another one back."""
    return bool(_REVERT.match(subject))


def page_of(url: str) -> str | None:
    """The web page of the repository at `url`; None for one that has none that is known."""
    scp = _SCP.fullmatch(url) if "://" not in url else None
    if scp is not None:
        host, path = scp[1], scp[2]
    else:
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http", "ssh", "git"):
            return None
        host, path = (parts.hostname or ""), parts.path
    if not re.fullmatch(r"[A-Za-z0-9.-]+", host):
        return None
    path = path.strip("/").removesuffix(".git")
    return f"https://{host.lower()}/{quote(path, safe='/-._~')}" if path else None


def commit_page(page: str | None, commit: str) -> str | None:
    """The page of a commit."""
    if page is None:
        return None
    return f"{page}/-/commit/{commit}" if _is_gitlab(page) else f"{page}/commit/{commit}"


def request_page(page: str | None, number: int | None) -> str | None:
    """The page of a pull or merge request."""
    if page is None or number is None:
        return None
    if _is_gitlab(page):
        return f"{page}/-/merge_requests/{number}"
    return f"{page}/pulls/{number}" if "gitee.com/" in page else f"{page}/pull/{number}"


def _is_gitlab(page: str) -> bool:
    return "gitlab" in page.split("/")[2]
