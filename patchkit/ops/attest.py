"""`attest`: what of which stacks is in installed packages, by their bytes.

Without a manifest the receipts say what to look for. With one its lock says which stack is meant,
and where a folder has no receipt the stack is built and looked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.disk.transaction import JOURNAL
from patchkit.errors import ExitCode, SurroundingsError, UsageError
from patchkit.installed.layer import (
    RECEIPTS,
    AttestedLayer,
    AttestedPatch,
    Layer,
    attest_layers,
    digest_of,
    receipts_in,
)
from patchkit.installed.placement import FolderView, find_placement, put_layer, stack_files
from patchkit.installed.wheel_record import Distribution, distributions
from patchkit.machine.ascend import ask_python
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import CommitId
from patchkit.model.progress import Progress
from patchkit.ops.apply_into import layer_of, lock_digest
from patchkit.ops.stacks import built_stack, require_clean
from patchkit.stack.lockfile import load_lock, recorded_in
from patchkit.upstream.store import Store

#: Folders of an image that are the kernel's, or too large to have packages.
_NOT_LOOKED_AT = frozenset({"proc", "sys", "dev", ".git"})


class AttestedComponent(Struct, frozen=True):
    """What of a component's stack is in a folder.

    `package` is the wheel, by name and version; `receipt` whether there is one; `base` the commit
    of the stack, `lock` the digest of what the lock said of it. `expected`: whether that is the
    stack of the manifest's lock, None without a manifest. `neither` are files that are neither the
    stack's nor its base's. `unrecorded` are files of which the wheel's RECORD says another hash.
    """

    manifest: str
    component: str
    folder: str
    live: bool
    package: str
    receipt: bool
    base: CommitId
    lock: str
    expected: bool | None
    patches: tuple[AttestedPatch, ...]
    neither: tuple[str, ...]
    unrecorded: tuple[str, ...] = ()


class AttestReport(Struct, frozen=True):
    """What is in the folders. `absent` are components of the manifest that are in none of them;
    `interrupted` folders in which an `apply --into` was killed: it is to be run again.
    """

    folders: tuple[str, ...]
    components: tuple[AttestedComponent, ...]
    absent: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """OK only where there is something, and all of it is live."""
        good = bool(self.components) and not self.absent and not self.interrupted
        good &= all(c.live and c.expected is not False for c in self.components)
        return ExitCode.OK if good else ExitCode.FINDING


class Expected(Struct, frozen=True):
    """The manifest that is looked for."""

    manifest: Manifest
    components: Sequence[Component]
    store: Store


def attest(folders: Sequence[Path], expected: Expected | None, progress: Progress) -> AttestReport:
    """Judge what is in folders of installed packages; nothing is written.

    BadInputError for a receipt that is damaged.
    """
    found: list[AttestedComponent] = []
    for folder in folders:
        found += _in_folder(folder, expected, progress)
    absent: tuple[str, ...] = ()
    if expected is not None:
        names = {each.component for each in found}
        patched = (c.name for c in expected.components if c.patches)
        absent = tuple(name for name in patched if name not in names)
    return AttestReport(
        tuple(map(str, folders)),
        tuple(found),
        absent,
        tuple(str(each) for each in folders if (each / JOURNAL).exists()),
    )


def _in_folder(
    folder: Path, expected: Expected | None, progress: Progress
) -> Iterator[AttestedComponent]:
    receipts = receipts_in(folder)
    wheels = distributions(folder)
    layers = [each.layer for each in receipts]
    with_receipt = {layer.title for layer in layers}
    view = FolderView(folder)
    if expected is not None:
        layers += _built(view, expected, with_receipt, progress)
    paths = {file.path for layer in layers for file in layer.files}
    digests = {path: digest_of(view.read(path)) for path in paths}
    for each in attest_layers(layers, digests):
        if expected is None or _is_meant(each.layer, expected):
            yield _told(each, view, wheels, expected, with_receipt)


def _is_meant(layer: Layer, expected: Expected) -> bool:
    names = {component.name for component in expected.components}
    return layer.manifest == expected.manifest.name and layer.component in names


def _built(
    view: FolderView, expected: Expected, known: set[str], progress: Progress
) -> Iterator[Layer]:
    """The layers of the manifest's components that have no receipt, as they would be put here."""
    manifest = expected.manifest
    for component in expected.components:
        if not component.patches or f"{manifest.name}/{component.name}" in known:
            continue
        with built_stack(manifest, component, expected.store, progress) as built:
            require_clean(built, manifest)
            files = stack_files(built.source, built.stack, built.series.series_patches)
            placement = find_placement(view, component, files)
            if placement is not None:
                scratch = FolderView(view.root)
                blank = layer_of(manifest, built)
                yield put_layer(scratch, placement, blank, files, built.source, number=0).layer


def _told(
    found: AttestedLayer,
    view: FolderView,
    wheels: Sequence[Distribution],
    expected: Expected | None,
    with_receipt: set[str],
) -> AttestedComponent:
    layer = found.layer
    paths = {file.path for file in layer.files}
    owner = max(wheels, key=lambda each: len(paths & each.files), default=None)
    if owner is not None and not paths & owner.files:
        owner = None
    same: bool | None = None
    if expected is not None:
        recorded = recorded_in(load_lock(expected.manifest.lock_path), layer.component)
        same = recorded is None or lock_digest(recorded) == layer.digest
    wrong = [] if owner is None else list(_unrecorded(owner, view, sorted(paths)))
    return AttestedComponent(
        manifest=layer.manifest,
        component=layer.component,
        folder=str(view.root),
        live=found.live,
        package="" if owner is None else owner.title,
        receipt=layer.title in with_receipt,
        base=CommitId(layer.base),
        lock=layer.digest,
        expected=same,
        patches=found.patches,
        neither=found.neither,
        unrecorded=tuple(wrong),
    )


def _unrecorded(owner: Distribution, view: FolderView, paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        data = view.read(path)
        if data is not None and path in owner.files and owner.is_own(path, data) is False:
            yield path


# Which folders.


def folders_of_python(executable: Path) -> tuple[Path, ...]:
    """Where a Python looks for modules, in its order, and where its editable installs run from.

    The Python is started. SurroundingsError if it does not answer.
    """
    python = ask_python(str(executable))
    if isinstance(python, str):
        hint = "name the interpreter whose packages are meant: --python /usr/bin/python3"
        raise SurroundingsError(f"{executable} does not tell its path: {python}", hint=hint)
    places = [Path(each) for each in python.folders]
    found = [each for each in places if each.is_dir()]
    homes = [each.editable for place in found for each in distributions(place) if each.editable]
    return tuple(dict.fromkeys([*found, *(each for each in homes if each.is_dir())]))


def folders_of_image(root: Path) -> tuple[Path, ...]:
    """The folders of an unpacked image that have receipts, or packages; links are not followed."""
    if not root.is_dir():
        raise UsageError(f"{root} is no folder", hint="unpack the image there first")
    found: list[Path] = []
    for place, folders, _ in os.walk(root):
        if RECEIPTS in folders or place.endswith(("/site-packages", "/dist-packages")):
            found.append(Path(place))
        folders[:] = sorted(set(folders) - _NOT_LOOKED_AT - {RECEIPTS, "__pycache__"})
    return tuple(found)
