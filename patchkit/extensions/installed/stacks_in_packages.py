"""Stacks in installed packages: put into a folder of them and taken back (`install`), and told
from the bytes that are there (`attest`).

One folder, one transaction: all components that were asked for, or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import is_half_done, unless_gone
from patchkit.disk.transaction import recover
from patchkit.errors import (
    ExitCode,
    PatchkitError,
    Problem,
    SurroundingsError,
    UsageError,
    worst,
)
from patchkit.extensions.installed.layer import (
    EXECUTABLE,
    RECEIPTS,
    AttestedLayer,
    AttestedPatch,
    Layer,
    LayerFile,
    LeftOut,
    PatchPresence,
    Receipt,
    attest_layers,
    receipt_path,
    receipts_in,
    unpacked,
)
from patchkit.extensions.installed.placement import (
    FolderView,
    Whereabouts,
    accepted_files,
    blob_id,
    editable_home,
    find_placement,
    is_stale,
    on_other_layers,
    place_files,
    put_layer,
    take_back,
    with_contents,
)
from patchkit.extensions.installed.wheel_record import Distribution
from patchkit.gitcmd.target_python import ask_python
from patchkit.gitcmd.trees import Overlay
from patchkit.manifest.values import Component, GitPin, Manifest
from patchkit.model.objects import EXECUTABLE_MODE, GitObject
from patchkit.model.outcome import Status
from patchkit.model.progress import Progress
from patchkit.model.tree import Tree
from patchkit.ops.built_stack import BuiltStack, built_stack, require_clean
from patchkit.stack.build import StackFile, build_stack
from patchkit.stack.lock_differences import compare
from patchkit.stack.lockfile import (
    LockedComponent,
    load_lock,
    lock_component,
    lock_digest,
    recorded_in,
)
from patchkit.stack.series import load_series
from patchkit.upstream.store import Store


class IntoResult(str, Enum):
    """What became of a component in a folder."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"  # every patch was live already, and the receipt is there
    REVERSED = "reversed"
    REINSTALLED = "reinstalled"  # or removed: nothing of it was there to be reversed
    ABSENT = "absent"  # none of its files is there
    REFUSED = "refused"  # a file there is no base of the stack
    CONFLICTED = "conflicted"  # it does not apply on what another layer made
    DIFFERS = "differs"  # the stack is not the one of the lock
    HELD = "held"  # nothing is wrong with it, but with another one

    @property
    def done(self) -> bool:
        """Whether the folder is as it was asked for."""
        return self in (
            IntoResult.APPLIED,
            IntoResult.UNCHANGED,
            IntoResult.REVERSED,
            IntoResult.REINSTALLED,
        )


