"""What is found, by whoever looks, and the upstream commit that is its cause."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from patchkit.model.objects import CommitId


class Severity(str, Enum):
    """How much a finding matters, from worst to least."""

    ERROR = "error"
    WARNING = "warning"
    STYLE = "style"  # not in canonical form; an error with --strict
    NOTE = "note"  # worth knowing, never a reason to fail


class Finding(Struct, frozen=True):
    """One thing that was found.

    `code` is a stable word for machines ("header-reason"); `where` a file with its line, a patch
    or a component; `hint` what to do, empty where that is plain.
    """

    severity: Severity  # how bad it is
    code: str
    what: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class Landed(Struct, frozen=True):
    """An upstream commit: when it landed (UTC), whose it is, and where to look at it.

    `request` is the pull or merge request that its subject names. The links are None where no web
    page of the upstream is known. `via` is the merge by which the commit came to the branch, None
    for one that was made on it; the date is then that of the merge.
    """

    commit: CommitId
    date: str
    author: str  # a name, without the address
    subject: str
    request: int | None = None
    link: str | None = None
    request_link: str | None = None
    via: Landed | None = None

    @property
    def day(self) -> str:
        """The date without the time."""
        return self.date[:10]
