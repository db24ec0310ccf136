"""What became of each patch along a tracked branch, as values that `patchkit drift` prints."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from patchkit.explain.explanation import PatchExplanation
from patchkit.model.finding import Landed
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Fate, FileResult, OfFiles, PatchResult, Reason, Status
from patchkit.model.states import state_of
from patchkit.model.text import counted


class HunkFault(Struct, frozen=True):
    """A hunk that fails, or a file change that does not fit as a whole (hunk 0).

    `line` is where it stands in the patch file.
    """

    path: str  # the file in the patch
    hunk: int
    line: int
    reason: Reason


class PatchForecast(OfFiles, Struct, frozen=True):
    """What carrying would make of a patch: files left in conflict, files to look at.

    A WAITING one fails only because those in `waits_for` do. `files` are known of a commit that the
    stack was carried to.
    """

    name: str  # its file's name in the series
    status: Status
    conflicts: tuple[str, ...] = ()
    review: tuple[str, ...] = ()  # paths of files to look at
    waits_for: tuple[str, ...] = ()
    files: tuple[FileResult, ...] = ()  # without the clashes
    fate: Fate | None = None

    @property
    def perhaps(self) -> str:
        """What stands before "upstream has it", where nothing but its lines says so."""
        return "perhaps " if self.fate is not None and self.fate.word == "perhaps landed" else ""

    @property
    def words(self) -> str:
        """What a bump to the tip would do, to be read after those words."""
        conflicts, review = len(self.conflicts), len(self.review)
        match self.status:
            case Status.CONFLICTED:
                what = f"leaves {conflicts} of {counted(len(self.files), 'file')} in conflict"
            case Status.REGENERATED:
                what = "regenerates it from its recipe"
            case Status.ABSORBED:
                by = f" ({'; '.join(self.absorbed_by)})" if self.absorbed_by else ""
                what = f"retires it: {self.perhaps}upstream has it{by}"
            case Status.WAITING:
                are = "are" if len(self.waits_for) > 1 else "is"
                what = f"carries it once {' and '.join(self.waits_for)} {are} resolved"
            case _:
                what = "carries it"
        return f"{what}, {review} to look at" if review else what


def forecast_of(outcome: PatchResult) -> PatchForecast:
    """What the carry engine came to, as it is reported."""
    conflicts = tuple(each.path for each in outcome.files if each.status is Status.CONFLICTED)
    if outcome.status is Status.CONFLICTED and not conflicts:
        conflicts = (outcome.name,)  # its recipe gives nothing to be used
    review = tuple(each.path for each in outcome.files if each.review)
    files = tuple(replace(each, clashes=()) for each in outcome.files)
    waits_for, fate = outcome.waits_for, outcome.fate
    return PatchForecast(outcome.name, outcome.status, conflicts, review, waits_for, files, fate)


class Interval(Struct, frozen=True):
    """From `first` to `last` (commits of the line, 0 is where it starts) the patch was in `status`.

    Of a patch that does not apply it says what a bump would make of it: MERGED or REGENERATED where
    the carry engine or its recipe would bring it over, ABSORBED where it would retire it, WAITING
    where it fails only because the patches `waits_for` do. `since` is the commit that brought it
    into that state, None at the start of the line; `faults` are the hunks that it left without a
    place.
    """

    status: Status
    first: int
    last: int
    since: Landed | None
    faults: tuple[HunkFault, ...] = ()
    waits_for: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """How many commits."""
        return self.last - self.first + 1

    @property
    def is_broken(self) -> bool:
        """Whether the patch does not apply as it is, by itself, and upstream has not got it.

        A recipe may give another patch although the one that is there applies.
        """
        regenerated = self.status is Status.REGENERATED and bool(self.faults)
        return regenerated or self.status in (Status.CONFLICTED, Status.MERGED)

    @property
    def files(self) -> list[str]:
        """Those in which a hunk fails."""
        return list(dict.fromkeys(fault.path for fault in self.faults))


class Break(Struct, frozen=True):
    """A time in which a patch did not fit: `by` broke it (None: from the start of the line).

    `mended` is the commit after which it fits again, None if it never does; `reverted` says that
    this commit calls itself a revert. `faults` are the hunks that `by` made fail.
    """

    by: Landed | None
    mended: Landed | None
    reverted: bool
    faults: tuple[HunkFault, ...]


class Risk(Struct, frozen=True):
    """How often the patch's files change upstream."""

    commits: int  # those that change a file of the patch
    per_month: float  # of 30 days


class Suspicion(Struct, frozen=True):
    """A hunk that applies at the tip and perhaps no longer does its job; `line` is in the patch.

    `kind` is "scope-changed" (the function around it changed), "not-called" (nobody in the file
    uses that function any more) or "name-changed" (what it calls there takes other arguments); `by`
    is where it began.
    """

    path: str  # the file in the patch
    hunk: int
    line: int
    kind: str
    what: str
    by: Landed | None = None


