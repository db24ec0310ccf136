"""`apply --into`: stacks put into a folder of installed packages, and taken back.

One folder, one transaction: all components that were asked for, or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from enum import Enum
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.disk.transaction import recover
from patchkit.errors import ExitCode, Problem, UsageError, worst
from patchkit.installed.layer import (
    AttestedPatch,
    Layer,
    LeftOut,
    Receipt,
    attest_layers,
    digest_of,
    receipts_in,
)
from patchkit.installed.placement import (
    FolderView,
    StackFile,
    Whereabouts,
    editable_home,
    find_placement,
    is_stale,
    on_other_layers,
    put_layer,
    stack_files,
    take_back,
)
from patchkit.manifest.values import Component, Manifest
from patchkit.model.outcome import Status
from patchkit.model.progress import Progress
from patchkit.ops.stacks import BuiltStack, built_stack, require_clean, stack_upon
from patchkit.stack.lockfile import LockedComponent, compare, load_lock, lock_component, recorded_in
from patchkit.upstream.store import Store


class IntoResult(str, Enum):
    """What became of a component in a folder."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"  # every patch was live already, and the receipt is there
    REVERSED = "reversed"
    ABSENT = "absent"  # none of its files is there
    REFUSED = "refused"  # a file there is no base of the stack
    CONFLICTED = "conflicted"  # it does not apply on what another layer made
    DIFFERS = "differs"  # the stack is not the one of the lock
    HELD = "held"  # nothing is wrong with it, but with another one

    @property
    def done(self) -> bool:
        """Whether the folder is as it was asked for."""
        return self in (IntoResult.APPLIED, IntoResult.UNCHANGED, IntoResult.REVERSED)


