"""What patchkit set aside in the checkouts: list it, show it, say how git brings it back.

Everything is a ref below `refs/patchkit/saved/`, written before files of a checkout were replaced.
What it holds is told by the commit's own shape, as `workspace.save` and `ops.undo` make it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
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
from patchkit.ops.undo import holds
from patchkit.workspace import Checkout, CheckoutState, checkout_of
from patchkit.workspace.checkout import SAVED_REFS
from patchkit.workspace.contents import contents_at

_PREFIX = "Saved by patchkit: "
_STAGED, _LATE = "what was staged", "written while it was replaced"
_DEEPEST = 1000  # commits of a stack that are looked at


class SavedKind(str, Enum):
    """What was set aside."""

    EDITS = "edits"  # files as they were in the checkout, new ones too
    STAGED = "staged"  # what only git's index had
    FILES = "files"  # what an editor wrote while the files were replaced
    STACK = "stack"  # a whole stack of patches, one commit each
    COMMITS = "commits"  # commits that only an unfinished rebase, merge or the like knew


#: What is one change of files.
_EDITS = (SavedKind.EDITS, SavedKind.STAGED, SavedKind.FILES)
_WHY = {
    SavedKind.STAGED: "only git's index had it when the files were replaced",
    SavedKind.FILES: "written while the files were replaced",
    SavedKind.STACK: "the patches as they were before a change, or as it had made them",
    SavedKind.COMMITS: "an unfinished operation or a refresh had them",
}
_STATES = {
    CheckoutState.EDITED.value: "edits in the checkout",
    CheckoutState.EXTRA_COMMITS.value: "commits and edits in the checkout",
    CheckoutState.CONFLICTED.value: "what was done to a conflict",
}


class SavedWork(Struct, frozen=True):
    """Work that was set aside: in which component, why, what.

    `id` is the end of `ref`, and begins with the time: 20260102T030405Z. `what` are the paths that
    it changes, or the patches; `restore` is the command that brings it back, or prints the first of
    its files.
    """

    id: str
    component: str
    kind: SavedKind  # what was set aside
    why: str
    what: tuple[str, ...]
    ref: str
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
    rows.sort(key=lambda row: row.id, reverse=True)
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
        only = [f":(literal){path}" for path in _missing(checkout, old, new)]
        (text,) = diff_trees(repository, [(old, new)], "--", *only) if only else [b""]
        return SavedReport(manifest.name, (found,), text)
    diffs = diff_trees(repository, [(old, new) for _, old, new in pieces])
    text = b"".join(
        f"# {title}\n".encode() + diff for (title, _, _), diff in zip(pieces, diffs, strict=True)
    )
    return SavedReport(manifest.name, (found,), text)


def command_back(manifest: Manifest, component: Component, workspace: Path, ref: str) -> str:
    """The command that brings back what was just saved, of a checkout where nothing came since."""
    return next(row.restore for row in _read(manifest, component, workspace, ref, "--3way"))


def _missing(checkout: Checkout, old: TreeId, new: TreeId) -> list[str]:
    """The paths of a change where the checkout's file is not what it makes of it."""
    return [
        change.path
        for change in tree_changes(checkout.repository, old, new)
        if not (
            holds(checkout, change.path, change.new_file)
            if change.new_file is not None
            else contents_at(checkout.path, change.path) is None
        )
    ]


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


