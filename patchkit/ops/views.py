"""Looking at a stack: its patches, which of them are in the checkout, and what each needs (`log`);
one of them (`show`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import ExitCode, OfComponents, PatchkitError, Problem, UsageError
from patchkit.gitcmd.repository import ZERO
from patchkit.gitcmd.trees import tree_changes
from patchkit.manifest.values import Component, GitSource, Manifest
from patchkit.model.finding import Landed
from patchkit.model.names import pick_patch
from patchkit.model.objects import EMPTY_TREE, CommitId
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.progress import Progress
from patchkit.model.upstream_intent import intent_of
from patchkit.ops.built_stack import built_stack
from patchkit.stack.build import StackCommit, read_stack
from patchkit.stack.series import LoadedPatch, load_series
from patchkit.upstream.history import (
    known_commit,
    known_history,
    open_history,
)
from patchkit.upstream.store import Store
from patchkit.workspace import Checkout, checkout_of, inspect


class LoggedPatch(Struct, frozen=True):
    """A patch of a stack.

    `status` is the verdict on it, `checkout` whether the checkout has it: "applied", "changed" (as
    another commit), "missing", or "" where there is no checkout. `commit` is None where it does
    not apply. `added` and `removed` count lines.
    """

    number: int  # its place in the series, from 1
    name: str  # its file's name in the series
    where: str
    subject: str  # the first line of its message
    author: str  # as the patch says
    status: Status
    checkout: str
    commit: CommitId | None
    files: int  # how many it changes
    added: int
    removed: int
    intent: str = ""
    sent: str = ""  # what the header says with it, such as a URL
    needs: tuple[str, ...] = ()  # the patches that must be there before it
    fate: str = ""
    by: Landed | None = None


class OwnCommit(Struct, frozen=True):
    """A commit of the checkout that no patch file has."""

    commit: CommitId
    subject: str  # the first line of its message


class ComponentLog(Struct, frozen=True):
    """A component: its base, its patches in order, commits on top, or what kept us from looking."""

    component: str
    pin: str  # as the manifest spells it
    base: CommitId | None = None
    patches: tuple[LoggedPatch, ...] = ()
    commits: tuple[OwnCommit, ...] = ()
    problems: tuple[Problem, ...] = ()
    exit_code: ExitCode = ExitCode.OK


class LogReport(OfComponents, Struct, frozen=True):
    """The stacks of the components asked for."""

    manifest: str  # its name
    components: tuple[ComponentLog, ...]


def log_components(
    manifest: Manifest,
    components: Sequence[Component],
    *,
    workspace: Path,
    store: Store,
    progress: Progress,
    upstream: bool,
) -> LogReport:
    """The stack of each component; with `upstream`, and what became of its patches there.

    Writes nothing but what the store fetches.
    """
    logs = [_log(manifest, each, workspace, store, progress) for each in components]
    if upstream:
        rows = zip(logs, components, strict=True)
        logs = [_with_fates(log, manifest, each, store, progress) for log, each in rows]
    return LogReport(manifest.name, tuple(logs))


def _log(
    manifest: Manifest, component: Component, workspace: Path, store: Store, progress: Progress
) -> ComponentLog:
    from patchkit.explain.diagnose import with_waiting  # noqa: PLC0415 (most stacks are clean)

    blank = ComponentLog(component.name, str(component.pin))
    try:
        commits = _commits(checkout_of(workspace, manifest, component))
        present = None if commits is None else {each.patch: each.id for each in commits}
        with built_stack(manifest, component, store, progress) as built:
            stack = with_waiting(built.source, built.stack, built.series.series_patches)
            listed = [each.name for each in built.series.patches]
            needs = {(need.number, listed[need.on - 1]) for need in built.needs()}
            patches = tuple(
                _logged_patch(
                    number,
                    patch,
                    outcome,
                    present,
                    tuple(name for name in listed if (number, name) in needs),
                )
                for number, (patch, outcome) in enumerate(
                    zip(built.series.patches, stack.outcomes, strict=True), 1
                )
            )
            own = [each for each in commits or () if each.patch not in listed]
            return replace(
                blank,
                base=built.stack.base.commit,
                patches=patches,
                commits=tuple(OwnCommit(each.id, each.subject) for each in own),
            )
    except PatchkitError as error:
        return replace(blank, problems=error.problems, exit_code=error.exit_code)


def _commits(checkout: Checkout) -> tuple[StackCommit, ...] | None:
    """The commits on the checkout's base, None where there is no checkout of ours."""
    snapshot = inspect(checkout)
    if not snapshot.ours or snapshot.base is None or snapshot.head is None:
        return None
    return read_stack(checkout.repository, snapshot.base, snapshot.head)


