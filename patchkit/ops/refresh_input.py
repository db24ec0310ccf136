"""What a refresh of a component starts from, and why it may not be: the words for the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.disk.files import Contents
from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.gitcmd.repository import Repository
from patchkit.manifest.values import ArchivePin, ArchiveSource, Component, Manifest, Pin
from patchkit.model.finding import Finding, Severity
from patchkit.model.names import recipe_name
from patchkit.model.objects import Base, CommitId
from patchkit.model.progress import Progress
from patchkit.model.text import counted
from patchkit.ops.hints import in_columns, ways_on
from patchkit.ops.refresh_report import NamedPin, RefreshedComponent, RefreshResult
from patchkit.refresh.draft import Request
from patchkit.refresh.project_files import Project
from patchkit.stack.build import Stack
from patchkit.stack.lockfile import PinNames
from patchkit.stack.series import ImportedPatch, LoadedSeries
from patchkit.upstream.store import Store
from patchkit.workspace import Checkout, CheckoutState, Snapshot, inspect

if TYPE_CHECKING:  # a stack without recipes does not load them, nor a refresh the engine
    from patchkit.carry.carried import CarryReport
    from patchkit.refresh.patch_plan import Draft
    from patchkit.refresh.series_edits import SeriesEdit
    from patchkit.stack.generated import Generator


class RefreshInput(Struct, frozen=True):
    """What a component starts from."""

    project: Project
    checkout: Checkout
    snapshot: Snapshot
    base: Base
    series: LoadedSeries  # its patches, read
    generator: Generator | None  # None where no patch is made from a recipe
    seen: Contents  # the project's files that all this was read from
    report: RefreshedComponent  # the component and its checkout; to be filled in
    store: Store
    options: RefreshOptions  # of the command line
    pin: PinEdit | None  # the edit of the manifest that goes with it, if there is one
    progress: Progress
    arrived: bool  # a move that was killed has just been finished

    @property
    def component(self) -> Component:
        """The component, at its new pin."""
        return self.project.component

    @property
    def manifest(self) -> Manifest:
        """The manifest, as it will be."""
        return self.project.manifest

    @property
    def cache(self) -> Repository:
        """The upstream."""
        return self.store.repository(self.component)

    @property
    def absent(self) -> bool:
        """Whether there is no checkout."""
        return self.snapshot.state is CheckoutState.ABSENT

    @property
    def target(self) -> str:
        """How to name it on a command line."""
        return self.manifest.options(self.component.name)

    @property
    def edits_target(self) -> str:
        """How to name it, and where its edits are."""
        edit = self.options.series_edit
        where = f" --from {quote(edit.source)}" if edit is not None and edit.source else ""
        return f"{self.target}{where}"

    @property
    def generator_problems(self) -> tuple[Problem, ...]:
        """Why nothing can be made of its recipes, as far as they were run."""
        return tuple(self.generator.problems) if self.generator is not None else ()

    @property
    def manifest_data(self) -> bytes:
        """The manifest's bytes as they were read."""
        return self.seen[self.manifest.path] or b""


def refusal_of(found: RefreshInput) -> Problem | None:
    """Why a checkout cannot be taken up at all."""
    snapshot, target = found.snapshot, found.target
    where = found.component.name
    if snapshot.state in (
        CheckoutState.CONFLICTED,
        CheckoutState.OTHER_BRANCH,
        CheckoutState.INTERRUPTED,
    ):
        return in_the_way(found)
    if is_bare(found) and snapshot.state.movable:
        hint = f"patchkit apply {target}  applies them; or empty the series if that is meant"
        return Problem("no patch is applied in the checkout", where, hint)
    return None


def is_bare(found: RefreshInput) -> bool:
    """Whether a checkout was taken back to its base, without the patches."""
    snapshot = found.snapshot
    return bool(found.series.patches) and snapshot.head == snapshot.base != snapshot.applied


def in_the_way(found: RefreshInput) -> Problem:
    """Something waits in the checkout for a person, or it is not at its stack's branch."""
    snapshot, target = inspect(found.checkout), found.target
    ways = ways_on(snapshot, target, found.checkout.path)
    hint = in_columns(ways) if ways else f"patchkit apply {target}  finishes it"
    return Problem(snapshot.detail, found.component.name, hint)


