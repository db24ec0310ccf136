"""What patchkit set aside in the checkouts: list it, show it, bring it back.

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

from patchkit.errors import ExitCode, Problem, UsageError
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import diff_trees, tree_changes
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import (
    EMPTY_TREE,
    CommitId,
    TreeId,
    lines_of,
)
from patchkit.model.tree import TreeChange
from patchkit.ops.edit_merge import CannotMergeError, merge_changes
from patchkit.ops.hints import in_columns
from patchkit.workspace import Checkout, CheckoutState, Snapshot, checkout_of, inspect, locked
from patchkit.workspace.changes import entry_rows, obstacles
from patchkit.workspace.checkout import SAVED_REFS
from patchkit.workspace.move import move_checkout
from patchkit.workspace.operations import Operation, recorded
from patchkit.workspace.recover import recover
from patchkit.workspace.save import rows_beyond, staged_id
from patchkit.workspace.state import Held, Place
from patchkit.workspace.waiting import worktree_tree

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
    patches.
    """

    id: str
    component: str
    kind: SavedKind  # what was set aside
    when: str
    why: str
    what: tuple[str, ...]
    ref: str
    commit: str


class SavedReport(Struct, frozen=True):
    """Saved work, the latest first; `diff` is that of the one that is shown, `restored` are the
    files that got their saved changes. A file that changed while it was replaced was saved first:
    `also_saved` names the refs, or files, that hold it.
    """

    manifest: str  # its name
    saved: tuple[SavedWork, ...]
    diff: bytes = b""
    restored: tuple[str, ...] = ()
    also_saved: tuple[str, ...] = ()

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
    """One of them, with its diff; UsageError if `given` names none, or several."""
    found = find_saved(list_saved(manifest, components, workspace).saved, given)
    component = manifest.component(found.component)
    assert component is not None
    repository = checkout_of(workspace, manifest, component).repository
    pieces = list(_pieces(repository, found))
    diffs = diff_trees(repository, [(old, new) for _, old, new in pieces])
    text = b"".join(
        (f"# {title}\n".encode() if title else b"") + diff
        for (title, _, _), diff in zip(pieces, diffs, strict=True)
    )
    return SavedReport(manifest.name, (found,), text)


def find_saved(saved: Sequence[SavedWork], given: str) -> SavedWork:
    """The one that a user means by its id, the beginning of one, or its ref; `last` is the newest
    that `restore` takes.
    """
    name = given.removeprefix(SAVED_REFS)
    edits = [each for each in saved if each.kind in (SavedKind.EDITS, SavedKind.STAGED)]
    if name == "last" and edits:
        return max(edits, key=lambda each: each.id)
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
        yield replace(found, what=tuple(_contents(repository, found)))


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
    if saved.kind in (SavedKind.EDITS, SavedKind.STAGED, SavedKind.FILES):
        base, _ = _sides(repository, saved)
        yield "", _tree(repository, base), _tree(repository, saved.commit)
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


def _sides(repository: Repository, saved: SavedWork) -> tuple[str, str]:
    """(the commit that it is a change of, or "", the commit of its index, or "")."""
    parents = lines_of(repository.git("rev-parse", f"{saved.commit}^@").out.decode())
    if saved.kind is SavedKind.EDITS:
        return (parents[0] if len(parents) > 1 else ""), parents[-1]
    return (parents[0] if saved.kind is SavedKind.STAGED and parents else ""), ""


def _tree(repository: Repository, commit: str) -> TreeId:
    return TreeId(str(repository.tree(commit))) if commit else EMPTY_TREE


# Bringing it back: the saved change is merged into the files as they are, file by file, and only
# where git's three-way merge has no conflict. Nothing is replaced that is not in a commit or in the
# record for `undo`; the saved work stays where it is.


