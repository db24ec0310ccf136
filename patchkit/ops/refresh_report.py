"""What a refresh, a bump and upstream's own tests report."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import ExitCode, OfComponents, Problem, worst
from patchkit.model.finding import Finding
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Attention, ConflictedFile, PatchResult, Status
from patchkit.model.revision import Revision
from patchkit.refresh.assign import RoutedEdit


class RefreshResult(str, Enum):
    """What became of a component."""

    UNCHANGED = "unchanged"  # its checkout holds what the series says
    REFRESHED = "refreshed"  # its patch files, or what was recorded of them, changed
    REGENERATED = "regenerated"  # a recipe was run again, and gave another patch
    CARRIED = "carried"  # its pin was changed, and its patch files were made for it
    AMBIGUOUS = "ambiguous"  # an edit does not belong to exactly one patch
    REFUSED = "refused"  # the checkout is not in a state to be taken up
    CONFLICTED = "conflicted"  # a patch does not fit the changed pin
    WAITING = "waiting"  # its checkout still holds the conflict from which it was to go on
    ABSENT = "absent"  # there is no checkout
    FAILED = "failed"  # something cannot be read or written, or the wish cannot be met


class RefreshedPatch(Struct, frozen=True):
    """One patch of the series: its name, its file, how it differs from before, and that as a diff.

    `diff` compares the two patch files without blob ids and line numbers.
    """

    name: str
    file: str
    revision: Revision
    diff: bytes = b""


class PatchHead(Struct, frozen=True):
    """What a patch was before: its subject, and where its hunks are."""

    name: str  # its file's name in the series
    subject: str  # the first line of its message, "" for none
    where: str  # its file, below the project's root; of a reference what the manifest says
    #: Path and lines, first and last, of each hunk on the base; lines that earlier patches of the
    #: series brought are counted out.
    places: tuple[tuple[str, int, int], ...] = ()


class Halted(Struct, frozen=True):
    """The conflict that a checkout holds now.

    `subject` and `reason` are the patch's own words. `later` are patches of the series behind it
    that change the same files. `unknown` says why no commits of upstream are named.
    """

    patch: str
    subject: str
    reason: str
    checkout: str
    files: tuple[ConflictedFile, ...]
    later: tuple[str, ...] = ()
    unknown: str = ""
    number: int = 0  # the patch's place in the series, from 1 on
    total: int = 0  # how many patches the series has

    @property
    def marked(self) -> tuple[str, ...]:
        """The paths that got conflict markers."""
        return tuple(each.path for each in self.files if each.marked)

    @property
    def proposed(self) -> tuple[str, ...]:
        """The paths in conflict for which there is a merge to take."""
        return tuple(each.path for each in self.files if each.proposed)


class RefreshedComponent(Struct, frozen=True):
    """What became of one component.

    `edits` says where each uncommitted edit goes, `patches` what becomes of each patch, in the
    order of the series, removed ones last. `emptied` are patches that change nothing any more and
    leave the series, `dropped` those whose commits are gone or that the new pin contains. `files`
    are the project's files that were written or removed (with a dry run: would be). `untracked` are
    new files that git was not told of; they were left alone. `saved` is the ref that keeps the
    stack as it was, where patches left the series, `also_saved` are those of what only git's index
    had, or came meanwhile. `carried` are the verdicts on a new pin, or on
    recipes that were run again, `series` the patches as they were before that; `findings` are what
    their runs found. `halted` is the conflict that
    the checkout holds now; `left_out` are patches that a person took off the series on the way,
    `resolved` those whose conflict a person resolved. `notes` is what it had to go without.
    """

    name: str  # in the manifest
    checkout: Path
    result: RefreshResult  # what became of it
    exit_code: ExitCode = ExitCode.OK
    detail: str = ""  # more words to `result`; "" for none
    edits: tuple[RoutedEdit, ...] = ()
    patches: tuple[RefreshedPatch, ...] = ()
    emptied: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    saved: str = ""
    also_saved: tuple[str, ...] = ()
    carried: tuple[PatchResult, ...] = ()
    series: tuple[PatchHead, ...] = ()
    findings: tuple[Finding, ...] = ()
    halted: Halted | None = None
    left_out: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    notes: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()


class RefreshReport(OfComponents, Struct, frozen=True):
    """What became of the components, in the manifest's order; `dry_run`: nothing was written."""

    manifest: str
    dry_run: bool
    components: tuple[RefreshedComponent, ...]


# What a bump reports: the two pins, and the patches by what a reviewer must look at.


class NamedPin(Struct, frozen=True):
    """A pin (a commit id, a version, a hash) and the tag or branch that it is known by, or "".

    A tag is `lasting`: it names the pin later, too.
    """

    pin: str
    name: str = ""
    lasting: bool = False

    def __str__(self) -> str:
        return " ".join(each for each in (self.name, self.short) if each)

    @property
    def short(self) -> str:
        """The pin, as people write it."""
        return short_id(self.pin)


