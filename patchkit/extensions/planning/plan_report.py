"""What planning a bump comes to, as values that `patchkit plan` prints."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from msgspec import Struct

from patchkit.drift.drift_report import PatchForecast
from patchkit.model.finding import Landed
from patchkit.model.outcome import Status

DAY = 24 * 60 * 60  # in seconds
_AS_IT_IS = (Status.UNCHANGED, Status.SHIFTED, Status.EMPTY)


class Grade(str, Enum):
    """How much a person has to do for a stack on a commit, from nothing to conflicts."""

    UNCHANGED = "unchanged"  # every patch applies as it is
    MERGED = "merged"  # some are merged, absorbed or regenerated, and nobody needs to look
    FLAGGED = "flagged"  # merged files are flagged for review
    CONFLICTED = "conflicted"  # files are left in conflict


class Effort(Struct, frozen=True, order=True):
    """The hand work that a stack takes on a commit: files in conflict, files to look at.

    `changed` counts the patches that would be rewritten.
    """

    conflicts: int = 0
    review: int = 0  # files to look at
    changed: int = 0

    @property
    def grade(self) -> Grade:
        """Its kind."""
        if self.conflicts:
            return Grade.CONFLICTED
        if self.review:
            return Grade.FLAGGED
        return Grade.MERGED if self.changed else Grade.UNCHANGED

    @property
    def level(self) -> int:
        """How much it is, to compare: 0 untouched, 1 merged, 2 to look at, 2 + n with conflicts."""
        return list(Grade).index(self.grade) + max(0, self.conflicts - 1)


class CommitRange(Struct, frozen=True):
    """Commits `first` to `last` of the line, on all of which the same becomes of the stack.

    Of a file that many commits change few versions are carried, which stand for the others: see
    `drift.sample`. `tried`: the last commit was carried to, with all that a bump knows.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"patches"})

    first: int
    last: int
    effort: Effort
    patches: tuple[PatchForecast, ...] = ()  # in the order of the series
    tried: bool = False


class FarthestCommit(Struct, frozen=True):
    """The newest commit that takes no more than so much work.

    `commit` is at `position` of the line, `behind` commits before the tip. `patches` are those that
    would not stay as they are; `stopped_by` is the next commit, which makes it more; None at the
    tip. `tried`: the stack was carried to `commit`, with all that a bump knows.
    """

    grade: Grade
    effort: Effort
    position: int
    behind: int
    commit: Landed
    stopped_by: Landed | None
    patches: tuple[PatchForecast, ...]
    tried: bool = False


def effort_of(patches: tuple[PatchForecast, ...]) -> Effort:
    """What a stack takes where this becomes of its patches."""
    return Effort(
        sum(len(each.conflicts) for each in patches),
        sum(len(each.review) for each in patches),
        sum(each.status not in _AS_IT_IS for each in patches),
    )


def stays(patch: PatchForecast) -> bool:
    """Whether the patch applies as it is, and nobody has to look."""
    return patch.status in _AS_IT_IS and not patch.review


class MetadataRequirement(Struct, frozen=True):
    """A requirement of a component's metadata: `name` in normal form, and the file that says it."""

    name: str
    specifier: str  # as PEP 440 writes it, such as >=2.1,<3
    file: str


class Declaration(Struct, frozen=True):
    """What a component says of itself in its metadata: its distribution, version ("" unknown).

    `by_tags`: its build takes the version from git's tags.
    """

    distribution: str
    version: str
    needs: tuple[MetadataRequirement, ...]  # requirements with a specifier
    by_tags: bool = False


class UnmetRequirement(Struct, frozen=True):
    """A requirement of `component` that another component, or what that asks for, does not meet.

    `other` has `subject` at `found`, or asks for it by `found`.
    """

    component: str
    subject: str
    specifier: str  # of the requirement
    file: str  # that has the requirement
    other: str
    found: str


class ChosenCommit(Struct, frozen=True):
    """A commit that a component could go to; `commit` is None where the pin stays what it is."""

    not_in_json: ClassVar[frozenset[str]] = frozenset({"age", "declaration"})

    component: str
    commit: Landed | None
    version: str  # as its metadata has it; "" unknown
    effort: Effort
    age: int  # how much older than the tip it is, in seconds
    days: int
    behind: int  # how many commits of the branch come after it
    declaration: Declaration


class Combination(Struct, frozen=True):
    """The newest commits of several components with no more than `effort` of hand work in all.

    `days` is how old the choices are, counted from their tips, all together.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"age"})

    grade: Grade
    effort: Effort
    age: int  # in seconds
    days: int
    choices: tuple[ChosenCommit, ...]
