"""What is found, by whoever looks, and the upstream commit that is its cause."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from msgspec import Struct

from patchkit.errors import Problem
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId


class Severity(str, Enum):
    """How much a finding matters, from worst to least."""

    ERROR = "error"
    WARNING = "warning"
    STYLE = "style"  # not in canonical form; an error with --strict
    NOTE = "note"  # worth knowing, never a reason to fail


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

    def __str__(self) -> str:
        request = f" (#{self.request})" if self.request is not None else ""
        subject = f"{self.subject}{request if request not in self.subject else ''}"
        via = f", by way of merge {short_id(self.via.commit)}" if self.via is not None else ""
        return f"{short_id(self.commit)} of {self.day} by {self.author}: {subject}{via}"


class Finding(Struct, frozen=True):
    """One thing that was found, as every report says it.

    `code` is a stable word for machines ("header-reason"); `what` is a sentence; `where` a file
    with its line, a patch or a component; `hint` what to do, empty where that is plain. `lines` are
    details, `by` is the upstream commit that is the cause. `about` names it in the same way from
    run to run, where place and sentence do not. `of` is what it was found in, as "MANIFEST:
    COMPONENT": the report that holds it knows, and fills it in.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"of"})

    severity: Severity  # how bad it is
    code: str
    what: str
    where: str = ""
    hint: str = ""
    lines: tuple[str, ...] = ()
    by: Landed | None = None
    about: str = ""
    of: str = ""

    def __str__(self) -> str:
        return str(self.problem)

    @property
    def problem(self) -> Problem:
        """The finding as a place, a sentence and a hint."""
        return Problem(self.what, self.where, self.hint)

    @property
    def subject(self) -> str:
        """What it is about, in the same words as long as it is there."""
        return f"{self.of}/{self.about or f'{self.where}/{self.what}'}"

    @property
    def cause(self) -> str:
        """A key that all findings share that one upstream commit brought about."""
        return f"{self.code}\0{self.by.commit if self.by is not None else self.subject}"

    @property
    def text(self) -> str:
        """All that there is to say of it, as lines."""
        by = [f"by {self.by}"] if self.by is not None else []
        head = f"{self.of}: {self}" if self.of else str(self)
        return "\n".join([head, *by, *self.lines, *([self.hint] if self.hint else [])])
