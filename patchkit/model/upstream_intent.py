"""What a patch's header says of its way upstream: that it was sent there, is to be, never will be,
or came from there. Yocto's `Upstream-Status`, DEP-3's fields, and trailers that name a request; and
the requests by which commits came, and the commits that they were made from, as their messages say.
"""

from __future__ import annotations

import re

_REQUEST = r"(?:/pulls?/|/merge_requests/|[#!])(\d{1,9})\b"
#: Fields that name a request of the patch's own; of `PR` a bare number is one.
_FIELDS = re.compile(
    r"^(?:Upstream-Status|Forwarded|Applied-Upstream|Origin|PR|Pull-Request|Link):(.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_BARE = re.compile(r"^(?:PR|Pull-Request): *(\d{1,9})\b", re.IGNORECASE | re.MULTILINE)
#: How a commit's message names a request below its subject.
_NAMED = re.compile(
    r"\b(?:PR|MR|(?:pull|merge)[- ]request|part\s+of)s?:?\s?\S*[#!](\d{1,9})\b"
    r"|/(?:pulls?|merge_requests)/(\d{1,9})\b|^(?:PR|Pull-Request): *(\d{1,9})\b",
    re.IGNORECASE | re.MULTILINE,
)
_ID = r"\b[0-9a-f]{7,40}\b"
#: Lines of a message that name the commit of upstream from which a patch was made.
_MADE_FROM = re.compile(
    rf"\(cherry[ -]picked from commit ({_ID})"
    rf"|^(?:Applied-Upstream|Upstream-commit):.*?({_ID})"
    rf"|^Upstream-Status:[ \t]*Backport\b.*?({_ID})"
    rf"|^Origin:[ \t]*(?:upstream|backport)\b.*?({_ID})"
    rf"|^(?:\[ *)?(?:commit ({_ID}) upstream|Upstream commit ({_ID}))",
    re.IGNORECASE | re.MULTILINE,
)
_CAME_BY = re.compile(
    r"\(#(\d{1,9})\)\s*$|^Merge pull request #(\d{1,9})\b"
    r"|\(!(\d{1,9})\)\s*$|^!(\d{1,9})\b|See merge request \S*!(\d{1,9})\b"
)
_TAKEN = r"Upstream-Status: *Backport\b|Applied-Upstream: *\S|Origin: *(?:upstream|backport)\b"
_NEVER = r"Upstream-Status: *(?:Inappropriate|Denied)\b|Forwarded: *not-needed\b"
_SENT = (
    r"Upstream-Status: *(?:Submitted|Accepted)\b|Forwarded: *(?!no\b)\S"
    rf"|(?:PR|Pull-Request): *\d|(?:PR|Pull-Request|Link): .*{_REQUEST}"
)
_SEND = r"Upstream-Status: *(?:Pending|Inactive-Upstream)\b|Forwarded: *no\b"
#: The lines that say each intent; what counts more comes first.
_LINES = {"taken": _TAKEN, "never": _NEVER, "sent": _SENT, "send": _SEND}


def intent_of(message: str) -> tuple[str, str]:
    """The intent that a patch's message tells ("" for none), and what it says with it."""
    for intent, lines in _LINES.items():
        if found := re.search(rf"^(?:{lines}).*$", message, re.IGNORECASE | re.MULTILINE):
            return intent, found[0].partition(":")[2].strip()
    return "", ""


def request_number(subject: str) -> int | None:
    """The pull or merge request that a commit came by, as its subject says; the last one named."""
    found = [number for match in _CAME_BY.findall(subject) for number in match if number]
    return int(found[-1]) if found else None


def requests_named(body: str) -> frozenset[int]:
    """The pull or merge requests that a commit's message names below its subject."""
    return frozenset(int(number) for names in _NAMED.findall(body) for number in names if number)


def commits_named(message: str) -> tuple[str, ...]:
    """The ids of commits, in full or short, that a message names as what a change was made from."""
    return tuple(oid for ids in _MADE_FROM.findall(message) for oid in ids if oid)


def requests_of(message: str) -> frozenset[int]:
    """The pull or merge requests that a patch's message names as its own."""
    found = {request_number(message.partition("\n")[0])} - {None}
    numbers = [*re.findall(_REQUEST, "\n".join(_FIELDS.findall(message))), *_BARE.findall(message)]
    return frozenset({*found, *map(int, numbers)})  # type: ignore[arg-type]
