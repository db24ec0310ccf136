"""What a checkout has beyond the stack that patchkit made: commits on top of it, and uncommitted
edits. New files count once they are added to the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.errors import ExitCode, OfComponents, PatchkitError, Problem
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import diff_trees, tracked_tree
from patchkit.manifest.values import Component, Manifest
from patchkit.model.diff_parse import parse_diff
from patchkit.model.patch import Kind
from patchkit.workspace import Checkout, CheckoutState, Snapshot, checkout_of, inspect, locked

_COMPARABLE = (
    CheckoutState.UNPATCHED,
    CheckoutState.APPLIED,
    CheckoutState.EDITED,
    CheckoutState.EXTRA_COMMITS,
    CheckoutState.CONFLICTED,
)


class FileStat(Struct, frozen=True):
    """A changed file: lines added and removed; `kind` "add", "delete", "modify" or "rename"."""

    path: str  # from the checkout's top folder
    kind: Kind
    added: int
    removed: int
    binary: bool  # its lines are not counted


class ComponentDiff(Struct, frozen=True):
    """What one checkout has beyond its stack; `state` is the checkout's.

    `diff` is in git's form, with paths from the checkout's top folder.
    """

    component: str  # its name
    state: CheckoutState
    diff: bytes = b""
    files: tuple[FileStat, ...] = ()  # by path
    problems: tuple[Problem, ...] = ()
    exit_code: ExitCode = ExitCode.OK


class DiffReport(OfComponents, Struct, frozen=True):
    """The differences of the components asked for."""

    manifest: str  # its name
    components: tuple[ComponentDiff, ...]


def diff_components(
    manifest: Manifest, components: Sequence[Component], workspace: Path
) -> DiffReport:
    """Compare each checkout with the stack that patchkit last made there; writes nothing."""
    return DiffReport(manifest.name, tuple(_diff(manifest, each, workspace) for each in components))


def _diff(manifest: Manifest, component: Component, workspace: Path) -> ComponentDiff:
    checkout = checkout_of(workspace, manifest, component)
    if not checkout.path.exists():
        return ComponentDiff(component.name, CheckoutState.ABSENT)
    state = CheckoutState.OTHER_BRANCH
    try:
        with locked(checkout):
            snapshot = inspect(checkout)
            state = snapshot.state
            diff = _difference(checkout, snapshot)
    except PatchkitError as error:
        return ComponentDiff(
            component.name, state, problems=error.problems, exit_code=error.exit_code
        )
    return ComponentDiff(component.name, state, diff, file_stats(diff))


def _difference(checkout: Checkout, snapshot: Snapshot) -> bytes:
    if snapshot.state not in _COMPARABLE or snapshot.applied is None or snapshot.head is None:
        return b""
    repository = checkout.repository
    before, after = repository.tree(snapshot.applied), repository.tree(snapshot.head)
    with overlay(repository) as trial:
        if snapshot.edited:
            after = tracked_tree(repository, trial)
        if before is None or after is None:
            return b""
        return diff_trees(trial, [(before, after)], "-U3", "-M50%")[0]


def file_stats(diff: bytes) -> tuple[FileStat, ...]:
    """How many lines a diff adds to and removes from each file."""
    changes = parse_diff(diff) if diff else ()
    return tuple(
        FileStat(c.path, c.kind, *c.counts, c.binary is not None or c.binary_differs)
        for c in changes
    )
