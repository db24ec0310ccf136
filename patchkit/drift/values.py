"""What became of each patch along a tracked branch, as values that `patchkit drift` prints."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from patchkit.contracts.breaches import BrokenCall
from patchkit.drift.judging import HunkFault
from patchkit.explain.values import PatchExplanation
from patchkit.model.outcome import Status
from patchkit.overrides.review import Verdict


class Landed(Struct, frozen=True):
    """An upstream commit: when it landed (UTC), whose it is, and where to look at it.

    `request` is the pull or merge request that its subject names. The links are None where no web
    page of the upstream is known.
    """

    commit: str
    date: str
    author: str
    subject: str
    request: int | None = None
    link: str | None = None
    request_link: str | None = None

    @property
    def day(self) -> str:
        """The date without the time."""
        return self.date[:10]


class Interval(Struct, frozen=True):
    """From `first` to `last` (commits of the line, 0 is where it starts) the patch was in `status`.

    Of a patch that does not apply it says what a bump would make of it: MERGED or REGENERATED where
    the carry engine or its recipe would bring it over, ABSORBED where it would retire it.
    `since` is the commit that brought it into that state, None at the start of the line. Of the
    hunks without a place `faults` are those at the end of the interval.
    """

    status: Status
    first: int
    last: int
    since: Landed | None
    faults: tuple[HunkFault, ...] = ()


class Break(Struct, frozen=True):
    """A time in which a patch did not fit: `by` broke it (None: from the start of the line).

    `mended` is the commit after which it fits again, None if it never does; `reverted` says that
    this commit calls itself a revert. `faults` are the hunks that `by` left without a place.
    """

    by: Landed | None
    mended: Landed | None
    reverted: bool
    faults: tuple[HunkFault, ...]


class AbsorbedHunk(Struct, frozen=True):
    """A hunk, or a whole file change (hunk 0), that the upstream has made as well.

    `line` is where it stands in the patch file, `by` the commit that brought it, None if it was
    there before the line starts.
    """

    path: str
    hunk: int
    line: int
    by: Landed | None


class FileRisk(Struct, frozen=True):
    """How many commits of the line changed a file that the patch changes."""

    path: str
    commits: int


class Risk(Struct, frozen=True):
    """How often the patch's files change upstream: commits, per 30 days, and for each file."""

    commits: int
    per_month: float
    files: tuple[FileRisk, ...]


class Forecast(Struct, frozen=True):
    """What the carry engine would make of a patch at the tip: REGENERATED where its
    recipe gives it anew. Of its `files` files those in `conflicts` are left to a person, those in
    `review` should be looked at.
    """

    status: Status
    files: int
    conflicts: tuple[str, ...]
    review: tuple[str, ...]


class Suspicion(Struct, frozen=True):
    """A hunk that applies at the tip and perhaps no longer does its job; `line` is in the patch.

    `kind` is "scope-changed" (the function around it changed), "another-scope" (it lands in another
    one), "not-called" (nobody in the file uses that function any more), "name-gone" (a name that it
    uses is gone from the file) or "name-changed" (what it calls there takes other arguments); `by`
    is where it began.
    """

    path: str
    hunk: int
    line: int
    kind: str
    what: str
    by: Landed | None = None

    def saying(self, kind: str, what: str, by: Landed | None) -> Suspicion:
        """The same hunk with another suspicion."""
        return replace(self, kind=kind, what=what, by=by)


class TrendPoint(Struct, frozen=True):
    """How many patches were in which state when a report was made at `at` (UTC) on the tip.

    `carried` are those that do not apply and that a bump would merge or make anew.
    """

    at: str
    tip: str
    fits: int
    carried: int
    absorbed: int
    conflicts: int


class NewSite(Struct, frozen=True):
    """A site at the tip, as upstream has it, that a rule names and neither pin nor review has.

    `text` is in short; `by` is the commit since which it is there, None where the line did not
    bring it.
    """

    rule: str
    path: str
    line: int
    within: str
    text: str
    by: Landed | None = None

    @property
    def place(self) -> str:
        """For messages: path:line."""
        return f"{self.path}:{self.line}"


class MovedTarget(Struct, frozen=True):
    """What `component` replaces while it runs, and the tip has no more or otherwise than the pin.

    `calls` are the places that name it, `was` and `now` those of its definition ("" for none),
    `why` says where a name that is gone ends; `by` is the commit that did it.
    """

    component: str
    name: str
    verdict: Verdict
    calls: tuple[str, ...]
    was: str
    now: str
    why: str = ""
    by: Landed | None = None


class BrokenContract(Struct, frozen=True):
    """A call from one component into another that fits at the pin and not at the tip.

    `by` is the commit that broke it, None where no one file tells.
    """

    place: BrokenCall
    by: Landed | None = None


class PatchDrift(Struct, frozen=True):
    """One patch along the line: its state on the pin and at the tip, and what happened between.

    `status`, of a patch that does not apply at the tip, is what a bump would make of it, as in
    Interval.
    `last_good` is the last commit where it fits, `broken_by` the one that broke it for good; both
    None if it never fits, or fits at the tip. `days` is for how long after the pin it fits, not
    counting breaks that were mended. `absorbed_by` made all of it superfluous. `explanation` says
    what clashes at `broken_by`, or at the tip for one that never fits. `risk` is None where only
    some commits were tried. `forecast` is what a bump to the tip would do about it.
    `suspicions` are hunks that apply at the tip and perhaps should not. `listed` is the manifest's
    line that names a patch of another repository, "" for one of the project's own.
    """

    name: str
    where: str
    at_pin: Status
    status: Status
    last_good: Landed | None
    broken_by: Landed | None
    days: int | None
    absorbed_by: Landed | None
    breaks: tuple[Break, ...]
    absorbed: tuple[AbsorbedHunk, ...]
    risk: Risk | None
    intervals: tuple[Interval, ...]
    hunks: int = 0
    explanation: PatchExplanation | None = None
    forecast: Forecast | None = None
    suspicions: tuple[Suspicion, ...] = ()
    listed: str = ""

    @property
    def is_broken(self) -> bool:
        """Whether it does not apply at the tip as it is, though upstream has not got it."""
        return self.status in (Status.CONFLICTED, Status.MERGED, Status.REGENERATED)
