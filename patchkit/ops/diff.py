"""Diff: what a checkout has that the stack which patchkit made does not have.

Both commits on top of the stack and uncommitted edits; new files count once they are added to the
index.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.errors import ExitCode, PatchkitError, Problem, worst
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import diff_trees, tracked_tree
from patchkit.manifest.values import Component, Manifest
from patchkit.model.diff_parse import parse_diff
from patchkit.model.patch import FileChange, Kind
from patchkit.workspace import (
    Checkout,
    CheckoutState,
    Snapshot,
    checkout_of,
    inspect,
    locked,
)

_COMPARABLE = (
    CheckoutState.UNPATCHED,
    CheckoutState.APPLIED,
    CheckoutState.EDITED,
    CheckoutState.EXTRA_COMMITS,
    CheckoutState.CONFLICTED,
)


class FileStat(Struct, frozen=True):
    """A changed file: lines added and removed; `kind` "add", "delete", "modify" or "rename"."""

    path: str
    kind: Kind
    added: int
    removed: int
    binary: bool


class ComponentDiff(Struct, frozen=True):
    """What one checkout has beyond its stack; `state` is the checkout's.

    `diff` is in git's form, with paths from the checkout's top folder.
    """

    component: str
    state: CheckoutState
    diff: bytes = b""
    files: tuple[FileStat, ...] = ()
    problems: tuple[Problem, ...] = ()
    exit_code: ExitCode = ExitCode.OK


class DiffReport(Struct, frozen=True):
    """The differences of the components asked for."""

    manifest: str
    components: tuple[ComponentDiff, ...]

    @property
    def exit_code(self) -> ExitCode:
        """OK whether something differs or not: looking is no check."""
        return worst(each.exit_code for each in self.components)


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
    return tuple(_file_stat(change) for change in parse_diff(diff)) if diff else ()


def _file_stat(change: FileChange) -> FileStat:
    marks = [line[:1] for hunk in change.hunks for line in hunk.lines]
    binary = change.binary is not None or change.binary_differs
    return FileStat(change.path, change.kind, marks.count(b"+"), marks.count(b"-"), binary)