class IntoComponent(Struct, frozen=True):
    """What became of one component.

    `package` is the wheel that brought the files, by name and version, "" where none lists them.
    `changed` are the paths in the folder that were written or removed, RECORD and compiled files
    among them. `patches` say what is live afterwards; `left_out` are files of patches that are not
    installed. `shared_with` are the layers of other manifests that changed one of its files, too.
    """

    manifest: str
    component: str
    result: IntoResult
    package: str = ""
    changed: tuple[str, ...] = ()
    patches: tuple[AttestedPatch, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    shared_with: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class IntoReport(Struct, frozen=True):
    """What became of a folder; with `dry_run` what would have become of it."""

    folder: Path
    dry_run: bool
    components: tuple[IntoComponent, ...]

    @property
    def exit_code(self) -> ExitCode:
        """A finding where something was not done."""
        codes = (ExitCode.OK if c.result.done else ExitCode.FINDING for c in self.components)
        return worst(codes)


def apply_into(
    manifest: Manifest,
    components: Sequence[Component],
    folder: Path,
    *,
    store: Store,
    dry_run: bool,
    progress: Progress,
) -> IntoReport:
    """Put the stacks of `components` into a folder of installed packages, or change nothing.

    Components without patches are passed over. On disk: the patched files, their compiled forms
    removed, RECORD, and a receipt for each component. BadInputError if a stack does not apply to
    its pin, or a receipt is damaged.
    """
    _require_folder(folder, dry_run=dry_run)
    view = FolderView(folder)
    into = _Into(manifest, store, progress, view)
    lock = load_lock(manifest.lock_path)
    receipts = list(receipts_in(folder))
    found = []
    for component in components:
        if component.patches:
            found.append(into.component(component, recorded_in(lock, component.name), receipts))
    done = all(each.result.done for each in found)
    if done and not dry_run:
        view.commit()
    return IntoReport(folder, dry_run, tuple(found) if done else tuple(map(_held, found)))


def reverse_into(
    folder: Path, *, manifest: str | None, components: Collection[str], dry_run: bool
) -> IntoReport:
    """Take back what was put into a folder, the top layer first, or change nothing.

    Only of `manifest` and `components`, where they are given. Needs the receipts and nothing else.
    """
    _require_folder(folder, dry_run=dry_run)
    view = FolderView(folder)
    receipts = receipts_in(folder)
    chosen = [
        each
        for each in reversed(receipts)
        if manifest in (None, each.layer.manifest)
        and (not components or each.layer.component in components)
    ]
    if not chosen:
        have = ", ".join(each.layer.title for each in receipts) or "none"
        raise UsageError(f"{folder} has no receipt of that", hint=f"there are: {have}")
    found = []
    for each in chosen:
        before = set(view.changed)
        left = [r for r in receipts if r is not each]
        problems = tuple(take_back(view, each, left))
        receipts = tuple(left)
        result = IntoResult.REFUSED if problems else IntoResult.REVERSED
        changed = tuple(path for path in view.changed if path not in before)
        layer = each.layer
        found.append(
            IntoComponent(
                layer.manifest, layer.component, result, changed=changed, problems=problems
            )
        )
    done = all(each.result.done for each in found)
    if done and not dry_run:
        view.commit()
    return IntoReport(folder, dry_run, tuple(found) if done else tuple(map(_held, found)))


class _Into(Struct, frozen=True):
    manifest: Manifest
    store: Store
    progress: Progress
    view: FolderView

    def component(
        self, component: Component, recorded: LockedComponent | None, receipts: list[Receipt]
    ) -> IntoComponent:
        """Plan one component in the view; `receipts` get its new one."""
        blank = IntoComponent(self.manifest.name, component.name, IntoResult.REFUSED)
        with built_stack(self.manifest, component, self.store, self.progress) as built:
            require_clean(built, self.manifest)
            actual = lock_component(built.stack, built.series)
            if recorded is not None and recorded != actual:
                hint = f"patchkit apply {self.manifest.options(component.name)} takes them up"
                differences = compare(recorded, actual)
                problems = (Problem(each.what, component.name, hint) for each in differences)
                return replace(blank, result=IntoResult.DIFFERS, problems=tuple(problems))
            return self._planned(component, built, layer_of(self.manifest, built), receipts, blank)

    def _planned(
        self,
        component: Component,
        built: BuiltStack,
        layer: Layer,
        receipts: list[Receipt],
        blank: IntoComponent,
    ) -> IntoComponent:
        view, before = self.view, set(self.view.changed)
        files = stack_files(built.source, built.stack, built.series.series_patches)
        own = next((each for each in receipts if each.layer.title == layer.title), None)
        others = [each for each in receipts if each is not own]
        if own is not None and _is_same(own.layer, layer) and _is_live(view, own, others):
            unchanged = replace(blank, result=IntoResult.UNCHANGED)
            return self._told(unchanged, find_placement(view, component, files), own.layer, others)
        if own is not None and not is_stale(view, own):
            problems = take_back(view, own, others)
            if problems:
                return replace(blank, problems=tuple(problems))
        placement = find_placement(view, component, files)
        if placement is None:
            absent = (self._absent(component, files),)
            return replace(blank, result=IntoResult.ABSENT, problems=absent)
        blank = replace(blank, package=_title(placement))
        base = on_other_layers(view, placement, files, others, built.source)
        upon = stack_upon(built, base)
        if not upon.stack.clean:
            problems = list(_conflicts(upon, others))
            return replace(blank, result=IntoResult.CONFLICTED, problems=tuple(problems))
        number = own.number if own else max((each.number for each in others), default=0) + 1
        files = stack_files(upon.source, upon.stack, built.series.series_patches)
        planned = put_layer(view, placement, layer, files, upon.source, number=number)
        if planned.receipt is None:
            return replace(blank, problems=tuple(planned.problems))
        receipts[:] = [*others, planned.receipt]
        changed = tuple(path for path in view.changed if path not in before)
        applied = replace(blank, result=IntoResult.APPLIED, changed=changed)
        return self._told(applied, placement, planned.layer, others)

    def _told(
        self,
        found: IntoComponent,
        placement: Whereabouts | None,
        layer: Layer,
        others: Sequence[Receipt],
    ) -> IntoComponent:
        paths = {file.path for file in layer.files}
        shared = [r.layer.title for r in others if paths & {f.path for f in r.layer.files}]
        digests = {path: digest_of(self.view.read(path)) for path in paths}
        (attested,) = attest_layers([layer], digests)
        return replace(
            found,
            package=_title(placement),
            patches=attested.patches,
            left_out=layer.left_out,
            shared_with=tuple(shared),
        )

    def _absent(self, component: Component, files: Sequence[StackFile]) -> Problem:
        root = self.view.root
        home = editable_home(root, component, files)
        if home is not None:
            what = f"{component.name} is installed editable: it runs from {home}"
            return Problem(what, "", f"patch it there: --into {home}")
        inner = next(iter(sorted(root.glob("**/*-packages"))), None)
        hint = "name the components that are there with -c, or say where they are under `layout`"
        if inner is not None:
            hint = f"is it in {inner}?"
        return Problem(f"no file of {component.name} is in {root}", "", hint)


def layer_of(manifest: Manifest, built: BuiltStack) -> Layer:
    """The layer of a stack, without files."""
    locked = lock_component(built.stack, built.series)
    return Layer(
        manifest.name,
        built.component.name,
        locked.commit,
        locked.result,
        lock_digest(locked),
        tuple(each.name for each in locked.patches),
        (),
    )


def lock_digest(locked: LockedComponent) -> str:
    """The SHA-256 of what a lock says of a component: two stacks are the same if theirs is."""
    return sha256(json.dumps(to_builtins(locked), sort_keys=True).encode()).hexdigest()


def _is_same(one: Layer, other: Layer) -> bool:
    return (one.digest, one.patches) == (other.digest, other.patches)


def _is_live(view: FolderView, own: Receipt, others: Sequence[Receipt]) -> bool:
    layers = [r.layer for r in sorted([*others, own], key=lambda each: each.number)]
    paths = {file.path for layer in layers for file in layer.files}
    digests = {path: digest_of(view.read(path)) for path in paths}
    return all(a.live for a in attest_layers(layers, digests) if a.layer is own.layer)


def _conflicts(upon: BuiltStack, others: Sequence[Receipt]) -> Iterator[Problem]:
    names = ", ".join(each.layer.title for each in others)
    hint = "order the layers otherwise: take that back, put this first"
    for each in upon.stack.outcomes:
        if each.status is Status.CONFLICTED:
            yield Problem(f"{each.name} does not apply on top of {names}", "", hint)


def _title(placement: Whereabouts | None) -> str:
    owner = placement.owner if placement is not None else None
    return "" if owner is None else owner.title


def _held(found: IntoComponent) -> IntoComponent:
    """Of a run that changes nothing: what could have been done was not."""
    return replace(found, result=IntoResult.HELD, changed=()) if found.result.done else found


def _require_folder(folder: Path, *, dry_run: bool) -> None:
    if folder.is_file():
        hint = "unpack it, or install it so that its files are in a folder"
        raise UsageError(f"{folder} is a file, not a folder", hint=hint)
    if not folder.is_dir():
        hint = "python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))' tells one"
        raise UsageError(f"{folder} is no folder", hint=hint)
    if (folder / ".git").exists():
        hint = "patchkit apply without --into works on checkouts and keeps their history"
        raise UsageError(f"{folder} is a git checkout", hint=hint)
    if not dry_run:
        recover(folder)
