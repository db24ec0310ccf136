"""Bring what was done in the checkouts back into the patch files, or into a new patch.

Every component is drafted first, against the files as they are. Then all files of all components
are replaced together, and last the checkouts' branches move to the stacks that the new files build;
not a file in them is touched (`refresh_write`).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.errors import ExitCode, PatchkitError, Problem, SurroundingsError, expected
from patchkit.gitcmd.author import user_identity
from patchkit.gitcmd.object_reader import ObjectReader, reading, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import tracked_tree
from patchkit.manifest.values import Component, Manifest, path_below
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.progress import Progress
from patchkit.model.revision import interdiff
from patchkit.ops.refresh_input import (
    NotRefreshedError,
    PinEdit,
    RefreshInput,
    RefreshOptions,
    ambiguous,
    changed_by_another,
    edited_by_hand,
    in_the_way,
    is_bare,
    no_series_edit,
    refusal_of,
    refuse,
    stale,
    unknown_base,
)
from patchkit.ops.refresh_report import (
    BumpedComponent,
    RefreshedComponent,
    RefreshedPatch,
    RefreshReport,
    RefreshResult,
    bumped,
)
from patchkit.ops.refresh_write import BranchMove, Change, PlannedRefresh, carry_out
from patchkit.refresh.draft import RefreshStart, UndecidedEditsError, draft_refresh
from patchkit.refresh.patch_plan import Draft, Revised
from patchkit.refresh.project_files import (
    Project,
    changed_files,
    files_of,
    foresee,
    other_uses,
    patch_names_in,
    with_imported,
)
from patchkit.stack.build import Stack, StackCommit, build_stack, read_stack
from patchkit.stack.emptied import emptied_patches
from patchkit.stack.lockfile import (
    Lock,
    LockedComponent,
    PinNames,
    load_lock,
    lock_component,
    recorded_in,
)
from patchkit.stack.series import LoadedSeries, load_series
from patchkit.upstream.store import Store
from patchkit.workspace import Checkout, CheckoutState, checkout_of, inspect, locked
from patchkit.workspace.checkout import OWN_FOLDER, locked_file
from patchkit.workspace.operations import Operation
from patchkit.workspace.recover import recover
from patchkit.workspace.save import rows_beyond
from patchkit.workspace.state import Held, Place
from patchkit.workspace.waiting import read_halt

if TYPE_CHECKING:
    from patchkit.ops.refresh_carry import Carried
    from patchkit.ops.resume import Resumed
    from patchkit.refresh.series_edits import SeriesEdit
    from patchkit.stack.generated import Generator


def refresh_components(
    manifest: Manifest,
    components: Sequence[Component],
    *,
    store: Store,
    workspace: Path,
    options: RefreshOptions,
    progress: Progress,
    pin: PinEdit | None = None,
    bump: BumpedComponent | None = None,
) -> RefreshReport:
    """Bring the checkouts of `components` into their patch files, and record the lock.

    With `pin` there is one component, and `manifest` says what it will say then: its patches are
    carried to the new pin, and the edit is written with them. `bump` is what is to be reported of
    it; that is recorded with the change, for a review.

    BadInputError if the lock cannot be read; everything else that is wrong is in the report.
    """
    refreshing = _Refreshing(manifest, store, workspace, options, progress, pin, bump)
    with ExitStack() as held:
        for component in components:
            checkout = checkout_of(workspace, manifest, component)
            if checkout.path.exists():
                held.enter_context(locked(checkout))
        lock = manifest.lock_path
        guard = workspace.absolute() / OWN_FOLDER / f"{lock.name}.lock"
        if not options.dry_run and guard.parent.exists():
            held.enter_context(locked_file(guard, lock))
        recorded = load_lock(lock)
        planned = []
        for component in components:
            planned.append(refreshing.component(component, recorded))
        reports = [each.report for each in planned]
        if not options.dry_run:
            began = refreshing.began
            reports = carry_out(manifest.root, planned, when=options.when, began=began)
    if options.request.everything:
        reports = list(map(_judged, reports))
    for report in reports:
        progress.finish(report.name, report.result.value)
    return RefreshReport(manifest.name, options.dry_run, tuple(reports))


_ARRIVED = "the checkout is at what the patches are now"


class _Refreshing(Struct):
    _manifest: Manifest
    _store: Store
    _workspace: Path  # the folder that holds the checkouts
    _options: RefreshOptions  # of the command line
    _progress: Progress
    _pin: PinEdit | None
    _bump: BumpedComponent | None
    began: int = field(default_factory=time.time_ns)  # in the history: undone as one
    _changes: dict[Path, bytes | None] = {}  # by the components so far

    def __post_init__(self) -> None:
        self.began = self._options.began or self.began
        if self._pin is not None:
            self._changes.update({path: after for path, (_, after) in self._pin.files.items()})

    def component(self, component: Component, lock: Lock | None) -> PlannedRefresh:
        """One component; never raises what concerns it alone."""
        checkout = checkout_of(self._workspace, self._manifest, component)
        self._progress.step(component.name, "comparing the checkout with the patches", local=True)
        report = RefreshedComponent(component.name, checkout.path, RefreshResult.FAILED)
        try:
            found = self._find(component, checkout, report)
            return self._beyond_edits(found, lock) or self._refresh(found)
        except NotRefreshedError as error:
            return PlannedRefresh(error.report)
        except (PatchkitError, OSError) as error:
            failed = expected(error, component.name)
            if self._options.step is not None and failed.exit_code is ExitCode.FINDING:
                report = replace(report, result=RefreshResult.WAITING)
            return PlannedRefresh(
                replace(report, exit_code=failed.exit_code, problems=failed.problems)
            )

    def _beyond_edits(self, found: RefreshInput, lock: Lock | None) -> PlannedRefresh | None:
        """What is more than to take up edits: a verb, patches on another base, or from recipes."""
        if found.snapshot.halt and (halt := read_halt(found.checkout)):
            from patchkit.ops.resume import in_progress, waiting_of  # noqa: PLC0415

            if self._options.step is None:
                waits = in_progress(found.manifest, found.component, found.checkout)
                refuse(found.report, waits)
            # what it waits for says from where, whatever pin and lock are by now
            return self._carried(found, waiting_of(halt).old_base)
        recorded = recorded_in(lock, found.report.name)
        edit, pin, imported = self._options.series_edit, self._pin, self._options.imported
        at = found.base.commit
        if pin is not None:
            at = pin.old_base
        elif edit is None and imported is None and recorded is not None:
            at = recorded.commit
        moved = None
        if recorded is not None and recorded.commit != at:
            moved = Problem(
                f"the patches are still those for {short_id(recorded.commit)},"
                " the pin is another one already",
                found.report.name,
                f"patchkit refresh {found.target}  first, or put the old pin back",
            )
        if edit is not None:
            planned = self._series_edited(found, edit, moved, recorded)
            return self._knowing(planned, self._options.names)
        ready = (patch for patch in found.series.patches if not patch.has_recipe)
        problems = emptied_patches(recorded, ready, found.target) if moved is None else (moved,)
        if problems:
            refuse(found.report, *problems)
        if imported is not None or pin is not None:
            return self._carried(found, imported.base if imported is not None else at)
        if at != found.base.commit:
            return self._onto_pin(found, at)
        if found.generator is not None:
            from patchkit.ops.refresh_carry import regenerate_patches  # noqa: PLC0415

            if (made := regenerate_patches(found)) is not None:
                return self._made(found, made, "refresh: recipes were run again")
        return None

    def _onto_pin(self, found: RefreshInput, old: CommitId) -> PlannedRefresh:
        """A refresh where the pin was changed: edits are for the patches on the old one, first."""
        if found.snapshot.state.movable or self._options.dry_run:
            return self._carried(found, old)
        cache = found.cache
        if cache.commit(old) is None:
            raise SurroundingsError(unknown_base(found, old))
        with reading(cache) as reader:
            base = read_base(cache, old, reader)
        planned = self._refresh(replace(found, base=base))
        if planned.report.problems:
            return planned
        hint = f"patchkit refresh {found.target}  carries them there"
        note = Problem("the patches are not at the new pin yet", found.report.name, hint)
        report = replace(planned.report, notes=(*planned.report.notes, note))
        return replace(planned, report=report)

    def _find(
        self, component: Component, checkout: Checkout, report: RefreshedComponent
    ) -> RefreshInput:
        snapshot = inspect(checkout)
        if snapshot.state is CheckoutState.INTERRUPTED and not self._options.dry_run:
            recover(checkout)
            snapshot = inspect(checkout)
        arrived = False
        if snapshot.halt is None and not self._options.dry_run:
            from patchkit.ops.undo import finish_killed  # noqa: PLC0415  not in a dry run

            when = self._options.when
            if arrived := finish_killed(self._manifest, component, checkout, snapshot, when):
                snapshot = inspect(checkout)
        base = self._store.base(component, self._progress)
        project = Project(self._manifest, component)
        seen = files_of(project)  # before they are read for good
        series = load_series(
            self._manifest,
            component,
            self._store,
            self._progress,
            to_generate=True,
        )
        if self._options.imported is not None:
            series = with_imported(project, series, self._options.imported.patches)
        series, generator = self._with_recipes(series)
        return RefreshInput(
            project,
            checkout,
            snapshot,
            base,
            series,
            generator,
            seen,
            report,
            self._store,
            self._options,
            self._pin,
            self._progress,
            arrived,
        )

    def _with_recipes(self, series: LoadedSeries) -> tuple[LoadedSeries, Generator | None]:
        """The series, with a header for what is still to be made, and what makes it."""
        if not any(each.has_recipe for each in series.patches):
            return series, None
        from patchkit.stack.generated import load_generator, with_headers  # noqa: PLC0415

        # whoever makes a patch is its author, as with `patchkit refresh --new`
        patches = with_headers(series.patches, lambda: user_identity(self._manifest.root))
        series = replace(series, patches=patches)
        generator = load_generator(series.patches)
        return series, generator if generator.recipes else None

    def _carried(self, found: RefreshInput, old: CommitId) -> PlannedRefresh:
        from patchkit.ops.refresh_carry import Carried, carry_patches  # noqa: PLC0415

        made = carry_patches(found, old)
        if isinstance(made, Carried):
            return self._made(found, made, self._onto(found))
        return PlannedRefresh(made.report, stop=made)

    def _made(self, found: RefreshInput, made: Carried, what: str) -> PlannedRefresh:
        """What carrying, or a recipe, made of the patches, and the checkout there; `what` it was,
        for a person.
        """
        there, stack = not found.absent, made.draft.stack
        move = self._arrival(found, stack, made.resumed) if there else None
        operation = Operation(
            found.report.name,
            what,
            bump=made.resumed is not None,
            gitlinks=self._pin.gitlinks if self._pin is not None else {},
        )
        planned = self._planned(
            found, made.draft, made.report, move, operation, resolutions=made.resolutions
        )
        if self._pin is not None:
            planned = self._knowing(planned, self._pin.names)
        if self._bump is None or planned.change is None:
            return planned
        from patchkit.ops.undo import report_text  # noqa: PLC0415

        told = report_text(bumped(self._bump, planned.report))
        change = replace(planned.change, operation=replace(operation, report=told))
        return replace(planned, change=change)

    def _knowing(self, planned: PlannedRefresh, names: PinNames) -> PlannedRefresh:
        """What is planned, with what the lock is to know of names, if that is anything."""
        if planned.change is None or not names:
            return planned
        known = {self._manifest.lock_path: {planned.report.name: names}}
        return replace(planned, change=replace(planned.change, names=known))

    def _arrival(
        self, found: RefreshInput, stack: Stack, resumed: Resumed | None = None
    ) -> BranchMove:
        """The checkout's move to a stack."""
        snapshot = found.snapshot
        assert snapshot.base is not None and snapshot.head is not None
        stood = Place(snapshot.base, snapshot.head) if resumed is None else resumed.halt.before
        held = resumed.work.held if resumed is not None else Held(snapshot.head)
        source = found.cache
        return BranchMove(found.checkout, snapshot, stood, stack, source=source, held=held)

    def _onto(self, found: RefreshInput) -> str:
        """What carried the patches to the new pin, for a person."""
        if self._options.imported is not None:
            return f"import: {', '.join(self._options.imported.names)}"
        if self._pin is None:
            return f"refresh onto {short_id(found.base.commit)}"
        return f"bump to {self._pin.target.new.name or short_id(self._pin.target.new.pin)}"

    def _refresh(self, found: RefreshInput) -> PlannedRefresh:
        snapshot = found.snapshot
        report = replace(found.report, untracked=snapshot.untracked)
        if found.absent:
            return PlannedRefresh(
                replace(report, result=RefreshResult.ABSENT, detail="there is no checkout")
            )
        if (refusal := refusal_of(found)) is not None:
            refuse(report, refusal)
        if is_bare(found) or snapshot.base != found.base.commit:
            with reading(found.cache) as reader:
                stack = build_stack(reader, found.base, found.series.series_patches)
            return self._led_on(found, stack, report)
        repository = found.checkout.repository
        head = snapshot.head
        assert head is not None
        with overlay(repository) as trial, reading(trial) as reader:
            stack = build_stack(reader, found.base, found.series.series_patches)
            tree = _edited_tree(found, trial, head, staged=self._options.request.staged)
            same = stack.tree == tree and head != snapshot.applied
            if not stack.clean or not (same or snapshot.applied == stack.commit):
                return self._led_on(found, stack, report)
            edited = snapshot.edited or head != snapshot.applied
            if not edited and not self._options.request.canonical:
                result = RefreshResult.REFRESHED if found.arrived else RefreshResult.UNCHANGED
                detail = _ARRIVED if found.arrived else ""
                return PlannedRefresh(replace(report, result=result, detail=detail))
            write_objects(trial, stack.objects)
            commits = read_stack(repository, found.base.commit, head)
            start = _start(found, reader, stack, TreeId(tree), commits)
            request, found = self._options.request, replace(found, report=report)
            draft = _routed(
                found, reader, lambda: draft_refresh(start, found.project.home, request)
            )
        return self._drafted(found, stack, draft, report)

    def _series_edited(
        self,
        found: RefreshInput,
        edit: SeriesEdit,
        moved: Problem | None,
        recorded: LockedComponent | None,
    ) -> PlannedRefresh:
        """A verb on the series; uncommitted edits of the checkout stay what they are.

        What is in the way there is no more than a note of a dry run. Of a series that does not
        apply only the files change, and the lock where it applies then. `moved` is what to say
        of a pin that is not the lock's.
        """
        own = () if found.absent else (found.checkout.repository,)
        with overlay(*own, found.cache) as trial, reading(trial) as reader:
            stack = build_stack(reader, found.base, found.series.series_patches)
            if stack.clean and moved is not None:
                refuse(found.report, moved)
            problem = no_series_edit(found, stack) if stack.clean else None
            if problem and not self._options.dry_run:
                refuse(found.report, problem)
            write_objects(trial, stack.objects)
            start = _start(found, reader, stack, stack.tree)
            draft = _routed(found, reader, lambda: edit.draft(start, found.project.home))
        if emptied := emptied_patches(recorded, draft.patches, found.target):
            refuse(found.report, *emptied)
        report = replace(
            found.report,
            result=RefreshResult.REFRESHED,
            detail=draft.detail,
            edits=draft.edits,
            emptied=draft.emptied,
            dropped=draft.dropped,
        )
        operation = Operation(report.name, f"{edit.verb}: {draft.detail}")
        if stack.clean:
            return self._stack_edited(found, stack, draft, report, operation, problem=problem)
        if note := _after_mending(found, draft.stack, moved=moved is not None):
            report = replace(report, notes=(note,))
        lock = draft.stack.clean and moved is None
        return self._planned(found, draft, report, None, operation, lock=lock, always=False)

    def _stack_edited(
        self,
        found: RefreshInput,
        stack: Stack,
        draft: Draft,
        report: RefreshedComponent,
        operation: Operation,
        *,
        problem: Problem | None,
    ) -> PlannedRefresh:
        """A verb on a series that applies: the checkout goes to the new stack."""
        behind = found.snapshot.applied not in (None, stack.commit)
        moves = behind or draft.stack.tree != stack.tree
        if moves and found.snapshot.edited and not problem:
            hint = f"patchkit refresh {found.target}  takes them up"
            what = "the checkout has edits, and its files would change"
            problem = Problem(what, report.name, hint)
            if not self._options.dry_run:
                refuse(found.report, problem)
        report = replace(report, notes=(*draft.notes, *([problem] if problem else [])))
        move = None
        if not found.absent:
            move = replace(self._arrival(found, draft.stack), keep=stack if draft.dropped else None)
            move = move if moves else replace(move, held=None)
        return self._planned(
            found, draft, report, move, operation, always=behind or self._options.names != {}
        )

    def _led_on(
        self, found: RefreshInput, stack: Stack, report: RefreshedComponent
    ) -> PlannedRefresh:
        """A refresh where the patches are not those that were applied: the checkout goes to them.

        Edits are merged into its files on the way, where a conflict can wait for a person.
        """
        if not stack.clean or self._options.dry_run:
            refuse(report, stale(found, stack))
        locks = {self._manifest.lock_path: {report.name: lock_component(stack, found.series)}}
        led_on = replace(report, result=RefreshResult.REFRESHED, detail=_ARRIVED)
        if found.snapshot.state.movable:
            operation = Operation(report.name, f"refresh: {_ARRIVED}")
            move = self._arrival(found, stack)
            return PlannedRefresh(led_on, Change(found.checkout, operation, locks=locks, move=move))
        from patchkit.ops.edit_merge import follow_with_edits  # noqa: PLC0415  mostly it is there

        what = "refresh: edits merged into what the patches are now"
        if problems := follow_with_edits(
            found.checkout,
            found.snapshot,
            stack,
            found.cache,
            Operation(report.name, what, when=self.began),
            locks=locks,
            root=self._manifest.root,
            when=self._options.when,
        ):
            refuse(report, *problems, in_the_way(found))
        found = replace(found, snapshot=inspect(found.checkout))
        if not found.snapshot.state.movable:
            return self._refresh(found)
        return PlannedRefresh(led_on, Change(found.checkout, locks=locks))

    def _drafted(
        self, found: RefreshInput, before: Stack, draft: Draft, report: RefreshedComponent
    ) -> PlannedRefresh:
        """What a refresh took up; undone, it is edits of the checkout again."""
        report = replace(
            report,
            edits=draft.edits,
            emptied=draft.emptied,
            dropped=draft.dropped,
            notes=draft.notes,
        )
        request, snapshot = self._options.request, found.snapshot
        base, applied = CommitId(str(snapshot.base)), CommitId(str(snapshot.applied))
        index = rows_beyond(found.checkout, applied) if snapshot.edited else {}
        keep = before if draft.emptied or draft.dropped else None
        start, stack = Place(base, applied, index=index), draft.stack
        move = BranchMove(found.checkout, snapshot, start, stack, keep)
        operation = Operation(
            report.name,
            f"refresh --new: {request.new}" if request.everything else "refresh",
            edits=True,
            head=CommitId(str(snapshot.head)) if snapshot.head != applied else CommitId(""),
        )
        found = replace(found, report=report)
        report = replace(report, result=RefreshResult.REFRESHED)
        changes = bool(snapshot.edited) or not stack.commit == snapshot.head == applied
        return self._planned(found, draft, report, move, operation, always=changes)

    def _planned(
        self,
        found: RefreshInput,
        draft: Draft,
        report: RefreshedComponent,
        move: BranchMove | None,
        operation: Operation,
        *,
        lock: bool = True,
        always: bool = True,
        resolutions: Mapping[Path, bytes] | None = None,
    ) -> PlannedRefresh:
        """The files and locks that a draft leads to, with what it does to other manifests.

        Without `always` nothing is to be done where no file changes.
        """
        project, component = found.project, found.component
        manifest = self._changes.get(self._manifest.path) or found.manifest_data
        writes = changed_files(project, draft, manifest)
        if not (writes or always):
            return PlannedRefresh(replace(found.report, result=RefreshResult.UNCHANGED))
        uses = other_uses(self._manifest, component, writes, self._store)
        consequences = foresee(uses, writes, self._store, self._progress)
        if consequences.problems:
            refuse(report, *consequences.problems)
        locks = consequences.locks
        resolutions = resolutions or {}
        writes = {**writes, **resolutions}
        there = {path: path.read_bytes() for path in resolutions if path.exists()}
        seen = {**found.seen, **there}
        pinned = self._pin.files.items() if self._pin is not None else ()
        # where the pin stands in the manifest itself, that file may hold more by now
        writes = {**{path: after for path, (_, after) in pinned}, **writes}
        seen = {**seen, **{path: before for path, (before, _) in pinned}}
        if clashes := changed_by_another(found, writes, self._changes):
            refuse(report, *clashes)
        self._changes |= writes
        if lock:
            own = lock_component(draft.stack, LoadedSeries(draft.patches))
            locks.setdefault(self._manifest.lock_path, {})[component.name] = own
        files = {path_below(path, self._manifest.root) for path in writes} | {*operation.gitlinks}
        patches = tuple(_row(each) for each in draft.revised)
        report = replace(report, patches=patches, files=tuple(sorted(files)))
        return PlannedRefresh(report, Change(found.checkout, operation, writes, locks, seen, move))