def _read(
    manifest: Manifest,
    component: Component,
    workspace: Path,
    refs: str = SAVED_REFS,
    merging: str = "",
) -> Iterator[SavedWork]:
    """What is saved under some refs; `merging` is for the `git apply` that brings it back."""
    checkout = checkout_of(workspace, manifest, component)
    if not checkout.git_dir.is_dir():
        return
    repository = checkout.repository
    fields = (
        "refname objecttype authoremail trailers:key=Patchkit-Patch,valueonly,separator=%2C subject"
    )
    layout = "%09".join(f"%({field})" for field in fields.split(" "))
    hint = "git fsck --unreachable  names commits that nothing leads to; move the damaged file away"
    out = repository.for_each_ref(layout, refs, hint=hint)
    for row in lines_of(out.decode("utf-8", "replace")):
        ref, form, email, patch, subject = row.split("\t", 4)
        if form != "commit":
            continue  # nothing that patchkit put there
        kind, why = _kind(subject, ours=email == "<patchkit@localhost>", patch=bool(patch))
        name = ref.removeprefix(SAVED_REFS)
        found = SavedWork(name, component.name, kind, why, (), ref)
        pieces = list(_pieces(repository, found))
        what = [title for title, _, _ in pieces]
        if kind is not SavedKind.STACK:
            changes = [
                change for _, old, new in pieces for change in tree_changes(repository, old, new)
            ]
            what = list(dict.fromkeys(change.path for change in changes))
        found = replace(found, what=tuple(what))
        yield replace(found, restore=_restore(manifest, checkout, found, merging))


def _restore(manifest: Manifest, checkout: Checkout, saved: SavedWork, merging: str) -> str:
    """What to type, "" where nothing is missing.

    `undo --show` leaves out what is there: git writes over no untracked file, not even with its
    own bytes.
    """
    git = f"git -C {shlex.quote(str(checkout.path))}"
    if saved.kind is SavedKind.FILES:
        return f"{git} show {saved.ref}:{shlex.quote(saved.what[0])}"
    old, new = _base_of(checkout.repository, saved), _tree(checkout.repository, saved.ref)
    if saved.kind not in _EDITS or old == EMPTY_TREE:
        return f"{git} switch --create saved-work {saved.ref}"
    steps: list[str] = []
    if saved.kind is SavedKind.EDITS and saved.why != _STATES[CheckoutState.EDITED.value]:
        steps.append(f"{git} switch --create saved-work {saved.ref}^")
    if _missing(checkout, old, new):
        shown = f"patchkit undo --show {saved.id} {manifest.options(saved.component)}"
        steps.append(f"{shown} | {git} apply {merging}".rstrip())
    return " && ".join(steps)


def _kind(subject: str, *, ours: bool, patch: bool) -> tuple[SavedKind, str]:
    if ours and subject.startswith(_PREFIX):
        rest = subject.removeprefix(_PREFIX)
        kind = {_STAGED: SavedKind.STAGED, _LATE: SavedKind.FILES}.get(rest, SavedKind.EDITS)
        return kind, _WHY.get(kind) or _STATES.get(rest, f"the checkout was {rest}")
    kind = SavedKind.STACK if patch else SavedKind.COMMITS
    return kind, _WHY[kind]


def _pieces(repository: Repository, saved: SavedWork) -> Iterator[tuple[str, TreeId, TreeId]]:
    """(title or "", tree before, tree after) of each change in it, in order."""
    if saved.kind in _EDITS:
        yield "", _base_of(repository, saved), _tree(repository, saved.ref)
        return
    layout = "--format=%T%x09%P%x09%(trailers:key=Patchkit-Patch,valueonly,separator=%x2C)%x09%s"
    known = ["--not", "refs/patchkit/base"] if saved.kind is SavedKind.COMMITS else []
    out = repository.git(
        "log", "--first-parent", f"-n{_DEEPEST}", layout, saved.ref, *known, "--"
    ).out
    rows = [row.split("\t", 3) for row in lines_of(out.decode("utf-8", "replace"))]
    found: list[tuple[str, TreeId, TreeId]] = []
    for tree, parents, patch, subject in rows:
        if saved.kind is SavedKind.STACK and not patch:
            break
        parent = parents.split(" ")[0]
        found.append((patch or subject, _tree(repository, parent), TreeId(tree)))
    yield from reversed(found)


def _base_of(repository: Repository, saved: SavedWork) -> TreeId:
    """The tree that it is a change of; the empty one where it stands alone."""
    parents = lines_of(repository.git("rev-parse", f"{saved.ref}^@").out.decode())
    alone = saved.kind is SavedKind.FILES or (saved.kind is SavedKind.EDITS and not parents[1:])
    return _tree(repository, parents[0] if parents and not alone else "")


def _tree(repository: Repository, commit: str) -> TreeId:
    return TreeId(str(repository.tree(commit))) if commit else EMPTY_TREE
