"""What a patch's header says of its way upstream: that it was sent there, is to be, never will be,
or came from there. Yocto's `Upstream-Status`, DEP-3's fields, and trailers that name a request.
"""

from __future__ import annotations

import re

_REQUEST = r"(?:/pulls?/|/merge_requests/|[#!])(\d{1,9})\b"
_TAKEN = r"Upstream-Status: *Backport\b|Applied-Upstream: *\S|Origin: *(?:upstream|backport)\b"
_NEVER = r"Upstream-Status: *(?:Inappropriate|Denied)\b|Forwarded: *not-needed\b"
_SENT = (
    r"Upstream-Status: *(?:Submitted|Accepted)\b|Forwarded: *(?!no\b)\S"
    rf"|(?:PR|Pull-Request|Link): .*{_REQUEST}"
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


def requests_in(said: str) -> tuple[int, ...]:
    """The pull or merge requests that a text names."""
    return tuple(map(int, re.findall(_REQUEST, said)))
