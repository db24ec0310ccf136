"""In which state each checkout is, whether it is the one that manifest and lock mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import LARGEST_PATCH, read_plain
from patchkit.errors import (
    BadInputError,
    ExitCode,
    OfComponents,
    PatchkitError,
    Problem,
    expected,
    worst,
)
from patchkit.manifest.values import Component, GitPin, LocalPatch, LocalSeries, Manifest
from patchkit.model.names import short_id
from patchkit.parallel import in_parallel
from patchkit.stack.lockfile import Lock, LockedComponent, load_lock, recorded_in
from patchkit.stack.patch_lists import read_series
from patchkit.workspace import (
    Checkout,
    CheckoutState,
    Snapshot,
    checkout_of,
    inspect,
)

# How many checkouts are looked at at once: git mostly waits for the disk.
_AT_ONCE = 8


class ComponentStatus(Struct, frozen=True):
    """One component's checkout.

    `checkout` is the folder's path; `state` and the rest of `snapshot` are what was found in it.
    `pin` is the manifest's. `patches` is how many patches the stack in the lock has, None without
    a lock. `differences` say where checkout and manifest are not what the lock says.
    """

    name: str  # in the manifest
    checkout: Path
    pin: str
    snapshot: Snapshot
    patches: int | None
    differences: tuple[Problem, ...] = ()
    exit_code: ExitCode = ExitCode.OK
    proposed: tuple[str, ...] = ()  # paths in conflict for which there is a merge to take

    @property
    def state(self) -> CheckoutState:
        """The state of the checkout."""
        return self.snapshot.state

    @property
    def in_place(self) -> bool:
        """Whether the checkout is what manifest and lock say, with nothing of the user's on it."""
        bare = self.state is CheckoutState.UNPATCHED and not self.patches
        return (self.state is CheckoutState.APPLIED or bare) and not self.differences


class StatusReport(OfComponents, Struct, frozen=True):
    """The components' checkouts, in the manifest's order; `locked`: there is a lock file.

    A state is no finding, but for `gate`.
    """

    manifest: str
    workspace: Path  # the folder that holds the checkouts
    locked: bool
    components: tuple[ComponentStatus, ...]

    @property
    def gate(self) -> ExitCode:
        """The exit code where a checkout that is not in its place is a finding."""
        away = not all(each.in_place for each in self.components)
        return worst([self.exit_code, ExitCode.FINDING if away else ExitCode.OK])


def status_of(manifest: Manifest, components: Sequence[Component], workspace: Path) -> StatusReport:
    """Look at the checkouts; writes nothing, asks no network."""
    lock = load_lock(manifest.lock_path)
    found = in_parallel(
        lambda each: _status(manifest, each, lock, workspace), components, jobs=_AT_ONCE
    )
    return StatusReport(manifest.name, workspace.absolute(), lock is not None, found)


def _status(
    manifest: Manifest, component: Component, lock: Lock | None, workspace: Path
) -> ComponentStatus:
    checkout = checkout_of(workspace, manifest, component)
    recorded = recorded_in(lock, component.name)
    status = ComponentStatus(
        component.name,
        checkout.path,
        str(component.pin),
        Snapshot(CheckoutState.OTHER_BRANCH, "cannot be read"),
        None if recorded is None else len(recorded.patches),
    )
    try:
        status = replace(status, snapshot=inspect(checkout))
        if status.snapshot.halt:
            status = replace(status, proposed=_proposed(checkout))
        said = [Problem("not in the lock", component.name)] if lock is not None else []
        if recorded is not None:
            said = list(_differences(manifest, component, status.snapshot, recorded, checkout))
    except (PatchkitError, OSError) as error:
        failed = expected(error, component.name)
        return replace(status, differences=failed.problems, exit_code=failed.exit_code)
    return replace(status, differences=tuple(said))


def _proposed(checkout: Checkout) -> tuple[str, ...]:
    from patchkit.ops.resume import waiting_of  # noqa: PLC0415 (few checkouts wait)
    from patchkit.workspace.waiting import read_halt  # noqa: PLC0415

    halt = read_halt(checkout)
    return waiting_of(halt).halted.proposed if halt is not None else ()


def _differences(
    manifest: Manifest,
    component: Component,
    snapshot: Snapshot,
    recorded: LockedComponent,
    checkout: Checkout,
) -> Iterator[Problem]:
    """What does not agree among manifest, patch files, lock and checkout, as far as ids tell."""
    if isinstance(component.pin, GitPin) and component.pin.commit != recorded.commit:
        pin = short_id(component.pin.commit)
        what = f"the pin is {pin}, the lock says {short_id(recorded.commit)}"
        hint = f"patchkit refresh {manifest.options(component.name)}  carries the patches there"
        yield Problem(what, component.name, hint if not snapshot.operation else "")
    for what in _changed_patches(manifest, component, recorded):
        yield Problem(what, component.name)
    if snapshot.state is CheckoutState.CONFLICTED:
        return  # in the middle of a bump it is at the new base, as the state says
    if snapshot.base is not None and snapshot.base != recorded.commit:
        base = short_id(snapshot.base)
        what = f"the checkout's base is {base}, the lock says {short_id(recorded.commit)}"
        yield Problem(what, component.name)
    elif snapshot.applied and checkout.repository.tree(snapshot.applied) != recorded.result:
        yield Problem("the checkout's stack is not the one of the lock", component.name)


def _changed_patches(
    manifest: Manifest, component: Component, recorded: LockedComponent
) -> Iterator[str]:
    """Files of the project that are not as in the lock; pinned ones cannot change."""
    known = {patch.name: patch.sha256 for patch in recorded.patches}
    for name, path in _local_patches(manifest, component):
        data = _bytes(manifest.root, path)
        if data is None:
            yield f"{path} is not there"
        elif name not in known:
            yield f"{path} is not in the lock"
        elif sha256(data).hexdigest() != known[name]:
            yield f"{path} has changed since it was locked"


def _local_patches(manifest: Manifest, component: Component) -> Iterator[tuple[str, str]]:
    """The names and paths of the project's patches; those of a series if it is not there."""
    for entry in component.patches:
        if isinstance(entry, LocalPatch):
            yield entry.patch_name, entry.path
        elif isinstance(entry, LocalSeries):
            if not (manifest.root / entry.path).exists():
                yield entry.path, entry.path
                continue
            for name in read_series(manifest, entry).names:
                yield name, entry.beside(name)


def _bytes(root: Path, path: str) -> bytes | None:
    try:
        return read_plain(root / path, most=LARGEST_PATCH, inside=root)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInputError(Problem(str(error.strerror), path)) from error