def _logged_patch(
    number: int,
    patch: LoadedPatch,
    outcome: PatchResult,
    present: Mapping[str | None, str] | None,
    needs: tuple[str, ...],
) -> LoggedPatch:
    counts = [change.counts for change in patch.file.changes]
    intent, sent = intent_of(patch.file.message)
    return LoggedPatch(
        number=number,
        name=patch.name,
        where=patch.where,
        subject=patch.file.subject,
        author=patch.file.author.name if patch.file.author else "",
        status=outcome.status,
        checkout=_presence(patch.name, outcome, present),
        commit=outcome.commit,
        files=len(patch.file.changes),
        added=sum(added for added, _ in counts),
        removed=sum(removed for _, removed in counts),
        intent=intent,
        sent=sent,
        needs=needs,
    )


def _presence(name: str, outcome: PatchResult, present: Mapping[str | None, str] | None) -> str:
    if present is None or outcome.status is Status.EMPTY:
        return ""
    if name not in present:
        return "missing"
    return "applied" if present[name] == outcome.commit else "changed"


# What became of patches upstream.


def _with_fates(
    log: ComponentLog, manifest: Manifest, component: Component, store: Store, progress: Progress
) -> ComponentLog:
    """The log with what carrying to the tip of the tracked branch says: see `Fate`."""
    from patchkit.ops.drift import carried_to_tip  # noqa: PLC0415 (other logs need none of it)

    if log.problems or not log.patches or not isinstance(component.source, GitSource):
        return log
    try:
        told = carried_to_tip(manifest, component, store, progress)
    except PatchkitError as error:
        return replace(log, problems=error.problems, exit_code=error.exit_code)
    rows = zip(log.patches, told, strict=True)
    patches = tuple(
        replace(patch, fate=fate.word, by=by) if fate is not None else patch
        for patch, (fate, by) in rows
    )
    return replace(log, patches=patches)


# `show`: a patch of the series, or a commit of upstream.


class ShownChange(Struct, frozen=True):
    """A patch or a commit of upstream, as text; `name` is the patch's, or the commit's whole id."""

    component: str  # its name
    name: str
    is_patch: bool
    text: bytes

    @property
    def exit_code(self) -> ExitCode:
        """Success: what cannot be shown is raised."""
        return ExitCode.OK


_ID = re.compile(r"[0-9a-f]{4,40}")
_SHORTEST_ID = 4


def show_change(
    manifest: Manifest,
    component: Component,
    given: str,
    store: Store,
    progress: Progress,
) -> ShownChange:
    """The patch that `given` names (see `pick_patch`), else the commit of upstream.

    A commit is an id or the beginning of one, a tag or a branch; its files are fetched where they
    are not here. UsageError where it is neither.
    """
    series = load_series(manifest, component, store, progress)
    names = [each.name for each in series.patches]
    try:
        name = pick_patch(given, names)
    except UsageError as error:
        return _shown_commit(component, given, store, progress, error)
    patch = next(each for each in series.patches if each.name == name)
    return ShownChange(component.name, name, is_patch=True, text=patch.data)


def _shown_commit(
    component: Component, given: str, store: Store, progress: Progress, unknown: UsageError
) -> ShownChange:
    source = component.source
    # a number is that of a patch; a tag of that name is tags/9
    if not isinstance(source, GitSource) or (given.isdigit() and len(given) < _SHORTEST_ID):
        raise unknown
    commit = known_commit(store, source, given) if _ID.fullmatch(given) else None
    if commit is None and _ID.fullmatch(given) and len(given) < len(ZERO):
        problems = [replace(each, hint="") for each in unknown.problems]
        hint = "the history in the cache has no such commit either; give its full id"
        raise UsageError(*problems[:-1], replace(problems[-1], hint=hint)) from None
    history = (
        known_history(store, source, commit, component.name, progress)
        if commit is not None
        else None
    )
    if history is None:
        try:
            history = open_history(store, component, given, progress)
        except UsageError as error:
            raise UsageError(*unknown.problems, *error.problems) from None
        commit = history.tip
    assert commit is not None
    repository = history.repository
    parent = repository.tree(f"{commit}^1") or EMPTY_TREE
    changes = tree_changes(repository, parent, commit)
    entries = [e for each in changes for e in (each.old_file, each.new_file) if e is not None]
    repository.bring(each.oid for each in entries)
    # of a merge, what it brought to its first parent
    text = repository.git("show", "--first-parent", "--format=fuller", commit, "--").out
    return ShownChange(component.name, commit, is_patch=False, text=text)
