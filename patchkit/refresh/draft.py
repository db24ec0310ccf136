"""One component's refresh before anything is written: edits go to their patches, and the series
that results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import UsageError
from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.model.diff_parse import parse_diff
from patchkit.model.names import is_patch_name, slug
from patchkit.model.objects import Base
from patchkit.model.patch import FileChange, Identity
from patchkit.refresh.assign import EditedPiece, StackTrees, read_changes
from patchkit.refresh.commit_match import (
    CommitContents,
    CommitMatching,
    KnownPatch,
    arrange,
    match_commits,
)
from patchkit.refresh.fold import fold
from patchkit.refresh.patch_plan import (
    SeriesFolder,
    NotReproducedError,
    Plan,
    PlanContext,
    StackSlot,
    commit_changes,
    plan_patches,
)
from patchkit.stack.build import Stack, StackCommit
from patchkit.stack.patch_files import CommitChange, canonical_diffs
from patchkit.stack.series import LoadedPatch


class Request(Struct, frozen=True):
    """What the user wants done with edits that belong to no patch for certain.

    At most one of `patch` (a patch of the series) and `new` (the name of a new one, with `message`
    and `author`) is set; `everything` sends all edits to the new one. `canonical`: every diff is
    written anew in canonical form, whether it changed or not.
    """

    patch: str | None = None
    new: str | None = None
    message: str = ""
    author: Identity | None = None
    everything: bool = False
    canonical: bool = False


class RoutedEdit(Struct, frozen=True):
    """One piece of what was edited, and the patch that it goes to.

    `line` is the first line concerned in the stack's last tree, 0 for a file as a whole; `removed`
    and `added` count lines. `patch` is empty where nobody knows; `candidates` are the patches that
    the piece has to do with.
    """

    path: str
    line: int
    removed: int
    added: int
    patch: str
    reason: str
    candidates: tuple[str, ...] = ()


class RefreshStart(Struct, frozen=True):
    """What a draft starts from: the series as it is, and the checkout's commits and files."""

    repository: Repository
    reader: ObjectReader
    base: Base
    patches: tuple[LoadedPatch, ...]
    stack: Stack
    commits: tuple[StackCommit, ...]
    worktree: str
    taken: frozenset[str] = frozenset()


class Draft(Struct, frozen=True):
    """What a refresh would do; `plan` is None while an edit has no patch to go to.

    `series` are the names that the series file lists; `emptied` are patches that change nothing any
    more, `dropped` those whose commits are gone.
    """

    edits: tuple[RoutedEdit, ...]
    plan: Plan | None = None
    series: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def draft_refresh(start: RefreshStart, home: SeriesFolder, request: Request) -> Draft:
    """Think a refresh through; writes nothing but trial objects.

    Raises PatchkitError where the wish cannot be met.
    """
    changes = commit_changes(start.stack, start.patches)
    matching = _match(start, changes)
    trees = (start.base.tree, *(commit.tree for commit in start.commits))
    pieces = read_changes(StackTrees(start.repository, start.reader, trees), start.worktree)
    fixed = {each.name for each in start.patches if each.path is None}
    new = _new_name(request, matching, start)
    routed = [_route(each, matching, fixed, request, new) for each in pieces]
    rows = tuple(_row(piece, number, (*matching.names, new)) for piece, number in routed)
    if any(number is None for _, number in routed):
        return Draft(rows)
    placed = [(number, piece) for piece, number in routed if number is not None]
    slots = _slots(start, matching, changes)
    if any(number > len(start.commits) for number, _ in placed):
        trees = (*trees, trees[-1])
        slots.append(
            StackSlot(new, CommitChange("", "", _message(request, new), _author(request)), None)
        )
    after, objects = fold(start.reader, trees, placed, (*matching.names, new))
    write_objects(start.repository, objects)
    if after[-1] != start.worktree:
        raise NotReproducedError("the edits do not fit into the patches exactly")
    draft = _finish(start, home, changes, _with_trees(slots, after), anew=request.canonical)
    return replace(draft, edits=rows, dropped=matching.dropped)


def _finish(
    start: RefreshStart,
    home: SeriesFolder,
    changes: Mapping[str, CommitChange],
    slots: Sequence[StackSlot],
    *,
    anew: bool,
) -> Draft:
    full = [slot for slot in slots if slot.change.before != slot.change.after]
    emptied = tuple(slot.name for slot in slots if slot not in full)
    series = arrange(home.component, start.patches, [slot.name for slot in full])
    setting = PlanContext(
        start.repository, start.reader, start.base, home, start.patches, changes, anew=anew
    )
    return Draft(
        (), plan_patches(with_empty_patches(start.patches, full), setting), series, emptied
    )