class IntoComponent(Struct, frozen=True):
    """What became of one component.

    `package` is the wheel that brought the files, by name and version, "" where none lists them.
    `changed` are the paths in the folder that were written or removed, RECORD and compiled files
    among them. `patches` say what is live afterwards; `left_out` are files of patches that are not
    installed, `reasons` say why files of the wheel that are not the pin's were patched.
    `shared_with` are the layers of
    other manifests that changed one of its files, too.
    """

    manifest: str
    component: str
    result: IntoResult  # what became of it
    package: str = ""
    changed: tuple[str, ...] = ()
    patches: tuple[AttestedPatch, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    reasons: Mapping[str, str] = {}  # path -> reason
    shared_with: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class IntoReport(Struct, frozen=True):
    """What became of a folder; with `dry_run` what would have become of it."""

    folder: Path
    dry_run: bool
    components: tuple[IntoComponent, ...]  # in the manifest's order

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
    removed, RECORD, and a receipt for each component.
    BadInputError if a stack does not apply to its pin, or a receipt is damaged.
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
    return _committed(view, found, dry_run=dry_run)


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
        if not receipts:
            raise UsageError(f"{folder} has no receipt: nothing is patched there")
        have = ", ".join(each.layer.title for each in receipts)
        raise UsageError(f"{folder} has no receipt of that", hint=f"there are: {have}")
    found = []
    for each in chosen:
        before = set(view.changed)
        left = [r for r in receipts if r is not each]
        stale = is_stale(view, each)
        problems = tuple(take_back(view, each, left, stale=stale))
        result = IntoResult.REINSTALLED if stale else IntoResult.REVERSED
        result = IntoResult.REFUSED if problems else result
        receipts = tuple(left)
        changed = tuple(path for path in view.changed if path not in before)
        layer = each.layer
        found.append(
            IntoComponent(
                layer.manifest, layer.component, result, changed=changed, problems=problems
            )
        )
    return _committed(view, found, dry_run=dry_run)


def _committed(view: FolderView, found: Sequence[IntoComponent], *, dry_run: bool) -> IntoReport:
    """Write what was planned for all components, or nothing where one cannot be done."""
    done = all(each.result.done for each in found)
    if done and not dry_run:
        view.commit()
    held = (replace(e, result=IntoResult.HELD, changed=()) if e.result.done else e for e in found)
    return IntoReport(view.root, dry_run, tuple(found if done else held))


class _Into(Struct, frozen=True):
    manifest: Manifest
    store: Store
    progress: Progress
    view: FolderView  # the folder as it will be

    def component(
        self, component: Component, recorded: LockedComponent | None, receipts: list[Receipt]
    ) -> IntoComponent:
        """Plan one component in the view; `receipts` get its new one."""
        blank = IntoComponent(self.manifest.name, component.name, IntoResult.REFUSED)
        with built_stack(self.manifest, component, self.store, self.progress) as built:
            require_clean(built, self.manifest)
            actual = lock_component(built.stack, built.series)
            if differences := compare(recorded, actual) if recorded is not None else ():
                hint = f"patchkit apply {self.manifest.options(component.name)}  takes them up"
                problems = (Problem(each.what, component.name, hint) for each in differences)
                return replace(blank, result=IntoResult.DIFFERS, problems=tuple(problems))
            layer = layer_of(self.manifest, component.name, actual)
            return self._planned(component, built, layer, receipts, blank)

    def _planned(
        self,
        component: Component,
        built: BuiltStack,
        layer: Layer,
        receipts: list[Receipt],
        blank: IntoComponent,
    ) -> IntoComponent:
        view, before = self.view, set(self.view.changed)
        files = built.stack.files
        own = next((each for each in receipts if each.layer.title == layer.title), None)
        others = [each for each in receipts if each is not own]
        if (
            own is not None
            and (own.layer.digest, own.layer.patches) == (layer.digest, layer.patches)
            and _is_live(view, own, others)
        ):
            unchanged = replace(blank, result=IntoResult.UNCHANGED)
            return self._told(unchanged, find_placement(view, component, files), own.layer, others)
        made = {entry.oid for each in files if (entry := each.entries[-1]) is not None}
        if (
            own is not None
            and not is_stale(view, own)
            and (problems := take_back(view, own, others, known=made))
        ):
            return replace(blank, problems=tuple(problems))
        placement = find_placement(view, component, files)
        if placement is None or placement.problems:
            result = IntoResult.REFUSED if placement else IntoResult.ABSENT
            problems = [*placement.problems] if placement else [self._absent(component, files)]
            return replace(blank, result=result, problems=tuple(problems))
        blank = replace(blank, package=placement.title)
        declared = _declared(component, view, placement, files)
        differing = accepted_files(view, placement, files, declared)
        base = differing | on_other_layers(view, placement, files, others, built.source)
        upon = _upon(built, base)
        if not upon.stack.clean:
            problems = list(_conflicts(upon, others, differing))
            return replace(blank, result=IntoResult.CONFLICTED, problems=tuple(problems))
        number = own.number if own else max((each.number for each in others), default=0) + 1
        files = upon.stack.files
        layer = _accepting(layer, placement, differing, declared)
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
        (attested,) = attest_layers([layer], self.view.states)
        return replace(
            found,
            package="" if placement is None else placement.title,
            patches=attested.patches,
            left_out=layer.left_out,
            reasons=layer.reasons,
            shared_with=tuple(shared),
        )

    def _absent(self, component: Component, files: Sequence[StackFile]) -> Problem:
        root = self.view.root
        home = editable_home(root, component, files)
        if home is not None:
            what = f"{component.name} is installed editable: it runs from {home}"
            return Problem(what, "", f"patch it there: `patchkit install {home}`")
        inner = next(iter(sorted(root.glob("**/*-packages"))), None)
        hint = "name the components that are there with -c, or say where they are under `layout`"
        if inner is not None:
            hint = f"is it in {inner}?"
        return Problem(f"no file of {component.name} is in {root}", "", hint)


def layer_of(manifest: Manifest, name: str, locked: LockedComponent) -> Layer:
    """The layer of a component's stack, without files."""
    names = tuple(each.name for each in locked.patches)
    digest = lock_digest(locked)
    return Layer(manifest.name, name, locked.commit, digest, names, ())


def _declared(
    component: Component,
    view: FolderView,
    placement: Whereabouts,
    files: Sequence[StackFile],
) -> dict[str, str]:
    """Path in the folder -> why it may differ from the pin's, of those that do."""
    if not component.differing:
        return {}
    from patchkit.manifest.globs import Scope  # noqa: PLC0415 (most components have none)

    found: dict[str, str] = {}
    for file in files:
        path, entry = placement.installed(file.path), file.entries[0]
        reasons = [d.reason for d in component.differing if Scope(d.files).covers(file.path)]
        if not reasons or path is None or entry is None:
            continue
        data = view.read(path)
        if data is None or blob_id(data) != entry.oid:
            found[path] = reasons[0]
    return found


def _accepting(
    layer: Layer, placement: Whereabouts, differing: Mapping[str, bytes], reasons: Mapping[str, str]
) -> Layer:
    taken = (placement.installed(path) for path in sorted(differing))
    return replace(layer, reasons={path: reasons[path] for path in taken if path is not None})


def _is_live(view: FolderView, own: Receipt, others: Sequence[Receipt]) -> bool:
    layers = [r.layer for r in sorted([*others, own], key=lambda each: each.number)]
    return all(a.live for a in attest_layers(layers, view.states) if a.layer is own.layer)


def _conflicts(
    upon: BuiltStack, others: Sequence[Receipt], differing: Collection[str]
) -> Iterator[Problem]:
    names = ", ".join([*(each.layer.title for each in others), *sorted(differing)])
    hint = "order the layers otherwise: take that back, put this first"
    if differing:
        hint = "the wheel's own file differs where the patch changes it: it cannot be accepted"
    for each in upon.stack.outcomes:
        if each.status is Status.CONFLICTED:
            yield Problem(f"{each.name} does not apply on top of {names}", "", hint)


def _require_folder(folder: Path, *, dry_run: bool) -> None:
    if folder.is_file():
        hint = "unpack it, or install it so that its files are in a folder"
        raise UsageError(f"{folder} is a file, not a folder", hint=hint)
    if not folder.is_dir():
        hint = "python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))' prints one"
        raise UsageError(f"{folder} is not a folder", hint=hint)
    if (folder / ".git").exists():
        hint = "`patchkit apply` works on checkouts and keeps their history"
        raise UsageError(f"{folder} is a git checkout", hint=hint)
    if not dry_run:
        recover(folder)


# `attest`: what of which stacks is in installed packages, by their bytes.
#
# With a manifest the files are compared with those of its stack, which the lock has, or which is
# built. Without one there is only what receipts say.


#: Folders of an image that are the kernel's, or too large to have packages.
_NOT_LOOKED_AT = frozenset({"proc", "sys", "dev", ".git"})


class Verdict(str, Enum):
    """What is known of a stack in a folder."""

    LIVE = "live"  # all of it that can be there is: the files are those of the manifest's stack
    NOT_LIVE = "not live"
    RECEIPT = "as its receipt says"  # no manifest was given, and a receipt may be forged
    UNKNOWN = "unknown"  # what the stack makes of the files, or where they are, is not known


class AttestedComponent(Struct, frozen=True):
    """What of a component's stack is in a folder.

    `package` are the wheels, by name and version; `receipt` whether there is one; `base` the commit
    of the stack, `lock` the digest of what the lock says of it. `neither` are files that are
    neither the stack's nor its base's, `left_out` those that are not installed. `unrecorded` are
    files of which the wheel's RECORD says another hash, `reasons` say why files of the wheel's own
    that are not the pin's were patched. `problems` say why it is unknown.
    """

    manifest: str
    component: str
    folder: str
    verdict: Verdict
    package: str = ""
    receipt: bool = False
    base: str = ""
    lock: str = ""
    patches: tuple[AttestedPatch, ...] = ()  # in the order of the series
    neither: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    unrecorded: tuple[str, ...] = ()
    reasons: Mapping[str, str] = {}  # path -> reason
    problems: tuple[Problem, ...] = ()


class AttestReport(Struct, frozen=True):
    """What is in the folders. `absent` are components of the manifest that are in none of them;
    `interrupted` folders in which an `install` was killed: it is to be run again.
    """

    folders: tuple[str, ...]
    components: tuple[AttestedComponent, ...]
    absent: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """OK only where there is something, and all of it is live."""
        good = bool(self.components) and not self.absent and not self.interrupted
        good &= all(each.verdict is Verdict.LIVE for each in self.components)
        return ExitCode.OK if good else ExitCode.FINDING


class Expected(Struct, frozen=True):
    """The manifest that is looked for."""

    manifest: Manifest
    components: Sequence[Component]
    store: Store
    progress: Progress

    def built(self, component: Component) -> AbstractContextManager[BuiltStack]:
        """The stack of a component."""
        return built_stack(self.manifest, component, self.store, self.progress)

    def locked(self, component: Component) -> LockedComponent:
        """What the lock says of a component; where that is not so any more, what its stack is."""
        recorded = recorded_in(load_lock(self.manifest.lock_path), component.name)
        if recorded is not None:
            known, now = {(p.name, p.sha256) for p in recorded.patches}, set[tuple[str, str]]()
            with suppress(PatchkitError):  # an image may have manifest and lock alone
                series = load_series(self.manifest, component, self.store, self.progress)
                now = {(patch.name, patch.sha256) for patch in series.patches}
            moved = isinstance(component.pin, GitPin) and component.pin.commit != recorded.commit
            if now in (known, set()) and not moved:
                return recorded
        with self.built(component) as built:
            require_clean(built, self.manifest)
            return lock_component(built.stack, built.series)


def attest(
    folders: Sequence[Path], expected: Expected | None, *, image: Path | None = None
) -> AttestReport:
    """Judge what is in folders of installed packages; nothing is written.

    No link out of `image` is followed. BadInputError for a receipt that is damaged.
    """
    found: list[AttestedComponent] = []
    for folder in folders:
        view, receipts = FolderView(folder, image), receipts_in(folder)
        if expected is None:
            found += _by_receipts(view, receipts)
            continue
        for component in (each for each in expected.components if each.patches):
            try:
                found += _by_manifest(view, expected, component, receipts)
            except PatchkitError as error:
                blank = expected.manifest.name, component.name, str(folder), Verdict.UNKNOWN
                found.append(AttestedComponent(*blank, problems=error.problems))
    absent: tuple[str, ...] = ()
    if expected is not None:
        names = {each.component for each in found}
        patched = (c.name for c in expected.components if c.patches)
        absent = tuple(name for name in patched if name not in names)
    killed = [each for each in folders if is_half_done(each)]
    return AttestReport(tuple(map(str, folders)), tuple(found), absent, tuple(map(str, killed)))


def _by_receipts(view: FolderView, receipts: Sequence[Receipt]) -> Iterator[AttestedComponent]:
    for each in attest_layers([receipt.layer for receipt in receipts], view.states):
        yield _told(each, view, Verdict.RECEIPT if each.live else Verdict.NOT_LIVE, receipt=True)


def _by_manifest(
    view: FolderView, expected: Expected, component: Component, receipts: Sequence[Receipt]
) -> Iterator[AttestedComponent]:
    """By the files of the stack; a receipt adds what was installed.

    Where files are neither the stack's nor the base's, another layer may be the cause: then there
    is the receipt's word for it, if it has one.
    """
    manifest = expected.manifest
    name = receipt_path(manifest.name, component.name)
    own = [each for each in receipts if each.name == name]
    locked = expected.locked(component)
    files = locked.stack_files
    placement = find_placement(view, component, files)
    if placement is None:
        return
    reasons = _declared(component, view, placement, files)
    bases = accepted_files(view, placement, files, reasons)
    for file in files:
        path = placement.installed(file.path)
        before = own[0].original(path) if own and path in reasons else None
        if before is not None and (data := unpacked(before)) is not None:
            bases[file.path] = data
    layer = _accepting(layer_of(manifest, component.name, locked), placement, bases, reasons)
    if bases:
        with expected.built(component) as built:
            files = _upon(built, bases).stack.files
    known = {file.path for receipt in own for file in receipt.layer.files}
    placed, left_out, problems = place_files(view, placement, files, known)
    problems += placement.problems
    layer_files = tuple(LayerFile(p, f.patches, tuple(_states(f))) for f, p in placed)
    layer = replace(layer, files=layer_files, left_out=tuple(left_out))
    (found,) = attest_layers([layer], view.states)
    verdict = Verdict.LIVE if found.live else Verdict.NOT_LIVE
    doubts = {PatchPresence.UNKNOWN, PatchPresence.LIVE, PatchPresence.LEFT_OUT}
    if found.neither and {each.presence for each in found.patches} <= doubts:
        for each in attest_layers([receipt.layer for receipt in receipts], view.states):
            if each.live and each.layer.title == layer.title:
                found, verdict = each, Verdict.RECEIPT
    told = _told(found, view, Verdict.UNKNOWN if problems else verdict, receipt=bool(own))
    there = (p for _, p in placed if p not in found.neither and view.read(p) is not None)
    if own or told.package or any(there):  # else it is a folder with other files of these names
        yield replace(told, problems=tuple(problems))


def _states(file: StackFile) -> Iterator[str | None]:
    for entry in file.entries:
        runs = file.has_modes and entry is not None and entry.mode == EXECUTABLE_MODE
        yield None if entry is None else f"{entry.oid}{EXECUTABLE * runs}"


def _told(
    found: AttestedLayer, view: FolderView, verdict: Verdict, *, receipt: bool
) -> AttestedComponent:
    layer = found.layer
    paths = {file.path for file in layer.files}
    owners = [each for each in view.wheels() if paths & each.rows.keys()]
    return AttestedComponent(
        manifest=layer.manifest,
        component=layer.component,
        folder=str(view.root),
        verdict=verdict,
        package=", ".join(each.title for each in owners),
        receipt=receipt,
        base=layer.base,
        lock=layer.digest,
        patches=found.patches,
        neither=found.neither,
        left_out=layer.left_out,
        unrecorded=tuple(sorted(p for each in owners for p in _unrecorded(each, view, paths))),
        reasons=layer.reasons,
    )


def _unrecorded(owner: Distribution, view: FolderView, paths: Collection[str]) -> Iterator[str]:
    for path in paths & owner.rows.keys():
        data = view.read(path)
        if data is not None and owner.is_own(path, data) is False:
            yield path


# Which folders.


def folders_of_python(executable: Path) -> tuple[Path, ...]:
    """Where a Python looks for modules, in its order, and where its editable installs run from.

    The Python is started. SurroundingsError if it does not answer.
    """
    python = ask_python(str(executable))
    if isinstance(python, str):
        hint = "name the interpreter whose packages are meant, as /usr/bin/python3"
        raise SurroundingsError(f"{executable} does not report its path: {python}", hint=hint)
    places = [Path(each) for each in python.folders]
    found = [each for each in places if each.is_dir()]
    homes = [w.editable for place in found for w in FolderView(place).wheels() if w.editable]
    return tuple(dict.fromkeys([*found, *(each for each in homes if each.is_dir())]))


def folders_of_image(root: Path) -> tuple[Path, ...]:
    """The folders of an unpacked image that have receipts, or packages; links are not followed."""
    if not root.is_dir():
        raise UsageError(f"{root} is not a folder", hint="unpack the image there first")
    found: list[Path] = []
    for place, folders, _ in os.walk(root, onerror=unless_gone):
        if RECEIPTS in folders or place.endswith(("/site-packages", "/dist-packages")):
            found.append(Path(place))
        folders[:] = sorted(set(folders) - _NOT_LOOKED_AT - {RECEIPTS, "__pycache__"})
    return tuple(found)


def _upon(built: BuiltStack, contents: Mapping[str, bytes]) -> BuiltStack:
    """A stack built again on its base with other contents of some files; itself where none have."""
    if not contents:
        return built
    base, objects = built.stack.base, list[GitObject]()
    changed = replace(base, tree=with_contents(Tree(built.source, base.tree), contents, objects))
    source = Overlay(built.source, objects)
    stack = build_stack(source, changed, built.series.series_patches)
    return replace(built, stack=stack, source=Overlay(source, stack.objects))