def _routed(found: RefreshInput, reader: ObjectReader, make: Callable[[], Draft]) -> Draft:
    """A draft; refused where an edit has no patch to go to, or one that a recipe makes."""
    try:
        draft = make()
    except UndecidedEditsError as error:
        raise ambiguous(replace(found.report, edits=error.edits), found) from None
    if draft.edits and found.generator is not None:
        from patchkit.refresh.carry_onto import edited_recipes  # noqa: PLC0415

        if lost := edited_recipes(reader, found.base, draft, found.generator):
            refuse(found.report, *edited_by_hand(lost, found))
    return draft


def _edited_tree(found: RefreshInput, trial: Repository, head: CommitId, *, staged: bool) -> TreeId:
    """The tree that the checkout's edits make: its tracked files, or what is staged of them."""
    repository = found.checkout.repository
    if staged:
        # git notes trees in the index that it writes: in a copy, as this may be a dry run
        copy = trial.git_dir / "staged.index"
        shutil.copyfile(repository.git_dir / "index", copy)
        return TreeId(trial.git("write-tree", index=copy).out.decode().strip())
    tree = tracked_tree(repository, trial) if found.snapshot.edited else repository.tree(head)
    assert tree is not None
    return tree


def _start(
    found: RefreshInput,
    reader: ObjectReader,
    stack: Stack,
    worktree: TreeId,
    commits: tuple[StackCommit, ...] = (),
) -> RefreshStart:
    """What a draft starts from; `reader` reads the repository of trial objects."""
    return RefreshStart(
        repository=reader.repository,
        reader=reader,
        base=found.base,
        patches=found.series.patches,
        stack=stack,
        commits=commits,
        worktree=worktree,
        taken=patch_names_in(found.project.home),
    )


