"""What patchkit set aside in the checkouts: list it, show it, say how git brings it back.

Everything is a ref below `refs/patchkit/saved/`, written before files of a checkout were replaced.
What it holds is told by the commit's own shape, as `workspace.save` and `ops.undo` make it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import ExitCode, UsageError
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import diff_trees, tree_changes
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import (
    EMPTY_TREE,
    TreeId,
    lines_of,
)
from patchkit.model.tree import TreeChange
from patchkit.ops.undo import holds
from patchkit.workspace import Checkout, CheckoutState, checkout_of
from patchkit.workspace.checkout import SAVED_REFS
from patchkit.workspace.contents import contents_at

_PREFIX = "Saved by patchkit: "
_STAGED, _LATE = "what was staged", "written while it was replaced"
_RESOLVED = ", as it was resolved"
_DEEPEST = 1000  # commits of a stack that are looked at


class SavedKind(str, Enum):
    """What was set aside."""

    EDITS = "edits"  # files as they were in the checkout, new ones too
    STAGED = "staged"  # what only git's index had
    FILES = "files"  # what an editor wrote while the files were replaced
    STACK = "stack"  # a whole stack of patches, one commit each
    RESOLUTIONS = "resolutions"  # patches as they were resolved by hand
    COMMITS = "commits"  # commits that only an unfinished rebase, merge or the like knew


#: What is one change of files.
_EDITS = (SavedKind.EDITS, SavedKind.STAGED, SavedKind.FILES)
_WHY = {
    SavedKind.STAGED: "only git's index had it when the files were replaced",
    SavedKind.FILES: "written while the files were replaced",
    SavedKind.STACK: "the patches as they were before a change, or as it had made them",
    SavedKind.RESOLUTIONS: "resolved by hand in a bump that was taken back",
    SavedKind.COMMITS: "an unfinished operation or a refresh had them",
}
_STATES = {
    CheckoutState.EDITED.value: "edits in the checkout",
    CheckoutState.EXTRA_COMMITS.value: "commits and edits in the checkout",
    CheckoutState.CONFLICTED.value: "what was done to a conflict",
}


class SavedWork(Struct, frozen=True):
    """Work that was set aside: in which component, when (2026-01-02T03:04:05Z), why, what.

    `id` is the end of `ref`, which names `commit`. `what` are the paths that it changes, or the
    patches; `restore` is the command that brings it back, or prints the first of its files.
    """

    id: str
    component: str
    kind: SavedKind  # what was set aside
    when: str
    why: str
    what: tuple[str, ...]
    ref: str
    commit: str
    restore: str = ""


class SavedReport(Struct, frozen=True):
    """Saved work, the latest first; `diff` is that of the one that is shown."""

    manifest: str  # its name
    saved: tuple[SavedWork, ...]
    diff: bytes = b""

    @property
    def exit_code(self) -> ExitCode:
        """Success: what stands against it is raised."""
        return ExitCode.OK


def list_saved(manifest: Manifest, components: Sequence[Component], workspace: Path) -> SavedReport:
    """All that was set aside in the checkouts of these components."""
    rows = [each for component in components for each in _read(manifest, component, workspace)]
    rows.sort(key=lambda each: (each.when, each.id), reverse=True)
    return SavedReport(manifest.name, tuple(rows))


def show_saved(
    manifest: Manifest, components: Sequence[Component], workspace: Path, given: str
) -> SavedReport:
    """One of them, with its diff; UsageError if `given` names none, or several.

    Of edits only what is not on disk just so: `git apply` takes that.
    """
    found = find_saved(list_saved(manifest, components, workspace).saved, given)
    component = manifest.component(found.component)
    assert component is not None
    checkout = checkout_of(workspace, manifest, component)
    repository, pieces = checkout.repository, list(_pieces(checkout.repository, found))
    if found.kind in _EDITS:
        ((_, old, new),) = pieces
        changes = tree_changes(repository, old, new)
        paths = [change.path for change in changes if not _is_there(checkout, change)]
        only = [f":(literal){path}" for path in paths]
        (text,) = diff_trees(repository, [(old, new)], "--", *only) if paths else [b""]
        return SavedReport(manifest.name, (found,), text)
    diffs = diff_trees(repository, [(old, new) for _, old, new in pieces])
    text = b"".join(
        f"# {title}\n".encode() + diff for (title, _, _), diff in zip(pieces, diffs, strict=True)
    )
    return SavedReport(manifest.name, (found,), text)


def _is_there(checkout: Checkout, change: TreeChange) -> bool:
    """Whether the checkout's file is what the change makes of it."""
    if change.new_file is None:
        return contents_at(checkout.path, change.path) is None
    return holds(checkout, change.path, change.new_file)


def find_saved(saved: Sequence[SavedWork], given: str) -> SavedWork:
    """The one that a user means by its id, the beginning of one, or its ref."""
    name = given.removeprefix(SAVED_REFS)
    exact = [each for each in saved if each.id == name]
    found = exact or [each for each in saved if each.id.startswith(name) and name]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"{given}: no such saved work", hint="patchkit undo --show  lists it")
    names = ", ".join(f"{each.id} ({each.component})" for each in found)
    raise UsageError(f"{given} may be {names}", hint="name the component with -c, or the whole id")


