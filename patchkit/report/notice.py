"""What reports are made of: notices for places, cases for patches."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from patchkit.drift.drift_report import Landed
from patchkit.model.names import short_id


class Level(str, Enum):
    """How much a notice matters; the words are SARIF's."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Notice(Struct, frozen=True):
    """One thing that was found; `rule` is a stable word, `path` a file of the project ("": none).

    `subject` names what it is about in a way that stays the same from run to run.
    """

    level: Level
    rule: str
    title: str
    message: str
    subject: str
    path: str = ""
    line: int = 1


class CaseVerdict(str, Enum):
    """What became of a case."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


class Case(Struct, frozen=True):
    """One patch, or a component as a whole, below its `suite`."""

    suite: str
    name: str
    verdict: CaseVerdict
    message: str = ""
    details: str = ""


def landed_words(commit: Landed) -> str:
    """A commit in one line."""
    request = f" (#{commit.request})" if commit.request is not None else ""
    subject = f"{commit.subject}{request if request not in commit.subject else ''}"
    via = f", by way of merge {short_id(commit.via.commit)}" if commit.via is not None else ""
    return f"{short_id(commit.commit)} of {commit.day} by {commit.author}: {subject}{via}"
