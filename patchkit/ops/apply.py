"""Bring every component's checkout to its stack: fetch, build, compare with the lock, move.

A component is all or nothing, and does not keep the others from being done.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.errors import (
    ExitCode,
    OfComponents,
    PatchkitError,
    Problem,
    expected,
)
from patchkit.gitcmd.object_reader import ObjectReader, reading
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.outcome import PatchResult
from patchkit.model.progress import Progress
from patchkit.model.text import counted
from patchkit.model.tree import TreeChange
from patchkit.ops.hints import in_columns, ways_out
from patchkit.parallel import in_parallel
from patchkit.stack.build import Stack, StackBuilder
from patchkit.stack.emptied import emptied_patches
from patchkit.stack.lock_differences import LockDifference, compare
from patchkit.stack.lockfile import (
    Lock,
    LockedComponent,
    load_lock,
    lock_component,
    lock_digest,
    merge_lock,
    recorded_in,
    write_lock,
)
from patchkit.stack.series import LoadedSeries, load_series
from patchkit.upstream.store import Store
from patchkit.workspace import Snapshot, checkout_of
from patchkit.workspace.checkout import OWN_FOLDER, locked_file
from patchkit.workspace.enter import (
    Action,
    Entered,
    MovedMeanwhileError,
    Stacked,
    enter_stack,
    foresee,
    marks_of,
)
from patchkit.workspace.operations import (
    LockEntries,
    Operation,
    locks_made,
    record,
    recorded,
)
from patchkit.workspace.state import Place

if TYPE_CHECKING:
    from patchkit.explain.explanation import PatchExplanation


class ApplyResult(str, Enum):
    """What became of a component."""

    CREATED = "created"  # there was no checkout, now there is
    MOVED = "moved"  # the checkout went from another commit to the stack
    UNCHANGED = "unchanged"  # it was there already, nothing was touched
    REFUSED = "refused"  # work of the user's is in the way
    CONFLICTED = "conflicted"  # a patch does not apply
    DIFFERS = "differs"  # the stack is not the one of the lock
    FAILED = "failed"  # something it needs cannot be fetched or read

    @property
    def done(self) -> bool:
        """Whether the checkout is at the stack."""
        return self in (ApplyResult.CREATED, ApplyResult.MOVED, ApplyResult.UNCHANGED)


#: How often a checkout may be moved by another patchkit before that is reported.
_ATTEMPTS = 3


class ApplyOptions(Struct, frozen=True):
    """How to apply."""

    when: int  # now, in seconds since the epoch; it names saved work
    force: bool = False  # save the user's work under a ref and go on
    dry_run: bool = False  # write nothing
    accept: bool = False  # take the stack where it differs from the lock, and record it
    jobs: int = 4  # how many components at once
    locked: bool = False  # refuse edits of patch files and series, too, that the lock lacks


class Failure(Struct, frozen=True):
    """A patch that does not apply: why, and what to do next."""

    explanation: PatchExplanation  # why it does not apply
    next_steps: tuple[str, ...]  # the best first, as they are typed or in words


class AppliedComponent(Struct, frozen=True):
    """What became of one component.

    `base` and `tip` are the commits of the stack, `tree` the tree it results in; None where it was
    not built. `patches` are the verdicts in the order of the series, `failures` say why one does
    not apply. `changed` counts files written or removed in the checkout, None where a dry run
    cannot tell. `saved_ref` is where --force put work of the user's, `restore` the command that
    brings it back, `also_saved` are refs with what came meanwhile or was only in git's index,
    `moved_aside` is a folder that was no checkout of patchkit's and was renamed.
    `left_out` are paths whose contents no server has. `finished`: an apply that was killed earlier
    was finished first. `before` is the checkout as it was found. `problems` keep the component
    from being done, `warnings` do not. `taken_up` are the edits of patch files and of the series
    since the lock was written, which this apply records there.
    """

    not_in_json: ClassVar[frozenset[str]] = frozenset({"lock"})

    name: str  # of the component
    checkout: Path
    result: ApplyResult
    exit_code: ExitCode = ExitCode.OK
    base: CommitId | None = None
    tip: CommitId | None = None
    tree: TreeId | None = None
    patches: tuple[PatchResult, ...] = ()
    failures: tuple[Failure, ...] = ()
    changed: int | None = None
    saved_ref: str | None = None
    also_saved: tuple[str, ...] = ()
    restore: str | None = None
    moved_aside: Path | None = None
    left_out: tuple[str, ...] = ()
    finished: bool = False
    before: Snapshot | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    taken_up: tuple[str, ...] = ()
    lock: LockedComponent | None = None


class ApplyReport(OfComponents, Struct, frozen=True):
    """What became of the components, in the manifest's order.

    `lock` is the lock file, `lock_written` whether this run wrote it. With `dry_run` nothing was
    written, and each result is what would have come of it.
    """

    manifest: str
    dry_run: bool
    components: tuple[AppliedComponent, ...]
    lock: Path
    lock_written: bool
    warnings: tuple[Problem, ...] = ()  # on manifest and lock, beside the components


def apply_components(
    manifest: Manifest,
    components: Sequence[Component],
    *,
    store: Store,
    workspace: Path,
    options: ApplyOptions,
    progress: Progress,
) -> ApplyReport:
    """Bring the checkouts of `components` to their stacks, and write the lock.

    BadInputError if the lock cannot be read; everything else that is wrong is in the report.
    """
    lock = load_lock(manifest.lock_path)
    applying = _Applying(manifest, store, workspace, options, progress, lock)
    applied = in_parallel(applying.component, components, jobs=options.jobs, stop=store.stop.ask)
    written = not options.dry_run and applying.write_lock(applied)
    return ApplyReport(
        manifest.name,
        options.dry_run,
        applied,
        manifest.lock_path,
        written,
        () if options.accept else _strangers_in_lock(manifest, lock),
    )


class _Applying(Struct, frozen=True):
    manifest: Manifest
    store: Store
    workspace: Path  # the folder that holds the checkouts
    options: ApplyOptions  # of the command line
    progress: Progress
    lock: Lock | None
    began: int = field(default_factory=time.time_ns)  # in the history: all of it is undone as one

    def component(self, component: Component) -> AppliedComponent:
        """One component from its pin to its checkout; never raises what concerns it alone."""
        place = checkout_of(self.workspace, self.manifest, component).path
        blank = AppliedComponent(component.name, place, ApplyResult.FAILED)
        try:
            applied = self._in_peace(component, blank)
        except (PatchkitError, OSError) as error:
            failed = expected(error, component.name)
            applied = replace(blank, exit_code=failed.exit_code, problems=failed.problems)
        self.progress.finish(component.name, applied.result.value)
        return applied

    def write_lock(self, applied: Sequence[AppliedComponent]) -> bool:
        """Put what is done into the lock; keeps what other processes wrote there meanwhile."""
        done = {each.name: each.lock for each in applied if each.result.done and each.lock}
        if self.options.locked:  # what is there agrees; CI is no place to add to it
            done = {name: done[name] for name in done if recorded_in(self.lock, name) is None}
        path = self.manifest.lock_path
        if not done or self._merged(done) == load_lock(path):
            return False
        with locked_file(self.workspace.absolute() / OWN_FOLDER / f"{path.name}.lock", path):
            return write_lock(path, self._merged(done))

    def _lock_made(self, applied: AppliedComponent) -> dict[str, LockEntries]:
        """What the lock is about to say of a component that it does not yet, for the history."""
        lock, known = applied.lock, recorded_in(self.lock, applied.name)
        if (
            lock is None
            or (self.options.locked and known)
            or lock_digest(lock) == lock_digest(known)
        ):
            return {}
        return locks_made(self.manifest.root, {self.manifest.lock_path: {applied.name: lock}})

    def _merged(self, done: Mapping[str, LockedComponent]) -> Lock:
        lock = load_lock(self.manifest.lock_path)
        known = {each.name for each in self.manifest.components}
        gone = set(lock.components) - known if lock and self.options.accept else ()
        return merge_lock(lock, done, drop=gone)

    def _in_peace(self, component: Component, blank: AppliedComponent) -> AppliedComponent:
        """Apply; again, with the patches and lock of then, where another patchkit was faster."""
        lock = self.lock
        for _ in range(_ATTEMPTS):
            try:
                return self._apply(component, lock, blank)
            except MovedMeanwhileError:
                lock = load_lock(self.manifest.lock_path)
        return self._apply(component, lock, blank)

    def _apply(
        self, component: Component, lock: Lock | None, blank: AppliedComponent
    ) -> AppliedComponent:
        base = self.store.base(component, self.progress)
        marks = marks_of(checkout_of(self.workspace, self.manifest, component))
        series = load_series(self.manifest, component, self.store, self.progress)
        what = f"applying {counted(len(series.patches), 'patch', 'patches')}"
        self.progress.step(component.name, what, local=True)
        repository = self.store.repository(component)
        with reading(repository) as reader:
            builder = StackBuilder(reader, base)
            stack = builder.build(series.series_patches)
            if not stack.clean:
                return self._conflicted(component, series, stack, reader, lock, blank)
            changes = builder.changes(series.series_patches)
        built = replace(blank, base=base.commit, patches=stack.outcomes)
        actual = lock_component(stack, series)
        built = replace(built, tip=stack.commit, tree=stack.tree, lock=actual)
        recorded = recorded_in(lock, component.name)
        differences = compare(recorded, actual) if recorded is not None else ()
        emptied = emptied_patches(recorded, series.patches, self.manifest.options(component.name))
        if (emptied and not self.options.accept) or self._refuses(differences, series):
            return replace(
                built,
                result=ApplyResult.DIFFERS,
                exit_code=ExitCode.FINDING,
                problems=emptied or self._differs(component, differences),
            )
        built = replace(built, taken_up=tuple(each.edit or each.what for each in differences))
        return self._enter(component, stack, changes, built, marks)

    def _conflicted(  # noqa: PLR0917
        self,
        component: Component,
        series: LoadedSeries,
        stack: Stack,
        reader: ObjectReader,
        lock: Lock | None,
        blank: AppliedComponent,
    ) -> AppliedComponent:
        """The report of a stack that does not apply."""
        # a stack that applies should feel instant
        from patchkit.explain.diagnose import explain_stack  # noqa: PLC0415
        from patchkit.explain.explanation import next_steps  # noqa: PLC0415

        patches = {patch.name: patch for patch in series.patches}
        recorded = recorded_in(lock, component.name)
        repinned = recorded is not None and recorded.commit != stack.base.commit
        stack, found = explain_stack(reader, stack, series.series_patches)
        failures = (
            Failure(
                why,
                next_steps(why, patches[why.name], self.manifest, component, repinned=repinned),
            )
            for why in found
        )
        return replace(
            blank,
            result=ApplyResult.CONFLICTED,
            exit_code=ExitCode.FINDING,
            base=stack.base.commit,
            patches=stack.outcomes,
            failures=tuple(failures),
        )

    def _refuses(self, differences: Sequence[LockDifference], series: LoadedSeries) -> bool:
        """Whether the stack is not the lock's, in more than edits of the project's own patches."""
        if self.options.accept:
            return False
        return any(self.options.locked or not each.is_local(series) for each in differences)

    def _differs(
        self, component: Component, differences: Sequence[LockDifference]
    ) -> tuple[Problem, ...]:
        target = self.manifest.options(component.name)
        ways = [("accept it and record it", f"patchkit apply {target} --accept")]
        if any(each.is_base for each in differences):
            ways.insert(0, ("carry the patches to the new pin", f"patchkit refresh {target}"))
        found = [Problem(each.what, component.name) for each in differences]
        found[-1] = replace(found[-1], hint=in_columns(ways))
        return tuple(found)

    def _enter(
        self,
        component: Component,
        stack: Stack,
        changes: tuple[TreeChange, ...],
        built: AppliedComponent,
        marks: tuple[int, ...],
    ) -> AppliedComponent:
        self.progress.step(component.name, "looking at the checkout", local=True)
        checkout = checkout_of(self.workspace, self.manifest, component)
        after = Place(stack.base.commit, stack.commit)

        def recording(before: Place | None) -> AbstractContextManager[None]:
            what = "apply" if before else "apply, which made the checkout or took it over"
            made, final = self._lock_made(built), before is None
            operation = Operation(
                component.name, what, {}, made, before, after, final=final, when=self.began
            )
            return recorded(checkout, self.manifest.root, operation)

        stacked = Stacked(
            *after.stack,
            stack.objects,
            self.store.repository(component),
            changes,
            recording,
        )
        force = self.options.force
        if self.options.dry_run:
            entered = foresee(checkout, stacked, force=force)
        else:
            entered = enter_stack(
                checkout, stacked, when=self.options.when, force=force, made_after=marks
            )
            if entered.action is Action.UNCHANGED and (made := self._lock_made(built)):
                operation = Operation(
                    component.name, "apply: the lock", locks=made, when=self.began
                )
                record(checkout, self.manifest.root, operation)
        return self._entered(component, entered, built)

    def _entered(
        self, component: Component, entered: Entered, built: AppliedComponent
    ) -> AppliedComponent:
        refused = entered.action is Action.REFUSED
        saved, restore = entered.saved, None
        if saved:
            from patchkit.ops.saved import command_back  # noqa: PLC0415  (most save nothing)

            restore = command_back(self.manifest, component, self.workspace, saved)
        return replace(
            built,
            result=ApplyResult(entered.action.value),
            exit_code=ExitCode.FINDING if refused else ExitCode.OK,
            changed=(entered.changed or None) if self.options.dry_run else entered.changed,
            saved_ref=saved or None,
            also_saved=entered.also_saved,
            restore=restore,
            moved_aside=entered.moved_aside,
            left_out=entered.left_out,
            finished=entered.finished,
            before=entered.before,
            problems=ways_out(self.manifest, component, built.checkout, entered),
        )


def _strangers_in_lock(manifest: Manifest, lock: Lock | None) -> tuple[Problem, ...]:
    names: Mapping[str, object] = {} if lock is None else lock.components
    return tuple(
        Problem(
            f"{name} is in the lock and not in the manifest",
            str(manifest.lock_path),
            f"take it out with: patchkit apply {manifest.options()} --accept",
        )
        for name in names
        if manifest.component(name) is None
    )