def restore_saved(
    manifest: Manifest,
    components: Sequence[Component],
    workspace: Path,
    given: str,
    *,
    when: int,
) -> SavedReport:
    """Bring saved edits back into their checkout, as uncommitted edits beside those that it has.

    What was staged as a new file is again. All or nothing: CannotMergeError if a file does not
    merge, or the checkout is not at its stack. `when` is in seconds since the epoch.
    """
    found = find_saved(list_saved(manifest, components, workspace).saved, given)
    component = manifest.component(found.component)
    assert component is not None
    checkout = checkout_of(workspace, manifest, component)
    if found.kind not in (SavedKind.EDITS, SavedKind.STAGED):
        raise CannotMergeError(_other_ways(checkout, found))
    with locked(checkout):
        recover(checkout)
        snapshot = inspect(checkout)
        usual = snapshot.state in (
            CheckoutState.APPLIED,
            CheckoutState.EDITED,
            CheckoutState.UNPATCHED,
        )
        if not usual or snapshot.head is None or snapshot.head != snapshot.applied:
            what = f"the checkout is {snapshot.state.value}"
            hint = f"patchkit status {manifest.options(component.name)}  says what is next"
            raise CannotMergeError(Problem(what, component.name, hint))
        return _restored(manifest, checkout, snapshot, found, when)


def _other_ways(checkout: Checkout, saved: SavedWork) -> Problem:
    git = f"git -C {shlex.quote(str(checkout.path))}"
    ways = {
        SavedKind.FILES: f"{git} show {saved.ref}:PATH  prints a file",
        SavedKind.RESOLUTIONS: f"patchkit undo --show {saved.id}  prints the patches",
    }
    branch = ("have it on a branch", f"{git} switch --create saved-work {saved.ref}")
    default = in_columns([branch, ("take back what saved it", "patchkit undo")])
    what = f"{saved.id} is no change of files that could be merged, but {saved.kind.value}"
    return Problem(what, saved.component, ways.get(saved.kind, default))


def _restored(
    manifest: Manifest, checkout: Checkout, snapshot: Snapshot, saved: SavedWork, when: int
) -> SavedReport:
    repository, head = checkout.repository, snapshot.head
    assert head is not None
    base, index = _sides(repository, saved)
    if base and saved.why == _STATES[CheckoutState.EXTRA_COMMITS.value]:
        # with the commits; where their stack was another one, from what both have
        base = repository.git("merge-base", head, base, accept=(0, 1)).out.decode().strip()
    changes = tree_changes(repository, _tree(repository, base), _tree(repository, saved.commit))
    worktree = worktree_tree(checkout, head)
    tree = _merged(checkout, worktree, changes, saved)
    replaced = tree_changes(repository, worktree, tree)
    report = SavedReport(manifest.name, (saved,))
    if not replaced:
        return report
    if blocks := obstacles(checkout.path, replaced):
        what = f"untracked and in the way: {', '.join(blocks)}"
        raise CannotMergeError(Problem(what, saved.component, "move it away"))
    # its id comes before its rows: what is staged in between is noticed
    held = Held(worktree, staged=staged_id(checkout))
    rows = rows_beyond(checkout, tree)
    added = _added(repository, base, index, rows)
    place = (CommitId(str(snapshot.base)), CommitId(head))
    target = Place(*place, tree, rows | added)
    operation = Operation(
        saved.component,
        f"undo --restore: {saved.id}",
        before=Place(*place, worktree, dict.fromkeys(added, ())),
        after=Place(*place, tree, added),
    )
    # first, as nothing else has what the edited files held: a kill may follow at any moment
    with recorded(checkout, manifest.root, operation):
        moved = move_checkout(checkout, snapshot, target, held, when=when)
    paths = tuple(each.path for each in replaced)
    return replace(report, restored=paths, also_saved=moved.saved)


def _merged(
    checkout: Checkout, worktree: str, changes: Sequence[TreeChange], saved: SavedWork
) -> TreeId:
    """The tree of the worktree with the saved changes; CannotMergeError where one conflicts."""
    tree, merging = merge_changes(checkout, worktree, changes)
    if problems := merging.problems:
        hint = f"patchkit undo --show {saved.id}  prints it; the checkout stays as it is"
        raise CannotMergeError(*problems[:-1], replace(problems[-1], hint=hint))
    return tree


def _added(
    repository: Repository, base: str, index: str, rows: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The rows of files that were new in the index when it was saved, and are not in it now."""
    if not index:
        return {}
    changes = tree_changes(repository, _tree(repository, base), _tree(repository, index))
    found: dict[str, tuple[str, ...]] = {}
    for each in changes:
        if each.old is None and each.new_file is not None and rows.get(each.path) == ():
            found[each.path] = entry_rows(each.new_file)
    return found