class PatchDrift(Struct, frozen=True):
    """One patch along the line: its state on the pin and at the tip, and what happened between.

    `status` is what a bump to the tip would make of it, and `since` the commit that brought it into
    that state, None where it was so from the start of the line: `explanation` says what clashes
    there. An event of its own is that it stopped applying as it is: `last_good` is the last commit
    where it did, `broken_by` the first where it did not any more; both None if it never applies, or
    applies at the tip. `days` is how long after the pin `broken_by` came, None where it never
    applied. A WAITING patch fails only because those in `waits_for` do. `absorbed_by` made all of
    it superfluous. `risk` is None where only some commits were tried. `forecast` is what a bump to
    the tip comes to, file by file, and what became of the patch upstream, by the commit
    `fate_by`. `suspicions` are hunks that apply at the tip and perhaps should
    not. `listed` is the manifest's line that names a patch of another repository, "" for one of the
    project's own.
    """

    name: str
    where: str
    at_pin: Status
    status: Status
    since: Landed | None
    last_good: Landed | None
    broken_by: Landed | None
    days: int | None
    absorbed_by: Landed | None
    breaks: tuple[Break, ...]
    risk: Risk | None
    intervals: tuple[Interval, ...]
    hunks: int = 0
    explanation: PatchExplanation | None = None
    forecast: PatchForecast | None = None
    suspicions: tuple[Suspicion, ...] = ()
    listed: str = ""
    waits_for: tuple[str, ...] = ()
    fate_by: Landed | None = None

    @property
    def fate(self) -> str:
        """What became of it upstream; "" where nothing ties it to upstream."""
        return self.forecast.fate.word if self.forecast and self.forecast.fate else ""

    @property
    def is_broken(self) -> bool:
        """Whether it does not apply at the tip as it is, by itself, and upstream has not got it."""
        return self.intervals[-1].is_broken

    @property
    def event(self) -> Landed | None:
        """The commit since which it is in a state that asks for something."""
        other = (Status.ABSORBED, Status.WAITING, Status.REGENERATED)
        return self.since if self.is_broken or self.status in other else None

    @property
    def needs_work(self) -> bool:
        """Whether a bump that keeps the patch leaves something to a person."""
        review = self.forecast is not None and bool(self.forecast.review)
        kept = self.status is not Status.ABSORBED
        return (review and kept) or self.status.fails

    @property
    def needs_attention(self) -> bool:
        """Whether the series must be touched to follow: not where a recipe makes the patch."""
        return self.needs_work or self.status in (Status.MERGED, Status.ABSORBED)

    @property
    def words(self) -> str:
        """What became of it, in a line that is read after its state."""
        day = f"since {self.event.day}" if self.event is not None else ""
        if self.is_broken:
            after = "" if self.days is None else f" after {counted(self.days, 'day')}"
            if self.stopped_earlier and self.broken_by is not None:
                after = f", stopped applying {self.broken_by.day}{after}"
            day = (day or "since the start of the branch") + after
        perhaps = self.forecast.perhaps if self.forecast is not None else ""
        means = {
            Status.UNCHANGED: "fits",
            Status.REGENERATED: f"fits, {state_of(self.status).means}",
            Status.WAITING: f"waits for {', '.join(self.waits_for)}",
            Status.CONFLICTED: "",
        }.get(self.status, perhaps + state_of(self.status).means)
        files = ""
        if self.risk is not None and self.risk.commits:
            often = f"{counted(self.risk.commits, 'commit')}, {self.risk.per_month:g} a month"
            files = f"its files changed: {often}"
        again = ""
        if self.breaks and (mended := self.breaks[-1].mended) is not None:
            by = self.breaks[-1].by
            broken = f"broken by {short_id(by.commit)}, " if by is not None else ""
            again = f"{broken}mended {mended.day} by {short_id(mended.commit)}"
        fate = "" if self.status is Status.ABSORBED else self.fate
        fate += f" by {short_id(self.fate_by.commit)}" if fate and self.fate_by else ""
        return "; ".join(filter(None, (means, fate, day, again, files)))

    @property
    def stopped_earlier(self) -> bool:
        """Whether it stopped applying before it came into its state."""
        return None not in (self.broken_by, self.since) and self.broken_by != self.since


class LineDrift(Struct, frozen=True):
    """What became of a series along the first-parent commits between a pin and a tip.

    `touching` of the `commits` change files of the patches; `start` is the one before them, `fork`
    the newest commit that both pin and tip have.
    """

    fork: CommitId
    start: Landed
    tip: Landed
    commits: int
    touching: int
    patches: tuple[PatchDrift, ...]  # in the order of the series