def with_empty_patches(
    patches: Sequence[LoadedPatch], full: Sequence[StackSlot]
) -> list[StackSlot]:
    """The slots with the patches that never had a commit, behind the patch they stood behind."""
    slots = list(full)
    before: str | None = None
    for patch in patches:
        names = [slot.name for slot in slots]
        # a patch that a recipe fills for the first time has its slot already
        if not patch.file.changes and patch.name not in names:
            place = names.index(before) + 1 if before in names else 0
            slots.insert(
                place, StackSlot(patch.name, CommitChange("", "", "", Identity("", "")), patch)
            )
        before = patch.name
    return slots


def _match(start: RefreshStart, changes: Mapping[str, CommitChange]) -> CommitMatching:
    named = {commit.patch for commit in start.commits}
    missing = [each for each in start.patches if each.name in changes and each.name not in named]
    pairs = [(changes[each.name].before, changes[each.name].after) for each in missing]
    diffs = dict(
        zip((m.name for m in missing), canonical_diffs(start.repository, pairs), strict=True)
    )
    known = [
        KnownPatch(
            each.name,
            changes[each.name].message.split("\n", 1)[0],
            diffs.get(each.name, b""),
            _paths(each.file.changes),
        )
        for each in start.patches
        if each.name in changes
    ]

    def look(index: int) -> CommitContents:
        commit = start.commits[index]
        before = start.commits[index - 1].tree if index else start.base.tree
        (diff,) = canonical_diffs(start.repository, [(before, commit.tree)])
        return CommitContents(diff, _paths(parse_diff(diff)))

    taken = {each.name for each in start.patches} | start.taken
    return match_commits(start.commits, known, taken, look)


def _paths(changes: Collection[FileChange]) -> frozenset[str]:
    return frozenset(change.path for change in changes)


def _slots(
    start: RefreshStart, matching: CommitMatching, changes: Mapping[str, CommitChange]
) -> list[StackSlot]:
    loaded = {each.name: each for each in start.patches}
    return [
        StackSlot(name, CommitChange("", "", commit.message, commit.author), loaded.get(name))
        for name, commit in zip(matching.names, start.commits, strict=True)
    ]


def _with_trees(slots: Sequence[StackSlot], trees: Sequence[str]) -> list[StackSlot]:
    return [
        replace(slot, change=replace(slot.change, before=before, after=after))
        for slot, before, after in zip(slots, trees, trees[1:], strict=False)
    ]


def _route(
    piece: EditedPiece,
    matching: CommitMatching,
    fixed: Collection[str],
    request: Request,
    new: str,
) -> tuple[EditedPiece, int | None]:
    """The piece and the number of the commit that it goes to, None if nobody knows."""
    last = len(matching.names) + 1
    if request.everything:
        return replace(piece, reason="as asked"), last
    if piece.owner is not None and piece.owner < last:
        name = matching.names[piece.owner - 1]
        if name not in fixed:
            return piece, piece.owner
        piece = replace(piece, owner=None, reason=f"{name} cannot be rewritten")
    if request.new is not None:
        return piece, last
    if request.patch is not None:
        return piece, _number_of(request.patch, matching, fixed)
    return piece, None


def _number_of(name: str, matching: CommitMatching, fixed: Collection[str]) -> int:
    wanted = full_name(name)
    if wanted in fixed:
        raise UsageError(
            f"{wanted} belongs to another repository and cannot be rewritten",
            hint="make a new patch: --new NAME",
        )
    if wanted not in matching.names:
        raise UsageError(
            f"{wanted}: no such patch in the stack", hint=f"it has {', '.join(matching.names)}"
        )
    return matching.names.index(wanted) + 1


def full_name(name: str) -> str:
    """A patch name as typed, with or without its ending."""
    return name if name.endswith(".patch") else f"{name}.patch"


def _new_name(request: Request, matching: CommitMatching, start: RefreshStart) -> str:
    if request.new is None:
        return ""
    name = full_name(request.new)
    if not is_patch_name(name):
        raise UsageError(
            f"{name!a} is no patch name",
            hint=f"ASCII letters, digits and . _ + -, for example {slug(request.new)}.patch",
        )
    taken = {each.casefold() for each in (*matching.names, *start.taken)}
    taken |= {each.name.casefold() for each in start.patches}
    if name.casefold() in taken:
        raise UsageError(f"{name} is there already", hint="choose another name, or --patch NAME")
    return name


def _message(request: Request, name: str) -> str:
    return request.message.strip("\n") or name.removesuffix(".patch").replace("-", " ").capitalize()


def _author(request: Request) -> Identity:
    if request.author is None:
        raise UsageError("a new patch needs an author", hint="git config user.name and user.email")
    return request.author


def _row(piece: EditedPiece, number: int | None, names: Sequence[str]) -> RoutedEdit:
    edit = piece.edit
    return RoutedEdit(
        path=piece.path,
        line=piece.line,
        removed=edit.end - edit.start if edit is not None else 0,
        added=len(edit.lines) if edit is not None else 0,
        patch=names[number - 1] if number is not None else "",
        reason=piece.reason,
        candidates=tuple(names[each - 1] for each in piece.candidates),
    )
