"""In which state each checkout is, and whether it is the one that manifest and lock mean."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patchkit.errors import ExitCode, PatchkitError, Problem, worst
from patchkit.lock import Lock, LockedComponent, load_lock
from patchkit.manifest.values import Component, GitPin, Manifest
from patchkit.workspace import Snapshot, State, checkout_of, inspect


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """One component's checkout.

    `checkout` is the folder's path; `state` and the rest of `snapshot` are what was found in it.
    `pin` is the manifest's. `patches` is how many patches the stack in the lock has, None without
    a lock. `differences` say where checkout and manifest are not what the lock says.
    """

    name: str
    checkout: Path
    pin: str
    snapshot: Snapshot
    patches: int | None
    differences: tuple[Problem, ...] = ()
    exit_code: ExitCode = ExitCode.OK

    @property
    def state(self) -> State:
        """The state of the checkout."""
        return self.snapshot.state


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The components' checkouts, in the manifest's order; `locked`: there is a lock file."""

    manifest: str
    workspace: Path
    locked: bool
    components: tuple[ComponentStatus, ...]

    @property
    def exit_code(self) -> ExitCode:
        """OK unless a checkout could not be looked at: a state is no finding."""
        return worst(each.exit_code for each in self.components)


def status_of(manifest: Manifest, components: Sequence[Component], workspace: Path) -> StatusReport:
    """Look at the checkouts; writes nothing, asks no network."""
    lock = load_lock(manifest.lock_path)
    with ThreadPoolExecutor(max(1, len(components)), "status") as pool:
        found = pool.map(lambda each: _status(each, lock, workspace), components)
        return StatusReport(manifest.name, workspace.absolute(), lock is not None, tuple(found))


def _status(component: Component, lock: Lock | None, workspace: Path) -> ComponentStatus:
    checkout = checkout_of(workspace, component)
    recorded = lock.components.get(component.name) if lock is not None else None
    patches = len(recorded.patches) if recorded is not None else None
    pin = str(component.pin)
    try:
        snapshot = inspect(checkout)
    except PatchkitError as error:
        broken = Snapshot(State.FOREIGN, "cannot be read")
        return ComponentStatus(
            component.name, checkout.path, pin, broken, patches, error.problems, error.exit_code
        )
    differences = tuple(
        Problem(what, component.name) for what in _differences(component, snapshot, recorded, lock)
    )
    return ComponentStatus(component.name, checkout.path, pin, snapshot, patches, differences)


def _differences(
    component: Component, snapshot: Snapshot, recorded: LockedComponent | None, lock: Lock | None
) -> list[str]:
    """What does not agree among manifest, lock and checkout, as far as ids tell."""
    if recorded is None:
        return ["not in the lock"] if lock is not None else []
    found = []
    if isinstance(component.pin, GitPin) and component.pin.commit != recorded.commit:
        found.append(f"pin {component.pin.commit[:12]}, lock {recorded.commit[:12]}")
    if snapshot.base is not None and snapshot.base != recorded.commit:
        found.append(f"checkout's base {snapshot.base[:12]}, lock {recorded.commit[:12]}")
    return found
