"""What a refresh reports."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from msgspec import Struct

from patchkit.errors import ExitCode, Problem, worst
from patchkit.model.lint import Finding
from patchkit.model.outcome import PatchOutcome
from patchkit.model.revision import Revision
from patchkit.refresh.draft import RoutedEdit


class RefreshResult(str, Enum):
    """What became of a component."""

    UNCHANGED = "unchanged"  # its checkout holds what the series says
    REFRESHED = "refreshed"  # its patch files, or what was recorded of them, changed
    REGENERATED = "regenerated"  # a recipe was run again, and gave another patch
    CARRIED = "carried"  # its pin was changed, and its patch files were made for it
    AMBIGUOUS = "ambiguous"  # an edit belongs to no patch for certain
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


class HaltedFile(Struct, frozen=True):
    """A file in conflict: why, and whether it holds conflict markers (else: decide by git add)."""

    path: str
    reasons: tuple[str, ...]
    marked: bool
    upstream: tuple[str, ...] = ()


class Halted(Struct, frozen=True):
    """The conflict that a checkout holds now.

    `subject` and `reason` are the patch's own words. `later` are patches of the series behind it
    that change the same files. `unknown` says why no commits of upstream are named.
    """

    patch: str
    subject: str
    reason: str
    checkout: Path
    files: tuple[HaltedFile, ...]
    later: tuple[str, ...] = ()
    unknown: str = ""


class RefreshedComponent(Struct, frozen=True):
    """What became of one component.

    `edits` says where each uncommitted edit goes, `patches` what becomes of each patch, in the
    order of the series, removed ones last. `emptied` are patches that change nothing any more and
    leave the series, `dropped` those whose commits are gone or that the new pin contains. `files`
    are the project's files that were written or removed (with a dry run: would be). `untracked` are
    new files that git was not told of; they were left alone. `saved` is the ref that keeps the
    stack as it was, where patches left the series, `also_saved` are those of what only git's index
    had, or came meanwhile. `carried` are the verdicts on a new pin, or on
    recipes that were run again; `findings` are what their runs found. `halted` is the conflict that
    the checkout holds now; `left_out` are patches that a person took off the series on the way,
    `resolved` those whose conflict a person resolved. `notes` is what it had to go without.
    """

    name: str
    checkout: Path
    result: RefreshResult
    exit_code: ExitCode = ExitCode.OK
    detail: str = ""
    edits: tuple[RoutedEdit, ...] = ()
    patches: tuple[RefreshedPatch, ...] = ()
    emptied: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    saved: str = ""
    also_saved: tuple[str, ...] = ()
    carried: tuple[PatchOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    halted: Halted | None = None
    left_out: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    notes: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()


class RefreshReport(Struct, frozen=True):
    """What became of the components, in the manifest's order; `dry_run`: nothing was written."""

    manifest: str
    dry_run: bool
    components: tuple[RefreshedComponent, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The worst of the components."""
        return worst(each.exit_code for each in self.components)