class BumpedComponent(Struct, frozen=True):
    """What became of a component that was to move from pin `old` to `new`.

    `where` is the place of the pin, `link` compares the two upstream ("" where nobody is known to
    do that). `patches` are sorted by what a reviewer must look at; `files` are the project's files
    that were written or removed (with a dry run: would be). `notes` are what nobody but the user
    can bring up to date. `result` is `unchanged` if the component is at that pin already. `halted`
    is the conflict that the checkout holds now, or it has `arrived` at the new stack; `saved` is
    the ref of work that was in its way. `series` are the patches as they were, `changes` how each
    file differs now; `bases` are the two commits, "" for none.
    """

    name: str  # in the manifest
    old: NamedPin
    new: NamedPin
    where: str
    result: RefreshResult
    exit_code: ExitCode = ExitCode.OK
    link: str = ""
    patches: tuple[PatchResult, ...] = ()
    series: tuple[PatchHead, ...] = ()
    changes: tuple[RefreshedPatch, ...] = ()
    bases: tuple[CommitId, CommitId] = (CommitId(""), CommitId(""))
    files: tuple[str, ...] = ()
    halted: Halted | None = None
    arrived: bool = False
    earlier: tuple[str, ...] = ()  # after a continue or skip: patches that were reported before
    imported: tuple[str, ...] = ()  # the patches of an import, which leaves the pin where it is
    saved: str = ""
    also_saved: tuple[str, ...] = ()  # refs of what only git's index had, or what came meanwhile
    notes: tuple[Problem, ...] = ()
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def subject(self) -> str:
        """A first line for the commit's message."""
        if self.imported:
            return f"Add {', '.join(self.imported)} to {self.name}"
        old, new = (each.name if each.lasting else each.short for each in (self.old, self.new))
        return f"Bump {self.name} from {old} to {new}"

    @property
    def title(self) -> str:
        """What became of it, as a heading."""
        if self.result is RefreshResult.UNCHANGED:
            return f"{self.name} is there already"
        return self.subject if self.moved else f"{self.name} stays where it is"

    @property
    def moved(self) -> bool:
        """Whether its pin is another one now (with a dry run: would be)."""
        return self.result is RefreshResult.CARRIED


class BumpReport(Struct, frozen=True):
    """What became of components of a manifest, in its order; each is moved whole or not at all.

    `untracked` are those that were passed over, as they have no `track`. `notes` are what nobody
    but the user can bring up to date.
    """

    manifest: str
    dry_run: bool  # nothing was written
    components: tuple[BumpedComponent, ...]
    untracked: tuple[str, ...] = ()
    notes: tuple[Problem, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The worst of the components."""
        return worst(each.exit_code for each in self.components)

    @property
    def subject(self) -> str:
        """A first line for the commit's message."""
        moved = [each for each in self.components if each.moved] or self.components
        if len(moved) == 1:
            return moved[0].subject
        return f"Bump {len(moved)} components of {self.manifest}"


def bumped(row: BumpedComponent, done: RefreshedComponent) -> BumpedComponent:
    """The report of a bump, `row`, with what became of the component's patches."""
    return replace(
        row,
        result=done.result,
        exit_code=done.exit_code,
        patches=sorted_patches(done),
        series=done.series,
        changes=done.patches,
        halted=done.halted,
        saved=done.saved,
        also_saved=done.also_saved,
        files=done.files,
        notes=done.notes,
        findings=done.findings,
        problems=done.problems,
    )


def sorted_patches(
    done: RefreshedComponent,
) -> tuple[PatchResult, ...]:
    """The verdicts by attention, in the order of the series among equals."""
    revisions = {each.name: each.revision for each in done.patches}
    decided = dict.fromkeys(done.left_out, Attention.LEFT_OUT)
    decided |= dict.fromkeys(done.resolved, Attention.RESOLVED)
    order = list(Attention)
    rows = [
        replace(
            each,
            attention=decided.get(each.name) or _attention(each, revisions.get(each.name)),
        )
        for each in done.carried
    ]
    return tuple(sorted(rows, key=lambda each: order.index(each.attention or Attention.UNCHANGED)))


#: What became of a patch asks the same of a reviewer, whatever its file is like then.
_FIXED = (Status.CONFLICTED, Status.WAITING, Status.REGENERATED, Status.ABSORBED)
#: Where no patch file was made, because another patch is in conflict.
_UNWRITTEN = {
    Status.UNCHANGED: Attention.UNCHANGED,
    Status.EMPTY: Attention.UNCHANGED,
    Status.SHIFTED: Attention.SHIFTED,
}


def _attention(outcome: PatchResult, revision: Revision | None) -> Attention:
    doubtful = outcome.status is Status.ABSORBED and outcome.review
    if outcome.status in _FIXED and not doubtful:
        return Attention(outcome.status.value)
    if any(each.remembered and not each.merged_by for each in outcome.files):
        return Attention.RESOLVED
    if outcome.review:
        return Attention.FLAGGED
    if revision is None:
        return _UNWRITTEN.get(outcome.status, Attention.CONTEXT)
    return Attention.FLAGGED if revision.needs_review else Attention(revision.value)