def _after_mending(found: RefreshInput, stack: Stack, *, moved: bool) -> Problem | None:
    """What is next where the series did not apply, and a verb made this stack of it.

    `moved`: the pin is not the lock's.
    """
    target, name = found.target, found.component.name
    if not stack.clean:
        still = next(each.name for each in stack.outcomes if not each.status.applies)
        return Problem(f"{still} still does not apply", name, f"patchkit check {target}  says why")
    if moved:
        hint = f"patchkit refresh {target}  records the new pin"
        return Problem("all patches apply at the pin now", name, hint)
    if found.snapshot.head != stack.commit:
        hint = f"patchkit apply {target}  moves the checkout"
        return Problem("all patches apply now", name, hint)
    return None


def _row(revised: Revised) -> RefreshedPatch:
    patch = revised.new or revised.old
    assert patch is not None
    old, new = (each.file if each is not None else None for each in (revised.old, revised.new))
    same = revised.old is revised.new
    diff = b"" if same else interdiff(old, new, revised.name)
    return RefreshedPatch(revised.name, patch.where, revised.revision, diff)


def _judged(component: RefreshedComponent) -> RefreshedComponent:
    """The report of `refresh --new`: nothing to record is a finding."""
    absent = component.result is RefreshResult.ABSENT
    same = component.result is RefreshResult.REFRESHED and not component.edits
    empty = absent or same or component.result is RefreshResult.UNCHANGED
    if component.problems or not empty:
        return component
    hint = f"edit files in {component.checkout}, git add new ones, and run this again"
    hint = "patchkit apply  makes the checkout" if absent else hint
    problem = Problem("there are no edits to record", component.name, hint)
    return replace(component, exit_code=ExitCode.FINDING, problems=(problem,))