def no_series_edit(found: RefreshInput, stack: Stack) -> Problem | None:
    """Why a series that applies cannot be changed under the checkout as it is."""
    snapshot, name, target = found.snapshot, found.component.name, found.target
    if found.absent:
        return None
    if problem := refusal_of(found):
        return problem
    if snapshot.head != snapshot.applied:
        hint = f"patchkit refresh {target}  takes them up"
        return Problem("the checkout has commits of its own", name, hint)
    if snapshot.applied != stack.commit and not snapshot.state.movable:
        return stale(found, stack)
    return None


def stale(found: RefreshInput, stack: Stack) -> Problem:
    """The series is not what was applied here."""
    name, target = found.component.name, found.target
    if not stack.clean:
        return Problem(
            "the series does not apply at its pin", name, f"patchkit check {target}  says why"
        )
    what = "the patches changed since they were applied here"
    if found.snapshot.state.movable:
        return Problem(what, name, f"patchkit apply {target}")
    what += ", and so did the checkout"
    return Problem(what, name, f"patchkit refresh {target}  merges its edits into them")


def changed_by_another(
    found: RefreshInput, writes: Contents, planned: Contents
) -> tuple[Problem, ...]:
    """Files of this component that one before it in the same run is about to change otherwise."""
    manifest = found.manifest
    after = {**found.seen, **writes}
    clashes = [
        path
        for path in sorted(planned.keys() & after.keys() - {manifest.path})
        if planned[path] != after[path]
    ]
    hint = f"patchkit refresh {found.target}  once more merges this one's into them"
    return tuple(
        Problem(
            f"{path.relative_to(manifest.root)} is changed by another component's edits, too",
            found.component.name,
            hint,
        )
        for path in clashes
    )


def edited_before(found: RefreshInput, *, imports: bool) -> Problem:
    """Work in the checkout that a new pin would leave behind, or a conflict would go onto."""
    state, name, hint = found.snapshot.state, found.report.name, f"patchkit refresh {found.target}"
    if imports:
        what = f"the checkout is {state.value}, and a conflict would go there"
        return Problem(what, name, f"{hint}  takes its edits up; then import again")
    if state not in (CheckoutState.EDITED, CheckoutState.EXTRA_COMMITS):
        return in_the_way(found)
    what = f"the checkout is {state.value}: its edits are for the old pin"
    return Problem(what, name, f"{hint}  takes them up")


def unknown_base(found: RefreshInput, old: CommitId) -> Problem:
    """Nobody has the base that the patches were made for."""
    component = found.component
    hint = f"put the old pin back, then: patchkit fetch {found.target}"
    if isinstance(component.source, ArchiveSource) and isinstance(component.pin, ArchivePin):
        hint = (
            f"put the old URL and pin back, then: patchkit bump {found.target}"
            f" --to {component.source.url} --sha256 {component.pin.sha256}"
        )
    return Problem(f"the base of the lock, {old}, is not in the cache", component.name, hint)


class NotRefreshedError(PatchkitError):
    """A component stays as it is; `report` says why."""

    def __init__(
        self,
        report: RefreshedComponent,
        *problems: Problem,
        result: RefreshResult = RefreshResult.CONFLICTED,
        exit_code: ExitCode = ExitCode.HALTED,
    ) -> None:
        super().__init__(*problems)
        self.report = replace(report, result=result, exit_code=exit_code, problems=problems)


def refuse(report: RefreshedComponent, *problems: Problem) -> NoReturn:
    """Leave a component as it is: its checkout or its files are not in a state for it."""
    result = RefreshResult.REFUSED
    raise NotRefreshedError(report, *problems, result=result, exit_code=ExitCode.FINDING)


def ambiguous(report: RefreshedComponent, found: RefreshInput) -> NotRefreshedError:
    """A component that waits for a decision."""
    undecided = [each for each in report.edits if not each.patch]
    names = [*undecided[0].candidates, *(each.name for each in found.series.patches)]
    ways = [("make a patch of them", f"patchkit refresh {found.edits_target} --rest my-change")]
    if names:
        refresh = f"patchkit refresh {found.edits_target} --patch {names[0]}"
        ways.insert(0, ("put them into a patch, such as", refresh))
    count = len(undecided)
    what = f"{counted(count, 'edit does', 'edits do')} not belong to exactly one patch"
    problem = Problem(what, report.name, in_columns(ways))
    result = RefreshResult.AMBIGUOUS
    return NotRefreshedError(report, problem, result=result, exit_code=ExitCode.FINDING)