def _read(manifest: Manifest, component: Component, workspace: Path) -> Iterator[SavedWork]:
    checkout = checkout_of(workspace, manifest, component)
    if not checkout.git_dir.is_dir():
        return
    repository = checkout.repository
    fields = (
        "objectname refname objecttype committerdate:unix authoremail "
        "trailers:key=Patchkit-Patch,valueonly,separator=%2C subject"
    )
    layout = "%09".join(f"%({each})" for each in fields.split(" "))
    hint = "git fsck --unreachable  names commits that nothing leads to; move the damaged file away"
    out = repository.for_each_ref(layout, SAVED_REFS, hint=hint)
    for row in lines_of(out.decode("utf-8", "replace")):
        commit, ref, form, at, email, patch, subject = row.split("\t", 6)
        if form != "commit":
            continue  # nothing that patchkit put there
        kind, why = _kind(subject, ours=email == "<patchkit@localhost>", patch=bool(patch))
        when = datetime.fromtimestamp(_moment(ref, int(at)), timezone.utc)
        found = SavedWork(
            ref.removeprefix(SAVED_REFS),
            component.name,
            kind,
            f"{when:%Y-%m-%dT%H:%M:%SZ}",
            why,
            (),
            ref,
            commit,
        )
        found = replace(found, what=tuple(_contents(repository, found)))
        yield replace(found, restore=_restore(manifest, checkout, found))


def _restore(manifest: Manifest, checkout: Checkout, saved: SavedWork) -> str:
    git = f"git -C {shlex.quote(str(checkout.path))}"
    if saved.kind is SavedKind.STAGED or saved.why == _STATES[CheckoutState.EDITED.value]:
        shown = f"patchkit undo --show {saved.id} {manifest.options(saved.component)}"
        return f"{shown} | {git} apply"
    if saved.kind is SavedKind.FILES:
        return f"{git} show {saved.ref}:{shlex.quote(saved.what[0])}"
    return f"{git} switch --create saved-work {saved.ref}"


def _moment(ref: str, fallback: int) -> int:
    """When it was saved, as its name says; seconds since the epoch."""
    stamp = ref.removeprefix(SAVED_REFS).split("-")[0]
    try:
        return int(datetime.strptime(f"{stamp}+0000", "%Y%m%dT%H%M%SZ%z").timestamp())
    except ValueError:
        return fallback


def _kind(subject: str, *, ours: bool, patch: bool) -> tuple[SavedKind, str]:
    if ours and subject.startswith(_PREFIX):
        rest = subject.removeprefix(_PREFIX)
        kind = {_STAGED: SavedKind.STAGED, _LATE: SavedKind.FILES}.get(rest, SavedKind.EDITS)
        return kind, _WHY.get(kind) or _STATES.get(rest, f"the checkout was {rest}")
    if patch:
        kind = SavedKind.STACK
    elif ours and subject.endswith(_RESOLVED):
        kind = SavedKind.RESOLUTIONS
    else:
        kind = SavedKind.COMMITS
    return kind, _WHY[kind]


def _contents(repository: Repository, saved: SavedWork) -> Iterator[str]:
    pieces = list(_pieces(repository, saved))
    if saved.kind in (SavedKind.STACK, SavedKind.RESOLUTIONS):
        yield from (title for title, _, _ in pieces)
        return
    paths = [each.path for _, old, new in pieces for each in tree_changes(repository, old, new)]
    yield from dict.fromkeys(paths)


def _pieces(repository: Repository, saved: SavedWork) -> Iterator[tuple[str, TreeId, TreeId]]:
    """(title or "", tree before, tree after) of each change in it, in order."""
    if saved.kind in _EDITS:
        yield "", _base_of(repository, saved), _tree(repository, saved.commit)
        return
    layout = "--format=%T%x09%P%x09%(trailers:key=Patchkit-Patch,valueonly,separator=%x2C)%x09%s"
    known = ["--not", "refs/patchkit/base"] if saved.kind is SavedKind.COMMITS else []
    out = repository.git(
        "log", "--first-parent", f"-n{_DEEPEST}", layout, saved.commit, *known, "--"
    ).out
    rows = [row.split("\t", 3) for row in lines_of(out.decode("utf-8", "replace"))]
    found: list[tuple[str, TreeId, TreeId]] = []
    for tree, parents, patch, subject in rows:
        if saved.kind is SavedKind.STACK and not patch:
            break
        parent = parents.split(" ")[0]
        title = patch or subject
        if saved.kind is SavedKind.RESOLUTIONS:
            if not subject.endswith(_RESOLVED):
                continue
            title = subject.removesuffix(_RESOLVED)
        found.append((title, _tree(repository, parent), TreeId(tree)))
    yield from reversed(found)


def _base_of(repository: Repository, saved: SavedWork) -> TreeId:
    """The tree that it is a change of; the empty one where it stands alone."""
    parents = lines_of(repository.git("rev-parse", f"{saved.commit}^@").out.decode())
    alone = saved.kind is SavedKind.FILES or (saved.kind is SavedKind.EDITS and not parents[1:])
    return _tree(repository, parents[0] if parents and not alone else "")


def _tree(repository: Repository, commit: str) -> TreeId:
    return TreeId(str(repository.tree(commit))) if commit else EMPTY_TREE