def with_findings(report: RefreshedComponent, findings: tuple[Finding, ...]) -> RefreshedComponent:
    """The report with what the runs of recipes found; an error among it is one to act on."""
    errors = any(each.severity is Severity.ERROR for each in findings)
    code = ExitCode.FINDING if errors else report.exit_code
    return replace(report, findings=findings, exit_code=code)


def edited_by_hand(names: Sequence[str], found: RefreshInput) -> Iterator[Problem]:
    """Edits that the next run of a recipe would take back."""
    ways = [
        ("change what makes it", recipe_name(names[0])),
        ("or make a patch of them", f"patchkit refresh {found.edits_target} --new my-change"),
    ]
    for name in names:
        what = f"{name} is made from a recipe: edits in it would be lost"
        yield Problem(what, found.report.name, in_columns(ways))


def to_take(found: RefreshInput, names: Sequence[str]) -> str:
    """What to do about patches by reference that would have to change."""
    ways = [
        ("copy it, then bump again", f"patchkit import --vendor {' '.join(names)} {found.target}"),
        ("or take it at another commit", ""),
    ]
    return in_columns(ways)


# How to refresh, and the edit of a pin that goes with it.


class ResumeStep(str, Enum):
    """How to go on from a conflict."""

    CONTINUE = "continue"  # the checkout holds what the patch shall be
    SKIP = "skip"  # the patch leaves the series
    TAKE_PROPOSAL = "take-proposal"  # its files become the merges that the conflict offers


class IncomingPatches(Struct, frozen=True):
    """Patches that were made for another commit, to be merged into the series.

    Those that the series has already, to the byte, are merged where they stand.
    """

    patches: tuple[ImportedPatch, ...]  # under the names that they get, in order
    base: CommitId  # the commit that they were made for

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the series."""
        return tuple(each.name for each in self.patches)


class RefreshOptions(Struct, frozen=True):
    """How to refresh."""

    when: int  # now, in seconds since the epoch; it names saved work
    request: Request = field(default_factory=Request)  # where edits go that belong to no patch
    dry_run: bool = False  # write nothing
    careful: bool = False  # what is not certain on a new pin is a conflict
    run: bool = False  # ask the manifest's mergers about what is in conflict there
    stop: bool = False  # put a conflict over a new pin into the checkout, if it holds no work
    step: ResumeStep | None = None  # go on from such a conflict
    #: Goes on with merges that a program proposes, and not with what the checkout holds. Gets the
    #: input, the conflict that waits, what reads objects, what carries, and with which options;
    #: gives back what that came to. Nothing is written yet, nor is if it raises a PatchkitError.
    propose: Callable[..., tuple[Draft | None, CarryReport]] | None = None
    partial: bool = False  # leave out every patch that does not fit a new pin
    series_edit: SeriesEdit | None = None  # a verb on the series, in place of a refresh
    imported: IncomingPatches | None = None  # patches to merge into it, in place of a refresh
    began: int = 0  # when the command did, in nanoseconds, if it does more: it is undone as one
    names: PinNames = {}  # what the lock is to know of a branch's, with it


class BumpTarget(Struct, frozen=True):
    """The pin to move to, with the names by which both pins are known."""

    pin: Pin
    old: NamedPin  # the pin now
    new: NamedPin  # the pin to move to
    archive: tuple[str, ...] = ()  # of an archive: its URLs then, as `archive_urls` has them


class PinEdit(Struct, frozen=True):
    """A pin that is written together with the patches for it.

    `files` are those that say the pin, before and after; `old_base` is the base that the patches
    are for. `gitlinks` are submodules with their commits before and after; `names` is what the lock
    is to know of tags.
    """

    files: Mapping[Path, tuple[bytes, bytes]]
    target: BumpTarget
    old_base: CommitId
    gitlinks: Mapping[str, tuple[str, str]] = {}
    names: PinNames = {}
